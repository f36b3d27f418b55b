// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/layer/facts.hpp"

namespace weft {

struct BatchNorm2dOptions {
  double epsilon = 1e-5, momentum = 0.1;
  bool operator==(const BatchNorm2dOptions&) const = default;
};

// Normalises every channel over the global batch: all images of the step, whatever ranks and micro-batches hold them (Ioffe and Szegedy,
// arXiv 1502.03167; torch.nn.BatchNorm2d's conventions: biased variance to normalise, unbiased in the running variance).
// Shapes: x, y (B, C, H, W); gain, shift, running_mean, running_variance (C).
// Communication: forward and backward each one all-reduce of 2·C + 1 doubles over the data ranks. The plan runs the model segment by
// segment: all micro-batches up to this layer, then the statistics; so activations of all micro-batches are held.
template <Index C, BatchNorm2dOptions options = BatchNorm2dOptions{}>
struct BatchNorm2d {
  static constexpr const char* name = "batch_norm2d";
  static constexpr int version = 1;

  static constexpr Features output(Features in) { return in.element == Element::real && in.channels == C ? in : Features{}; }

  static constexpr LayerFacts facts(Features in, Index) {
    LayerFacts facts;
    facts.parameters.push(parameter("gain", ParameterKind::norm, {InitialValue::Kind::constant, 1}, C));
    facts.parameters.push(parameter("shift", ParameterKind::norm, {InitialValue::Kind::constant, 0}, C));
    facts.parameters.push(parameter("running_mean", ParameterKind::buffer, {InitialValue::Kind::constant, 0}, C));
    facts.parameters.push(parameter("running_variance", ParameterKind::buffer, {InitialValue::Kind::constant, 1}, C));
    facts.needs_input = true;
    facts.join_elems = 2 * C;
    facts.step_elems = 2 * C;  // mean | 1 / √(variance + ε)
    facts.forward_flops_per_row = 7.0 * double(in.elems());
    facts.backward_flops_per_row = 12.0 * double(in.elems());
    return facts;
  }

  // Channels do not concern each other: each rank of a tensor group joins its own over the data ranks.
  static constexpr FixedVector<SplitRule, 4> splits(Features) {
    FixedVector<SplitRule, 4> out;
    out.push(split_rule(SplitKind::features, C, 0, 0, 0, 0));
    return out;
  }
  template <SplitKind kind, Index ranks>
  using Part = BatchNorm2d<C / ranks, options>;

  template <class Context>
  static void statistics(Context& context) {
    context.kernels().batch_norm2d_statistics(context.rows(), C, Context::in.plane(), context.input(), context.join_sums());
  }
  template <class Context>
  static void joined(Context& context) {  // once a step, after the sums of all ranks and micro-batches have met
    context.kernels().batch_norm2d_finish(C, context.join_rows() * double(Context::in.plane()), context.join_sums(), options.epsilon,
                                          options.momentum, context.step_state(), context.step_state() + C, context.buffer(2),
                                          context.buffer(3));
  }
  template <class Context>
  static void forward(Context& context) {
    if (context.training())
      context.kernels().batch_norm2d_forward(context.rows(), C, Context::in.plane(), context.input(), context.step_state(),
                                             context.step_state() + C, context.parameter(0), context.parameter(1), context.output());
    else
      context.kernels().batch_norm2d_evaluate(context.rows(), C, Context::in.plane(), context.input(), context.parameter(2),
                                              context.parameter(3), options.epsilon, context.parameter(0), context.parameter(1),
                                              context.output());
  }
  template <class Context>
  static void backward_statistics(Context& context) {
    context.kernels().batch_norm2d_backward_statistics(context.rows(), C, Context::in.plane(), context.input(), context.step_state(),
                                                       context.step_state() + C, context.output_gradient(), context.join_sums(),
                                                       context.gradient(0), context.gradient(1));
  }
  template <class Context>
  static void backward(Context& context) {
    if (context.input_gradient())
      context.kernels().batch_norm2d_backward(
          context.rows(), C, Context::in.plane(), context.input(), context.step_state(), context.step_state() + C, context.parameter(0),
          context.output_gradient(), context.join_sums(), context.join_rows() * double(Context::in.plane()), context.input_gradient());
  }
};

}  // namespace weft
