// SPDX-License-Identifier: Apache-2.0
// Temporary memory of a rank's kernels. The plan counts it, the engine allocates it once; a kernel never allocates.
#pragma once

#include "weft/base/config.hpp"

namespace weft::kernel {

// Aligned to alignment_bytes; what it holds is undefined from one call to the next.
struct Scratch {
  std::byte* data = nullptr;
  Index bytes = 0;
};

// What every CPU kernel makes do with: packed panels of a product, tiles of attention, unfolded patches of a convolution.
inline constexpr Index cpu_scratch_bytes = 4 * MiB;

}  // namespace weft::kernel
