// SPDX-License-Identifier: Apache-2.0
// How a layer can be divided among the ranks of a tensor group (Shoeybi et al., arXiv 1909.08053). Data only: a layer lists its ways, the
// graph picks one (graph/split.hpp) and inserts the communication; layers never name a collective.
//
//   static constexpr FixedVector<SplitRule, 4> splits(Features in);   the ways; without this member the layer is replicated
//   template <SplitKind kind, Index ranks> using Part = …;            the layer of one rank, where it is another type; or, where slices are
//   template <SplitKind kind, Index ranks, Index in, Index out>       not all alike, by the channels that the rank takes and gives
// Requires (weft[tensor.rule], weft[tensor.part]): a rule fits the layer's parameters and features; the part takes and gives what the rule
// leaves to a rank, and has the parameters that it leaves.
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

// How features, or a dimension of a parameter, are sliced: segment by segment (q | k | v, gate | up). A segment of `pieces` indivisible
// pieces (key/value heads) that are fewer than the ranks is cut into those; ranks / pieces neighbours then have a copy of the same.
struct Slicing {
  FixedVector<Index, 4> segments{};
  FixedVector<Index, 4> pieces{};  // by segment; 0, or none: as many as there are ranks

  constexpr void push(Index extent, Index num_pieces = 0) { segments.push(extent), pieces.push(num_pieces); }
  constexpr Index copies(int segment, Index ranks) const {
    return pieces[segment] > 0 && pieces[segment] < ranks ? ranks / pieces[segment] : 1;
  }
  // Of one rank; padded if the ranks do not divide the segment.
  constexpr Index part(int segment, Index ranks) const { return divide_up(segments[segment], ranks / copies(segment, ranks)); }
  constexpr Index whole() const {
    Index sum = 0;
    for (Index segment : segments) sum += segment;
    return sum;
  }
  constexpr Index own(Index ranks) const {
    Index sum = 0;
    for (int s = 0; s < segments.size(); ++s) sum += part(s, ranks);
    return sum;
  }
  constexpr bool has_copies(Index ranks) const {
    for (int s = 0; s < segments.size(); ++s)
      if (copies(s, ranks) > 1) return true;
    return false;
  }
  // Calls visit(first of the rank's, first of the whole's, count, copies) for what a rank has of each segment, without padding.
  template <class Visit>
  constexpr void for_each_slice(Index ranks, Index rank, Visit&& visit) const {
    Index own_at = 0, whole_at = 0;
    for (int s = 0; s < segments.size(); ++s) {
      const Index size = part(s, ranks), first = rank / copies(s, ranks) * size, left = segments[s] - first;
      const Index count = left < size ? left : size;
      if (count > 0) visit(own_at, whole_at + first, count, copies(s, ranks));
      own_at += size, whole_at += segments[s];
    }
  }
  bool operator==(const Slicing&) const = default;
};

struct SplitRule {
  SplitKind kind = SplitKind::none;
  Index divides = 0;                        // the ranks must divide this (heads, features); 0: any number works, slices are padded
  FixedVector<signed char, 8> dimension{};  // by parameter: the dimension that is sliced, -1: none
  Slicing slicing{};                        // of the input's channels, where it is not one segment
};

constexpr SplitRule split_rule(SplitKind kind, Index divides, int first = -2, int second = -2, int third = -2, int fourth = -2) {
  SplitRule rule{kind, divides, {}, {}};
  for (int dimension : {first, second, third, fourth})
    if (dimension >= -1) rule.dimension.push(static_cast<signed char>(dimension));
  return rule;
}

// Of layers without parameters in which neither channels nor rows concern each other.
constexpr FixedVector<SplitRule, 4> side_by_side(Index channels) {
  FixedVector<SplitRule, 4> out;
  out.push(split_rule(SplitKind::features, channels)), out.push(split_rule(SplitKind::rows, 0));
  return out;
}

// The type of one rank's part of a layer. in, out: the channels that it takes and gives.
template <class Layer, SplitKind kind, Index ranks, Index in, Index out>
struct PartOf {
  using type = Layer;
};
template <class Layer, SplitKind kind, Index ranks, Index in, Index out>
requires(kind != SplitKind::none && ranks > 1 &&
         requires { typename Layer::template Part<kind, ranks>; }) struct PartOf<Layer, kind, ranks, in, out> {
  using type = typename Layer::template Part<kind, ranks>;
};
template <class Layer, SplitKind kind, Index ranks, Index in, Index out>
requires(kind != SplitKind::none && ranks > 1 &&
         requires { typename Layer::template Part<kind, ranks, in, out>; }) struct PartOf<Layer, kind, ranks, in, out> {
  using type = typename Layer::template Part<kind, ranks, in, out>;
};

}  // namespace weft
