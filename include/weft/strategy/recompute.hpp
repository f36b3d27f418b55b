// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/layout/mesh.hpp"

namespace weft {

// What of a block's activations is made again before its backward instead of being kept from forward. Blocks are what Repeat repeats.
//   selective  what is large and cheap: the inner part of attention (Korthikanti et al., arXiv 2205.05198)
//   full       everything but the block's input (Chen et al., arXiv 1604.06174): one more forward
// The gradients are the same bits, dropout included: random streams are functions of place.
enum class Recompute : char { none, selective, full };

// How activations are kept: an entry of a mesh that divides nothing.
struct Activations {
  static constexpr const char* name = "activations";
  static constexpr Role role = Role::batch;

  Recompute recompute = Recompute::none;
  bool fit = false;  // more than that only as far as the budget needs it: selective, then full

  constexpr Index size() const { return 1; }
  bool operator==(const Activations&) const = default;
};

}  // namespace weft
