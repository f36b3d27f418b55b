// SPDX-License-Identifier: Apache-2.0
// The layers of one rank of a tensor group as types and features, and whether they are what the rules leave to a rank.
#pragma once

#include "weft/graph/split.hpp"

namespace weft {

// How the model is divided: what code depends on of a strategy. classes: whether the loss takes slices of them.
struct CodeSplit {
  Index ranks = 1;
  bool sequence = false, classes = false;
  bool operator==(const CodeSplit&) const = default;
};

// Whether the model can be divided so at all.
template <class Model, CodeSplit split>
inline constexpr bool is_divisible = split_graph(lower<Model>(), split.ranks, split.sequence, split.classes).fault.rule == GraphRule::none;

// What a rank has of a layer, and of the model's output.
struct LeafPart {
  Features in{}, out{};
  SplitKind kind = SplitKind::none;
  LayerFacts facts{};
  Features prediction{}, whole_prediction{};
};

template <class Model, CodeSplit split>
constexpr auto leaf_parts() {
  std::array<LeafPart, std::size_t(Leaves<Model>::size)> parts{};
  const GraphData graph = split_graph(lower<Model>(), split.ranks, split.sequence, split.classes);
  for (std::size_t i = 0; i < parts.size() && i < graph.leaves.size(); ++i) {
    const LeafSite& leaf = graph.leaves[i];
    parts[i] = {leaf.in, leaf.out, leaf.split, leaf.facts, graph.output, graph.tensor_ranks > 1 ? graph.whole_output : graph.output};
  }
  return parts;
}
template <class Model, CodeSplit split>
inline constexpr auto leaf_parts_of = leaf_parts<Model, split>();

// The first layer whose part takes, gives, holds or keeps something else than its rule leaves to a rank: two numbers that differ.
struct PartFault {
  int leaf = -1;
  Index has = 0, left = 0;
};

// Part: of one rank. A part without facts keeps nothing.
template <class Part>
constexpr PartFault compare_part(int leaf, const LeafPart& left) {
  PartFault fault;
  const auto compare = [&](Index has, Index wanted) {
    if (fault.leaf < 0 && has != wanted) fault = {leaf, has, wanted};
  };
  const Features out = Part::output(left.in);
  compare(out.channels, left.out.channels), compare(out.plane(), left.out.plane());
  if constexpr (requires { Part::facts(left.in, Index(1)); }) {
    if (fault.leaf >= 0) return fault;
    const LayerFacts facts = Part::facts(left.in, 1);
    compare(facts.parameters.size(), left.facts.parameters.size());
    for (int p = 0; p < facts.parameters.size() && fault.leaf < 0; ++p)
      for (int d = 0; d < facts.parameters[p].extents.size(); ++d)
        compare(facts.parameters[p].extents[d], left.facts.parameters[p].extents[d]);
    for (int k = 0; k < facts.saved.size() && fault.leaf < 0; ++k) {  // less is no harm
      if (facts.saved[k].elems_per_row > left.facts.saved[k].elems_per_row)
        compare(facts.saved[k].elems_per_row, left.facts.saved[k].elems_per_row);
      if (facts.saved[k].fixed_elems > left.facts.saved[k].fixed_elems)
        compare(facts.saved[k].fixed_elems, left.facts.saved[k].fixed_elems);
    }
    compare(facts.join_elems, left.facts.join_elems), compare(facts.step_elems, left.facts.step_elems);
  }
  return fault;
}

template <class Model, CodeSplit split>
constexpr PartFault find_part_fault() {
  PartFault fault;
  if constexpr (split.ranks > 1) {
    for_each_type(Leaves<Model>{}, [&]<int I, class L>() {
      constexpr LeafPart left = leaf_parts_of<Model, split>[std::size_t(I)];
      if constexpr (left.kind != SplitKind::none) {
        using Part = typename PartOf<L, left.kind, split.ranks, left.in.channels, left.out.channels>::type;
        if (fault.leaf < 0) fault = compare_part<Part>(I, left);
      }
    });
  }
  return fault;
}
template <class Model, CodeSplit split>
inline constexpr PartFault part_fault_of = find_part_fault<Model, split>();

}  // namespace weft
