// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/layout/mesh.hpp"

namespace weft {

// The ranks of a group divide the features of layers: heads, hidden features, vocabulary, channels (Shoeybi et al., arXiv 1909.08053).
// `sequence`: what is not divided by features is divided by rows (norms, dropout, residuals; Korthikanti et al., arXiv 2205.05198).
// Communication of a micro-batch, for each divided pair of layers with b·s rows of h features: 2 all-reduces of b·s·h elements; with
// `sequence`, 2 all-gathers and 2 reduce-scatters of as much (and one more of each where a row-divided tensor is needed whole again).
// Requires: ranks that divide what layers share among them (weft[tensor.divides]); a layer without rules is computed by every rank.
struct TensorParallel {
  static constexpr const char* name = "tensor";
  static constexpr Role role = Role::features;

  Index ranks = 1;
  bool sequence = false;

  constexpr Index size() const { return ranks; }
  constexpr TensorParallel with_size(Index extent) const {
    TensorParallel out = *this;
    out.ranks = extent;
    return out;
  }
  bool operator==(const TensorParallel&) const = default;
};

}  // namespace weft
