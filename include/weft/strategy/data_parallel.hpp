// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/layout/mesh.hpp"

namespace weft {

// Every rank holds the whole model and works on its part of the global batch; gradients are summed over the ranks.
// Communication a step: every gradient element once, all-reduced in buckets in the order in which backward makes them ready, started while
// backward goes on (`overlap`); and one control all-reduce of a few doubles. The result does not depend on `ranks`, to rounding.
struct DataParallel {
  static constexpr const char* name = "data";
  static constexpr Role role = Role::batch;

  Index ranks = 1;
  Index bucket_bytes = 1 * MiB;  // a tensor that is larger is a bucket of its own
  bool overlap = true;           // false: all buckets after backward; the same bits

  constexpr Index size() const { return ranks; }
  bool operator==(const DataParallel&) const = default;
};

}  // namespace weft
