// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/simd/isa.hpp"

namespace weft {

// A rank on one thread of the host. Products: who multiplies matrices (weft/kernel/cpu/products.hpp); Isa: which vector registers.
// Both are in the type, so that files compiled for different machines or libraries cannot be mixed by the linker.
template <class ProductsPolicy, class IsaTag = simd::Native>
struct Cpu {
  using Products = ProductsPolicy;
  using Isa = IsaTag;
  static constexpr const char* name = "cpu";
};

}  // namespace weft
