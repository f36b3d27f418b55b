// SPDX-License-Identifier: Apache-2.0
// A model as flat tables. A *frame* is a top-level node, or the body of a Repeat with its count; the tables hold it once.
#pragma once

#include <string>
#include <vector>

#include "weft/base/text.hpp"
#include "weft/layer/facts.hpp"

namespace weft {

// Parameters start at multiples of this in their arena: a cache line of float, two of double, so that offsets do not depend on the type.
inline constexpr Index parameter_alignment_elems = 16;

struct PathPiece {
  enum class Kind : char { repetition, number, name } kind = Kind::repetition;
  const char* text = "";  // a name
  Index number = 0;       // among the unnamed of its scope
};
constexpr PathPiece path_name(const char* text) { return {PathPiece::Kind::name, text, 0}; }
constexpr PathPiece path_number(Index number) { return {PathPiece::Kind::number, "", number}; }
using Path = FixedVector<PathPiece, 12>;

// How a rank's part of a parameter lies in the whole one: along a dimension, slice by slice.
struct ParameterSplit {
  int dimension = -1;             // -1: every rank has all of it
  FixedVector<Index, 4> whole{};  // extents of the whole parameter
  Slicing slicing{};              // of that dimension
  bool summed = false;            // each rank's gradient is a summand
};

struct ParameterSite {
  ParameterFacts facts{};
  int leaf = -1;
  ParameterSplit split{};
  int owner = -1;    // the parameter whose storage this is; itself unless tied
  Index offset = 0;  // of the owner, in elements from the start of its frame's part of the arena (of parameters, or of buffers)
};

struct LeafSite {
  const char* name = "";
  int version = 0, frame = 0, op = 0;
  Features in{}, out{};
  LayerFacts facts{};
  FixedVector<SplitRule, 4> splits{};  // the ways in which it can be divided
  SplitKind split = SplitKind::none;   // how the ranks of a tensor group divide it
  bool rows_divided = false;
  Path path{};
  int first_parameter = 0;
  Slicing slicing{};  // of the whole input's channels, where this rank takes slices of them
};

// A layer · out = input + second · columns of out = input; and what a tensor group does with a tensor, forward (and backward):
// all_reduce: sum (hand on) · enter: hand on (sum) · gather_rows: all rows from slices (sum and slice) · copy_rows: all rows
// from slices (slice) · scatter_rows: sum and slice (gather) · slice_rows: slice (gather).
enum class OpKind : char { leaf, add, place, all_reduce, enter, gather_rows, copy_rows, scatter_rows, slice_rows };

constexpr bool is_communication(OpKind kind) { return kind >= OpKind::all_reduce; }

struct OpSite {
  OpKind kind = OpKind::leaf;
  int leaf = -1;
  int input = 0, second = -1, output = 0;  // tensors of the frame; second: added by an add, or by a layer that adds a residual
  Index column = 0;                        // place: the first column of the output
};

struct FrameSite {
  Index count = 1;  // repetitions
  int first_op = 0, num_ops = 0, first_leaf = 0, num_leaves = 0, first_tensor = 0, num_tensors = 0;
  int output = 0;                               // tensor 0 is the input
  Index parameter_elems = 0, buffer_elems = 0;  // of one repetition, with alignment
  Index first_parameter_elem = 0, first_buffer_elem = 0;
  Index first_unit = 0;  // a unit is one repetition of a frame
};

enum class GraphRule : char {
  none,
  shape_meets,
  residual_matches,
  sum_matches,
  concat_matches,
  repeat_matches,
  tie_owner,
  tie_extents,
  tie_repeat,
  layer_options,
  not_a_layer,
  empty,
  tensor_divides,
  tensor_features,
  tensor_rows,
  tensor_rule,
  tensor_part
};

struct GraphFault {
  GraphRule rule = GraphRule::none;
  int leaf = 0;  // the layer at which it shows
  Features given{}, wanted{};
  Index number = 0;  // of ranks
};

struct GraphData {
  std::vector<FrameSite> frames{};
  std::vector<OpSite> ops{};
  std::vector<Features> tensors{};   // of one rank
  std::vector<char> rows_divided{};  // by tensor: each rank of a tensor group has a slice of the rows
  std::vector<LeafSite> leaves{};
  std::vector<ParameterSite> parameters{};
  Features input{}, output{};
  Features whole_output{};                                     // of a tensor group
  Index tensor_ranks = 1;                                      // that this is one rank's graph of
  bool sequence = false;                                       // rows are divided where features are not
  Index whole_parameters = 0;                                  // of the group; 0: not divided
  Index parameter_elems = 0, buffer_elems = 0, num_units = 0;  // of the arenas, with alignment
  Index longest_sequence = 0;                                  // of positions that a layer has; 0: no limit
  GraphFault fault{};

  constexpr bool joins() const {
    for (const LeafSite& leaf : leaves)
      if (leaf.facts.join_elems > 0) return true;
    return false;
  }
  // Elements that are trained: ties count once, alignment does not count.
  constexpr Index num_parameters() const {
    if (whole_parameters > 0) return whole_parameters;
    Index total = 0;
    for (int i = 0; i < int(parameters.size()); ++i) {
      const ParameterSite& site = parameters[std::size_t(i)];
      if (site.owner == i && site.facts.kind != ParameterKind::buffer) total += site.facts.elems() * frame_of(site).count;
    }
    return total;
  }
  constexpr const FrameSite& frame_of(const ParameterSite& site) const { return frames[std::size_t(leaves[std::size_t(site.leaf)].frame)]; }
  // Where a parameter of a repetition starts in its arena.
  constexpr Index first_elem(int parameter, Index repetition) const {
    const ParameterSite& owner = parameters[std::size_t(parameters[std::size_t(parameter)].owner)];
    const FrameSite& frame = frame_of(owner);
    const bool buffer = owner.facts.kind == ParameterKind::buffer;
    const Index own = frame.count == 1 ? 0 : repetition;
    return (buffer ? frame.first_buffer_elem + own * frame.buffer_elems : frame.first_parameter_elem + own * frame.parameter_elems) +
           owner.offset;
  }
};

inline std::string path_text(const PathPiece& piece, Index repetition) {
  return piece.kind == PathPiece::Kind::name ? std::string(piece.text)
                                             : std::to_string(piece.kind == PathPiece::Kind::number ? piece.number : repetition);
}

// "blocks.3.attention.qkv.weight"
inline std::string path_of(const GraphData& graph, int parameter, Index repetition) {
  const ParameterSite& site = graph.parameters[std::size_t(parameter)];
  std::string text;
  for (const PathPiece& piece : graph.leaves[std::size_t(site.leaf)].path) text.append(path_text(piece, repetition)).append(".");
  return text + site.facts.name;
}

// The path of a layer, without a parameter's name.
inline std::string path_of_leaf(const GraphData& graph, int leaf, Index repetition) {
  std::string text;
  for (const PathPiece& piece : graph.leaves[std::size_t(leaf)].path)
    text.append(text.empty() ? "" : ".").append(path_text(piece, repetition));
  return text_of(text, " (", graph.leaves[std::size_t(leaf)].name, ")");
}

}  // namespace weft
