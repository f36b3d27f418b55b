// SPDX-License-Identifier: Apache-2.0
// How a layer can be divided among the ranks of a tensor group (Shoeybi et al., arXiv 1909.08053). Data only: a layer lists its ways, the
// graph picks one (graph/split.hpp) and inserts the communication; layers never name a collective.
//
//   static constexpr FixedVector<SplitRule, 4> splits(Features in);   the ways; without this member the layer is replicated
//   template <SplitKind kind, Index ranks> using Part = …;            the layer of one rank, where it is another type
#pragma once

#include "weft/base/fixed_vector.hpp"
#include "weft/shape/features.hpp"

namespace weft {

// What the ranks of a group have of a tensor: all of it; a slice of its features; a summand; a slice of its rows.
enum class Spread : char { whole, features, partial, rows };

// The ways of a layer:
//   outputs     whole → features: each rank makes a slice of the output's features (or channels)
//   inputs      features → partial: each rank takes a slice of the input's features; results are to be summed
//   features    features → features: slices do not concern each other (elementwise; heads; channels)
//   vocabulary  whole → partial: each rank knows a slice of the tokens and gives zeros for the others
//   rows        rows → rows: rows do not concern each other; gradients of parameters are summands
enum class SplitKind : char { none, outputs, inputs, features, vocabulary, rows };

constexpr Spread spread_in(SplitKind kind) {
  switch (kind) {
    case SplitKind::inputs:
    case SplitKind::features: return Spread::features;
    case SplitKind::rows: return Spread::rows;
    default: return Spread::whole;
  }
}
constexpr Spread spread_out(SplitKind kind) {
  switch (kind) {
    case SplitKind::outputs:
    case SplitKind::features: return Spread::features;
    case SplitKind::inputs:
    case SplitKind::vocabulary: return Spread::partial;
    case SplitKind::rows: return Spread::rows;
    case SplitKind::none: break;
  }
  return Spread::whole;
}

struct SplitRule {
  SplitKind kind = SplitKind::none;
  Index divides = 0;                           // the ranks must divide this (heads, features); 0: any number works, slices are padded
  FixedVector<signed char, 8> dimension{};     // by parameter: the dimension that is sliced, -1: none
  FixedVector<Index, 4> segments{};            // of the input's features, each sliced by itself (q | k | v, gate | up); empty: one
};

constexpr SplitRule split_rule(SplitKind kind, Index divides, int first = -2, int second = -2) {
  SplitRule rule{kind, divides, {}, {}};
  for (int dimension : {first, second})
    if (dimension >= -1) rule.dimension.push(static_cast<signed char>(dimension));
  return rule;
}

// The type of one rank's part of a layer.
template <class Layer, SplitKind kind, Index ranks>
struct PartOf {
  using type = Layer;
};
template <class Layer, SplitKind kind, Index ranks>
requires(kind != SplitKind::none && ranks > 1 && requires { typename Layer::template Part<kind, ranks>; })
struct PartOf<Layer, kind, ranks> {
  using type = typename Layer::template Part<kind, ranks>;
};

}  // namespace weft
