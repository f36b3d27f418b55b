// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/base/number.hpp"
#include "weft/layer/facts.hpp"

namespace weft {

// y = (x - mean) / √(variance + ε) · gain + shift over the features of a row, with the biased variance (Ba et al., arXiv 1607.06450).
// Shapes: x, y (rows, C), gain, shift (C). Keeps x and two numbers a row.
template <Index C, Number epsilon = 1e-5>
struct LayerNorm {
  static constexpr const char* name = "layer_norm";
  static constexpr int version = 1;
  static constexpr Features input{C};

  static constexpr Features output(Features in) { return in == Features{C} ? in : Features{}; }

  static constexpr FixedVector<SplitRule, 4> splits(Features) {
    FixedVector<SplitRule, 4> out;
    out.push(split_rule(SplitKind::rows, 0));
    return out;
  }

  static constexpr LayerFacts facts(Features, Index) {
    LayerFacts facts;
    facts.parameters.push(parameter("gain", ParameterKind::norm, {InitialValue::Kind::constant, 1}, C));
    facts.parameters.push(parameter("shift", ParameterKind::norm, {InitialValue::Kind::constant, 0}, C));
    facts.saved.push({.elems_per_row = 1});  // mean
    facts.saved.push({.elems_per_row = 1});  // 1 / √(variance + ε)
    facts.needs_input = true;
    facts.adds_input_gradient = true;
    facts.forward_flops_per_row = 8.0 * double(C);
    facts.backward_flops_per_row = 14.0 * double(C);
    return facts;
  }

  template <class Context>
  static void forward(Context& context) {
    context.kernels().layer_norm_forward(context.rows(), C, context.real(epsilon.value), context.input(), context.parameter(0),
                                         context.parameter(1), context.output(), context.saved(0), context.saved(1));
  }

  template <class Context>
  static void backward(Context& context) {
    context.kernels().layer_norm_backward(context.rows(), C, context.input(), context.parameter(0), context.saved(0), context.saved(1),
                                          context.output_gradient(), context.input_gradient(), context.gradient(0), context.gradient(1),
                                          context.accumulates());
  }
};

// y = x / √(mean(x²) + ε) · gain (Zhang and Sennrich, arXiv 1910.07467). Shapes: x, y (rows, C), gain (C).
template <Index C, Number epsilon = 1e-5>
struct RmsNorm {
  static constexpr const char* name = "rms_norm";
  static constexpr int version = 1;
  static constexpr Features input{C};

  static constexpr Features output(Features in) { return in == Features{C} ? in : Features{}; }

  static constexpr FixedVector<SplitRule, 4> splits(Features) {
    FixedVector<SplitRule, 4> out;
    out.push(split_rule(SplitKind::rows, 0));
    return out;
  }

  static constexpr LayerFacts facts(Features, Index) {
    LayerFacts facts;
    facts.parameters.push(parameter("gain", ParameterKind::norm, {InitialValue::Kind::constant, 1}, C));
    facts.saved.push({.elems_per_row = 1});
    facts.needs_input = true;
    facts.adds_input_gradient = true;
    facts.forward_flops_per_row = 4.0 * double(C);
    facts.backward_flops_per_row = 10.0 * double(C);
    return facts;
  }

  template <class Context>
  static void forward(Context& context) {
    context.kernels().rms_norm_forward(context.rows(), C, context.real(epsilon.value), context.input(), context.parameter(0),
                                       context.output(), context.saved(0));
  }

  template <class Context>
  static void backward(Context& context) {
    context.kernels().rms_norm_backward(context.rows(), C, context.input(), context.parameter(0), context.saved(0),
                                        context.output_gradient(), context.input_gradient(), context.gradient(0), context.accumulates());
  }
};

}  // namespace weft
