// SPDX-License-Identifier: Apache-2.0
// Turns a model into GraphData and the flat pack of its layer types. Recursion follows the nesting of the model, never its length.
#pragma once

#include <array>

#include "weft/base/pack.hpp"
#include "weft/graph/graph_data.hpp"
#include "weft/graph/nodes.hpp"

namespace weft {

// The first of a layer's rules that does not fit what the layer says of itself; -1: none.
constexpr int first_wrong_rule(const LeafSite& site) {
  for (int r = 0; r < site.splits.size(); ++r) {
    const SplitRule& rule = site.splits[r];
    const bool divides_features = rule.kind == SplitKind::inputs || rule.kind == SplitKind::features;
    bool wrong = rule.kind == SplitKind::none || rule.divides < 0 || rule.dimension.size() > site.facts.parameters.size();
    for (int p = 0; p < rule.dimension.size() && !wrong; ++p)
      wrong = rule.dimension[p] < -1 || rule.dimension[p] >= site.facts.parameters[p].extents.size() ||
              (rule.dimension[p] >= 0 && rule.kind == SplitKind::rows);
    wrong |= rule.slicing.segments.size() > 0 && (rule.kind != SplitKind::features || rule.slicing.whole() != site.in.channels);
    wrong |= divides_features && site.in.element == Element::token;                                    // a token is one number
    wrong |= rule.kind != SplitKind::features && rule.kind != SplitKind::rows && site.facts.in_place;  // what it gives is not what it takes
    wrong |= rule.kind == SplitKind::rows && site.facts.join_elems > 0;  // sums meet over the data ranks, not over those that share rows
    if (wrong) return r;
  }
  return -1;
}

template <class T>
concept Layer = requires(Features in, Index sequence) {
  { T::name } -> std::convertible_to<const char*>;
  { T::version } -> std::convertible_to<int>;
  { T::output(in) } -> std::same_as<Features>;
  { T::facts(in, sequence) } -> std::same_as<LayerFacts>;
};

class GraphBuilder {
 public:
  GraphData graph;
  Path path;
  Index next_number = 0;  // of an unnamed layer or Repeat in the scope that is open: a name, or a repetition
  Index sequence = 1;

  constexpr bool failed() const { return graph.fault.rule != GraphRule::none; }
  constexpr void fail(GraphRule rule, int leaf, Features given, Features wanted) {
    if (!failed()) graph.fault = {rule, leaf, given, wanted};
  }

  constexpr void open_frame(Index count) {
    FrameSite frame;
    frame.count = count;
    frame.first_op = int(graph.ops.size()), frame.first_leaf = int(graph.leaves.size()), frame.first_tensor = int(graph.tensors.size());
    frame.first_parameter_elem = graph.parameter_elems, frame.first_buffer_elem = graph.buffer_elems, frame.first_unit = graph.num_units;
    graph.frames.push_back(frame);
    tensor(graph.output);
  }
  constexpr void close_frame(int output) {
    FrameSite& frame = graph.frames.back();
    if (int(graph.ops.size()) == frame.first_op) {  // nothing in it
      graph.tensors.resize(std::size_t(frame.first_tensor)), graph.rows_divided.resize(graph.tensors.size()), graph.frames.pop_back();
      return;
    }
    frame.output = output;
    frame.num_ops = int(graph.ops.size()) - frame.first_op;
    frame.num_leaves = int(graph.leaves.size()) - frame.first_leaf;
    frame.num_tensors = int(graph.tensors.size()) - frame.first_tensor;
    if (frame.count > 1 && features(output) != features(0))
      fail(GraphRule::repeat_matches, int(graph.leaves.size()) - 1, features(output), features(0));
    graph.output = features(output);
    graph.parameter_elems += frame.count * frame.parameter_elems;
    graph.buffer_elems += frame.count * frame.buffer_elems;
    graph.num_units += frame.count;
  }

  constexpr Features features(int tensor) const { return graph.tensors[std::size_t(graph.frames.back().first_tensor + tensor)]; }
  constexpr int tensor(Features features) {
    graph.tensors.push_back(features);
    graph.rows_divided.push_back(0);
    return int(graph.tensors.size()) - graph.frames.back().first_tensor - 1;
  }
  constexpr int add(int a, int b) {
    graph.ops.push_back({.kind = OpKind::add, .input = a, .second = b, .output = tensor(features(a))});
    return graph.ops.back().output;
  }

  // Runs `inside` with one more piece of path, in a scope of its own.
  template <class Inside>
  constexpr int scope(PathPiece piece, Inside&& inside) {
    const Index number = next_number;
    path.push(piece), next_number = 0;
    const int output = inside();
    --path.count, next_number = number;
    return output;
  }

  // named: the last piece of the path is this layer's; else it gets a number.
  template <class L>
  constexpr int leaf(int input, bool named) {
    if (!named) path.push(path_number(next_number++));
    const int output = write_leaf<L>(input);
    if (!named) --path.count;
    return output;
  }

  template <class L>
  constexpr int write_leaf(int input) {
    const Features in = features(input);
    const int index = int(graph.leaves.size());
    if constexpr (requires { L::valid; }) {
      if (!L::valid) {
        fail(GraphRule::layer_options, index, {}, {});
        return input;
      }
    }
    const Features out = L::output(in);
    LeafSite site{L::name,
                  L::version,
                  int(graph.frames.size()) - 1,
                  int(graph.ops.size()),
                  in,
                  out,
                  {},
                  {},
                  SplitKind::none,
                  false,
                  path,
                  int(graph.parameters.size()),
                  {}};
    if (out.valid()) {
      site.facts = L::facts(in, sequence);
      if constexpr (requires { L::splits(in); }) site.splits = L::splits(in);
      const int wrong = first_wrong_rule(site);
      if (wrong >= 0) fail(GraphRule::tensor_rule, index, {wrong}, {});
    } else
      fail(GraphRule::shape_meets, index, in, wanted_by<L>());
    if constexpr (requires { L::longest_sequence; })
      graph.longest_sequence =
          graph.longest_sequence == 0 || L::longest_sequence < graph.longest_sequence ? L::longest_sequence : graph.longest_sequence;
    graph.leaves.push_back(site);
    FrameSite& frame = graph.frames.back();
    for (const ParameterFacts& facts : site.facts.parameters) {
      Index& end = facts.kind == ParameterKind::buffer ? frame.buffer_elems : frame.parameter_elems;
      graph.parameters.push_back({.facts = facts, .leaf = index, .owner = int(graph.parameters.size()), .offset = end});
      end += round_up(facts.elems(), parameter_alignment_elems);
    }
    graph.ops.push_back({.kind = OpKind::leaf, .leaf = index, .input = input, .output = tensor(out.valid() ? out : in)});
    return graph.ops.back().output;
  }

  // The last leaf's first parameter becomes another one's. Its own place in the arena is given back.
  constexpr void tie(const char* owner) {
    LeafSite& site = graph.leaves.back();
    if (failed() || site.facts.parameters.empty()) return fail(GraphRule::tie_owner, int(graph.leaves.size()) - 1, {}, {});
    const int own = site.first_parameter;
    int found = -1;
    for (int i = 0; i < own; ++i)
      if (matches(i, owner)) found = graph.parameters[std::size_t(i)].owner;
    if (found < 0) return fail(GraphRule::tie_owner, int(graph.leaves.size()) - 1, {}, {});
    ParameterSite &mine = graph.parameters[std::size_t(own)], &other = graph.parameters[std::size_t(found)];
    if (mine.facts.extents != other.facts.extents)
      return fail(GraphRule::tie_extents, int(graph.leaves.size()) - 1, in_features(mine), in_features(other));
    const int frame = graph.leaves[std::size_t(other.leaf)].frame;
    if (graph.frames[std::size_t(frame)].count > 1 && frame != site.frame)
      return fail(GraphRule::tie_repeat, int(graph.leaves.size()) - 1, {}, {});
    const Index given_back = round_up(mine.facts.elems(), parameter_alignment_elems);
    graph.frames.back().parameter_elems -= given_back;
    mine.owner = found;
    for (int i = own + 1; i < int(graph.parameters.size()); ++i)
      if (graph.parameters[std::size_t(i)].facts.kind != ParameterKind::buffer) graph.parameters[std::size_t(i)].offset -= given_back;
  }

 private:
  template <class L>
  static constexpr Features wanted_by() {
    if constexpr (requires { L::input; })
      return L::input;
    else
      return {};
  }
  static constexpr Features in_features(const ParameterSite& site) {
    return {site.facts.extents.size() > 0 ? site.facts.extents[0] : 1, site.facts.extents.size() > 1 ? site.facts.extents[1] : 1};
  }
  // Whether "a.b.name" is the path of a parameter. A repetition's number never matches: a tie has one owner.
  constexpr bool matches(int parameter, const char* text) const {
    const ParameterSite& site = graph.parameters[std::size_t(parameter)];
    const auto eat = [&](const char* piece) {
      while (*piece && *piece == *text) ++piece, ++text;
      return *piece == 0;
    };
    for (const PathPiece& piece : graph.leaves[std::size_t(site.leaf)].path) {
      char digits[24]{'*'};
      if (piece.kind == PathPiece::Kind::number) {
        int length = 0;
        for (Index rest = piece.number; length == 0 || rest > 0; rest /= 10) ++length;
        for (Index rest = piece.number, at = length; at > 0; rest /= 10) digits[--at] = char('0' + rest % 10);
      }
      if (!eat(piece.kind == PathPiece::Kind::name ? piece.text : digits) || *text++ != '.') return false;
    }
    return eat(site.facts.name) && *text == 0;
  }
};

// ── one specialisation per kind of node: its leaves, and how it is written into the open frame ──

template <class Node>
concept NamedNode = requires {
  typename Node::NamedNode;
};
template <class Node>
concept TiedNode = requires {
  typename Node::TiedLayer;
};

template <class Node>
struct Lower {  // a layer
  using Leaves = Pack<Node>;
  static constexpr int run(GraphBuilder& builder, int input, bool named = false) {
    if constexpr (Layer<Node>) {
      if (!builder.failed()) return builder.leaf<Node>(input, named);
    } else {
      builder.fail(GraphRule::not_a_layer, int(builder.graph.leaves.size()), {}, {});
    }
    return input;
  }
};

template <class... Nodes>
using LeavesOf = decltype((Pack<>{} + ... + typename Lower<Nodes>::Leaves{}));

template <class... Nodes>
constexpr int run_children(GraphBuilder& builder, int input) {
  ((input = Lower<Nodes>::run(builder, input)), ...);
  return input;
}

template <class... Nodes>
struct Lower<Sequential<Nodes...>> {
  using Leaves = LeavesOf<Nodes...>;
  static constexpr int run(GraphBuilder& builder, int input) { return run_children<Nodes...>(builder, input); }
};

template <Index C, Index H, Index W>
struct Lower<Input<C, H, W>> {
  using Leaves = Pack<>;
  static constexpr int run(GraphBuilder&, int input) { return input; }
};

// Nodes that take the name of a Named around them for themselves: layers, and Repeat.
template <class Node>
concept TakesName = requires(GraphBuilder& builder) {
  Lower<Node>::run(builder, 0, true);
};

template <NamedNode Node>
struct Lower<Node> {
  using Inner = typename Node::NamedNode;
  using Leaves = typename Lower<Inner>::Leaves;
  static constexpr int run(GraphBuilder& builder, int input) {
    return builder.scope(path_name(Node::node_name), [&] {
      if constexpr (TakesName<Inner>)
        return Lower<Inner>::run(builder, input, true);
      else
        return Lower<Inner>::run(builder, input);
    });
  }
};

template <TiedNode Node>
struct Lower<Node> {
  using Leaves = typename Lower<typename Node::TiedLayer>::Leaves;
  static constexpr int run(GraphBuilder& builder, int input, bool named = false) {
    const int output = Lower<typename Node::TiedLayer>::run(builder, input, named);
    if (!builder.failed()) builder.tie(Node::owner);
    return output;
  }
};

template <class... Nodes>
struct Lower<Residual<Nodes...>> {
  using Leaves = LeavesOf<Nodes...>;
  static constexpr int run(GraphBuilder& builder, int input) {
    const std::size_t before = builder.graph.ops.size();
    const int output = run_children<Nodes...>(builder, input);
    if (builder.failed()) return output;
    const int leaf = int(builder.graph.leaves.size()) - 1;
    if (builder.features(output) != builder.features(input)) {
      builder.fail(GraphRule::residual_matches, leaf, builder.features(output), builder.features(input));
      return output;
    }
    if (builder.graph.ops.size() > before) {  // the last layer adds x itself where it can: one pass less
      OpSite& last = builder.graph.ops.back();
      if (last.kind == OpKind::leaf && last.second < 0 && last.output == output && builder.graph.leaves.back().facts.adds_residual) {
        last.second = input;
        return output;
      }
    }
    return builder.add(input, output);
  }
};

template <Index N, class... Nodes>
struct Lower<Repeat<N, Nodes...>> {  // inside a frame: written out N times, with the same layer types
  template <Index... I>
  static auto written_out(std::integer_sequence<Index, I...>) -> decltype((Pack<>{} + ... + (void(I), LeavesOf<Nodes...>{})));
  using Leaves = decltype(written_out(std::make_integer_sequence<Index, N>{}));
  static constexpr int run(GraphBuilder& builder, int input, bool named = false) {
    const auto repetitions = [&] {
      for (Index i = 0; i < N; ++i) input = builder.scope(path_number(i), [&] { return run_children<Nodes...>(builder, input); });
      return input;
    };
    return named ? repetitions() : builder.scope(path_number(builder.next_number++), repetitions);
  }
};

template <class... Branches>
struct Lower<Sum<Branches...>> {
  using Leaves = LeavesOf<Branches...>;
  static constexpr int run(GraphBuilder& builder, int input) {
    int total = -1;
    const auto branch = [&]<class Branch>() {
      const int output = Lower<Branch>::run(builder, input);
      if (builder.failed()) return;
      if (total >= 0 && builder.features(output) != builder.features(total))
        builder.fail(GraphRule::sum_matches, int(builder.graph.leaves.size()) - 1, builder.features(output), builder.features(total));
      else
        total = total < 0 ? output : builder.add(total, output);
    };
    (branch.template operator()<Branches>(), ...);
    return total < 0 ? input : total;
  }
};

template <class... Branches>
struct Lower<Concat<Branches...>> {
  using Leaves = LeavesOf<Branches...>;
  static constexpr int run(GraphBuilder& builder, int input) {
    std::array<int, sizeof...(Branches)> parts{};
    std::size_t place = 0;
    ((parts[place++] = Lower<Branches>::run(builder, input)), ...);
    if (builder.failed()) return input;
    Features out = builder.features(parts[0]);
    out.channels = 0;
    for (int part : parts) {
      const Features features = builder.features(part);
      if (features.height != out.height || features.width != out.width || features.element != out.element)
        builder.fail(GraphRule::concat_matches, int(builder.graph.leaves.size()) - 1, features, builder.features(parts[0]));
      out.channels += features.channels;
    }
    const int output = builder.tensor(out);
    Index column = 0;
    for (int part : parts) {
      builder.graph.ops.push_back({.kind = OpKind::place, .input = part, .output = output, .column = column});
      column += builder.features(part).elems();
    }
    return output;
  }
};

// ── top level: what opens frames ──

template <class Node>
struct LowerTop {
  using Leaves = typename Lower<Node>::Leaves;
  static constexpr void run(GraphBuilder& builder) {
    if (builder.failed()) return;
    builder.open_frame(1);
    builder.close_frame(Lower<Node>::run(builder, 0));
  }
};
template <class... Nodes>
struct LowerTop<Sequential<Nodes...>> {
  using Leaves = decltype((Pack<>{} + ... + typename LowerTop<Nodes>::Leaves{}));
  static constexpr void run(GraphBuilder& builder) { (LowerTop<Nodes>::run(builder), ...); }
};
template <Index N, class... Nodes>
struct LowerTop<Repeat<N, Nodes...>> {
  using Leaves = LeavesOf<Nodes...>;  // once: the repetitions are a count
  static constexpr void run(GraphBuilder& builder, bool named = false) {
    if (builder.failed()) return;
    const auto repetitions = [&] {
      builder.open_frame(N);
      const int output = builder.scope({}, [&] { return run_children<Nodes...>(builder, 0); });
      builder.close_frame(output);
      return 0;
    };
    if (named)
      repetitions();
    else
      builder.scope(path_number(builder.next_number++), repetitions);
  }
};
template <class Node>
inline constexpr bool is_repeat = false;
template <Index N, class... Nodes>
inline constexpr bool is_repeat<Repeat<N, Nodes...>> = true;
template <class Node>
inline constexpr bool is_sequential = false;
template <class... Nodes>
inline constexpr bool is_sequential<Sequential<Nodes...>> = true;

template <NamedNode Node>
struct LowerTop<Node> {
  using Inner = typename Node::NamedNode;
  using Leaves = typename LowerTop<Inner>::Leaves;
  static constexpr void run(GraphBuilder& builder) {
    if (builder.failed()) return;
    if constexpr (is_repeat<Inner> || is_sequential<Inner>) {  // these open frames of their own
      builder.scope(path_name(Node::node_name), [&] {
        if constexpr (is_repeat<Inner>)
          LowerTop<Inner>::run(builder, true);
        else
          LowerTop<Inner>::run(builder);
        return 0;
      });
    } else {
      builder.open_frame(1);
      builder.close_frame(Lower<Node>::run(builder, 0));
    }
  }
};

// The first node that says what it takes.
template <class Node>
struct NaturalInput {
  static constexpr Features get() {
    if constexpr (requires { Node::input; })
      return Node::input;
    else
      return {};
  }
};
template <template <class...> class Many, class First, class... Rest>
struct NaturalInput<Many<First, Rest...>> : NaturalInput<First> {};
template <Index N, class First, class... Rest>
struct NaturalInput<Repeat<N, First, Rest...>> : NaturalInput<First> {};
template <NamedNode Node>
struct NaturalInput<Node> : NaturalInput<typename Node::NamedNode> {};

// The tables of a model for sequences of a given length (which only the flops depend on).
template <class Model>
constexpr GraphData lower(Index sequence = 1) {
  GraphBuilder builder;
  builder.sequence = sequence;
  builder.graph.input = builder.graph.output = NaturalInput<Model>::get();
  LowerTop<Model>::run(builder);
  if (!builder.failed() && builder.graph.ops.empty()) builder.fail(GraphRule::empty, 0, {}, {});
  return builder.graph;
}

template <class Model>
using Leaves = typename LowerTop<Model>::Leaves;

// The features that each leaf takes, as constants that its code is specialised on.
template <class Model>
constexpr auto leaf_inputs() {
  std::array<Features, std::size_t(Leaves<Model>::size)> inputs{};
  const GraphData graph = lower<Model>();
  for (std::size_t i = 0; i < inputs.size() && i < graph.leaves.size(); ++i) inputs[i] = graph.leaves[i].in;
  return inputs;
}

}  // namespace weft
