// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/layer/facts.hpp"

namespace weft {

// y = table[token]. Shapes: tokens (rows) int32, table (V, C), y (rows, C). A token outside [0, V) is an error that names its row.
// Initial values N(0, 1), as torch.nn.Embedding; keeps the tokens.
// One rank's tokens of an Embedding among `ranks`: rows of the table from rank · divide_up(V, ranks) on. Others give zeros.
template <Index V, Index C, Index ranks>
struct VocabularyPart {
  static constexpr Index own = divide_up(V, ranks);
  static constexpr Features output(Features in) { return in == token_features ? Features{C} : Features{}; }

  template <class Context>
  static void forward(Context& context) {
    const Index first = context.tensor_rank() * own;
    for (Index r = 0; r < context.rows(); ++r) {
      const Index token = context.tokens()[r];
      if (token < 0 || token >= V) context.refuse_token(r, V);
      auto* y = context.output() + r * C;
      const auto* row = context.parameter(0) + (token - first) * C;
      const bool is_own = token >= first && token < first + own;
      for (Index c = 0; c < C; ++c) y[c] = is_own ? row[c] : 0;
    }
  }
  template <class Context>
  static void backward(Context& context) {
    const Index first = context.tensor_rank() * own;
    for (Index r = 0; r < context.rows(); ++r) {
      const Index token = context.tokens()[r];
      if (token < first || token >= first + own) continue;
      auto* row = context.gradient(0) + (token - first) * C;
      const auto* dy = context.output_gradient() + r * C;
      for (Index c = 0; c < C; ++c) row[c] += dy[c];
    }
  }
};

template <Index V, Index C>
struct Embedding {
  static constexpr const char* name = "embedding";
  static constexpr int version = 1;
  static constexpr Features input = token_features;

  static constexpr bool valid = V > 0 && C > 0;
  static constexpr bool explain() {
    static_assert(V > 0 && C > 0, "weft[embedding.extent]: Embedding<V, C> needs a vocabulary and features; V and C must be at least 1");
    return true;
  }

  static constexpr Features output(Features in) { return in == token_features ? Features{C} : Features{}; }

  static constexpr LayerFacts facts(Features, Index) {
    LayerFacts facts;
    facts.parameters.push(parameter("table", ParameterKind::embedding, {InitialValue::Kind::normal, 1}, V, C));
    facts.needs_input = true;
    facts.backward_flops_per_row = double(C);
    return facts;
  }

  static constexpr FixedVector<SplitRule, 4> splits(Features) {
    FixedVector<SplitRule, 4> out;
    out.push(split_rule(SplitKind::vocabulary, 0, 0));
    return out;
  }
  template <SplitKind kind, Index ranks>
  using Part = VocabularyPart<V, C, ranks>;

  template <class Context>
  static void forward(Context& context) {
    const Index bad = context.kernels().embedding_forward(context.rows(), V, C, context.tokens(), context.parameter(0), context.output());
    if (bad >= 0) context.refuse_token(bad, V);
  }

  template <class Context>
  static void backward(Context& context) {
    context.kernels().embedding_backward(context.rows(), V, C, context.tokens(), context.output_gradient(), context.gradient(0));
  }
};

// y[b, s] = x[b, s] + table[past + s]: learned positions. Shapes: x, y (B, S, C), table (S, C). The sequence may be shorter than the table.
template <Index S, Index C>
struct PositionEmbedding {
  static constexpr const char* name = "position";
  static constexpr int version = 1;
  static constexpr Features input{C};
  static constexpr Index longest_sequence = S;

  static constexpr bool valid = S > 0 && C > 0;
  static constexpr bool explain() {
    static_assert(S > 0 && C > 0,
                  "weft[position.extent]: PositionEmbedding<S, C> needs positions and features; S and C must be at least 1");
    return true;
  }

  static constexpr Features output(Features in) { return in == Features{C} ? in : Features{}; }

  static constexpr LayerFacts facts(Features, Index) {
    LayerFacts facts;
    facts.parameters.push(parameter("table", ParameterKind::embedding, {InitialValue::Kind::normal, 0.02}, S, C));
    facts.in_place = true;
    facts.forward_flops_per_row = double(C);
    facts.backward_flops_per_row = double(C);
    return facts;
  }

  static constexpr FixedVector<SplitRule, 4> splits(Features) {
    FixedVector<SplitRule, 4> out;
    out.push(split_rule(SplitKind::rows, 0));
    return out;
  }

  template <class Context>
  static void forward(Context& context) {
    context.for_each_part_of_sequence([&](Index row, Index batch, Index sequence, Index past) {
      context.kernels().position_forward(batch, sequence, past, C, context.input() + row * C, context.parameter(0),
                                         context.output() + row * C);
    });
  }

  template <class Context>
  static void backward(Context& context) {
    context.for_each_part_of_sequence([&](Index row, Index batch, Index sequence, Index past) {
      context.kernels().position_backward(batch, sequence, C, context.output_gradient() + row * C, context.gradient(0) + past * C);
    });
    context.pass_gradient();
  }
};

}  // namespace weft
