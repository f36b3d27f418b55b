// SPDX-License-Identifier: Apache-2.0
// How layers are put together. These are names only: graph/lower.hpp turns them into a flat table.
#pragma once

#include "weft/base/fixed_string.hpp"
#include "weft/shape/features.hpp"

namespace weft {

// One after the other.
template <class... Nodes>
struct Sequential {};

// x + f(x). The result of the last node must have the features of x.
template <class... Nodes>
struct Residual {};

// The same nodes N times, each time with parameters of their own. One type and a count: compile time does not depend on N.
template <Index N, class... Nodes>
struct Repeat {
  static_assert(N >= 1, "weft[graph.repeat]: Repeat<N, …> needs at least one repetition; use N >= 1");
};

// f(x) + g(x) + …; Sequential<> is the identity.
template <class... Branches>
struct Sum {
  static_assert(sizeof...(Branches) >= 2, "weft[graph.sum]: Sum needs at least two branches");
};

// The channels of f(x), g(x), … one after the other: (B, Cf + Cg + …[, H, W]).
template <class... Branches>
struct Concat {
  static_assert(sizeof...(Branches) >= 2, "weft[graph.concat]: Concat needs at least two branches");
};

// Gives a node a name in parameter paths, instead of its place in the parent: "blocks.3.attention.qkv.weight".
template <FixedString name_text, class Node>
struct Named {
  using NamedNode = Node;  // found by this member: nvcc does not match a specialisation on a template argument of class type
  static constexpr const char* node_name = name_text.text;
};

// A layer whose first parameter is another layer's: one storage, one gradient, one optimizer state, one entry in a file.
// `owner` is the full path of the parameter, such as "wte.table"; it comes earlier in the model and has the same extents.
template <FixedString owner_text, class Layer>
struct Tied {
  using TiedLayer = Layer;
  static constexpr const char* owner = owner_text.text;
};

// The features of the model's input, where its first layer does not say them: Sequential<Input<1, 28, 28>, Conv2d<…>, …>.
template <Index C, Index H = 1, Index W = 1>
struct Input {
  static constexpr Features input{C, H, W};
};

}  // namespace weft
