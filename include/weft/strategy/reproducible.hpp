// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/layout/mesh.hpp"

namespace weft {

// An entry of a mesh that divides nothing: the same bits in losses, norms and parameters whatever the numbers of data ranks and stages, the
// schedule and the sharding, as long as the model, the data and the global micro-batches (Batch::global / Batch::micro) are the same.
// Every sum over micro-batches is folded in one binary tree over their global numbers; norms and losses are summed exactly.
// Cost: as many partial gradients as the tree needs at once (at most log2 of a rank's micro-batches, plus one), a pass over the gradients a
// micro-batch, no overlap of their exchange with backward.
struct Reproducible {
  static constexpr const char* name = "reproducible";
  static constexpr Role role = Role::batch;

  bool reproducible = true;

  constexpr Index size() const { return 1; }
  bool operator==(const Reproducible&) const = default;
};

}  // namespace weft
