// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/layer/facts.hpp"

namespace weft {

// y = table[token]. Shapes: tokens (rows) int32, table (V, C), y (rows, C). A token outside [0, V) is an error that names its row.
// Initial values N(0, 1), as torch.nn.Embedding; keeps the tokens.
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

  template <class Context>
  static void forward(Context& context) {
    context.kernels().position_forward(context.batch(), context.sequence(), context.past(), C, context.input(), context.parameter(0),
                                       context.output());
  }

  template <class Context>
  static void backward(Context& context) {
    context.kernels().position_backward(context.batch(), context.sequence(), C, context.output_gradient(), context.gradient(0));
    context.pass_gradient();
  }
};

}  // namespace weft
