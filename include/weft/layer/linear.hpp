// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/layer/facts.hpp"

namespace weft {

enum class Bias : char { no, yes };

// y = x Wᵀ + b, with torch.nn.Linear's layout and default initial values.
// Shapes: x (rows, C), weight (K, C), bias (K), y (rows, K).
// Cost: 2·C·K flops a row forward, twice that backward; keeps x.
template <Index C, Index K, Bias bias = Bias::yes>
struct Linear {
  static constexpr const char* name = "linear";
  static constexpr int version = 1;
  static constexpr Features input{C};

  static constexpr bool valid = C > 0 && K > 0;
  static constexpr bool explain() {
    static_assert(C > 0 && K > 0, "weft[linear.extent]: Linear<C, K> needs features in and out; C and K must be at least 1");
    return true;
  }

  static constexpr Features output(Features in) {
    return in.element == Element::real && in.elems() == C && in.plane() == 1 ? Features{K} : Features{};
  }

  static constexpr LayerFacts facts(Features, Index) {
    LayerFacts facts;
    facts.parameters.push(parameter("weight", ParameterKind::weight, uniform_by_fan_in(C), K, C));
    if (bias == Bias::yes) facts.parameters.push(parameter("bias", ParameterKind::bias, uniform_by_fan_in(C), K));
    facts.splits_backward = true;
    facts.needs_input = true;
    facts.adds_residual = true;
    facts.adds_input_gradient = true;
    facts.forward_flops_per_row = 2.0 * double(C) * double(K);
    facts.backward_flops_per_row = 4.0 * double(C) * double(K);
    return facts;
  }

  static constexpr FixedVector<SplitRule, 4> splits(Features) {
    FixedVector<SplitRule, 4> out;
    out.push(split_rule(SplitKind::outputs, K, 0, bias == Bias::yes ? 0 : -2));
    out.push(split_rule(SplitKind::inputs, C, 1, bias == Bias::yes ? -1 : -2));
    return out;
  }
  // The bias is whole where inputs are divided: the first rank adds it.
  template <SplitKind kind, Index ranks, Index in, Index out>
  using Part = Linear<in, out, bias>;

  template <class Context>
  static void forward(Context& context) {
    context.kernels().linear_forward(context.rows(), C, K, context.input(), context.parameter(0),
                                     context.parameter_if(bias == Bias::yes && context.adds_whole(), 1), context.residual(),
                                     context.output(), context.scratch());
  }

  template <class Context>
  static void backward(Context& context) {
    backward_weight(context);
    backward_input(context);
  }

  template <class Context>
  static void backward_input(Context& context) {
    if (context.input_gradient())
      context.kernels().linear_backward_input(context.rows(), C, K, context.output_gradient(), context.parameter(0),
                                              context.input_gradient(), context.accumulates(), context.scratch());
  }

  template <class Context>
  static void backward_weight(Context& context) {
    context.kernels().linear_backward_weight(context.rows(), C, K, context.input(), context.output_gradient(), context.gradient(0),
                                             context.gradient_if(bias == Bias::yes, 1), context.scratch());
  }
};

}  // namespace weft
