// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/layer/facts.hpp"
#include "weft/shape/conv2d_sizes.hpp"

namespace weft {

struct Conv2dOptions {
  Index kernel = 3, stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true;

  // Of one rank, where the ranks divide the groups.
  constexpr Conv2dOptions with_groups(Index own_groups) const { return {kernel, stride, padding, dilation, own_groups, bias}; }
  bool operator==(const Conv2dOptions&) const = default;
};

// Two-dimensional cross-correlation, NCHW, with torch.nn.Conv2d's layout and default initial values.
// Shapes: x (B, C, H, W), weight (K, C / groups, kernel, kernel), bias (K), y (B, K, H', W') with
// H' = (H + 2·padding - dilation·(kernel - 1) - 1) / stride + 1. Cost: 2·K·H'·W'·C/groups·kernel² flops an image; keeps x.
template <Index C, Index K, Conv2dOptions options = Conv2dOptions{}>
struct Conv2d {
  static constexpr const char* name = "conv2d";
  static constexpr int version = 1;

  static constexpr Conv2dSizes sizes(Features in) {
    return {C, K, in.height, in.width, options.kernel, options.kernel, options.stride, options.padding, options.dilation, options.groups};
  }
  static constexpr bool valid = options.groups > 0 && C % options.groups == 0 && K % options.groups == 0 && options.kernel > 0 &&
                                options.stride > 0 && options.dilation > 0 && options.padding >= 0;
  static constexpr bool explain() {
    static_assert(options.groups > 0 && C % options.groups == 0 && K % options.groups == 0,
                  "weft[conv2d.groups]: the groups must divide the channels in and out; change groups, C or K");
    static_assert(options.kernel > 0 && options.stride > 0 && options.dilation > 0 && options.padding >= 0,
                  "weft[conv2d.options]: kernel, stride and dilation must be at least 1, padding at least 0");
    return true;
  }

  static constexpr Features output(Features in) {
    const Index reach = options.dilation * (options.kernel - 1) + 1;
    if (in.element != Element::real || in.channels != C || in.height + 2 * options.padding < reach ||
        in.width + 2 * options.padding < reach)
      return {};
    return {K, sizes(in).out_height(), sizes(in).out_width()};
  }
  static constexpr LayerFacts facts(Features in, Index) {
    LayerFacts facts;
    const Index fan_in = C / options.groups * options.kernel * options.kernel;
    facts.parameters.push(
        parameter("weight", ParameterKind::weight, uniform_by_fan_in(fan_in), K, C / options.groups, options.kernel, options.kernel));
    if (options.bias) facts.parameters.push(parameter("bias", ParameterKind::bias, uniform_by_fan_in(fan_in), K));
    facts.splits_backward = true;
    facts.needs_input = true;
    facts.forward_flops_per_row = 2.0 * double(output(in).elems()) * double(fan_in);
    facts.backward_flops_per_row = 2.0 * facts.forward_flops_per_row;
    return facts;
  }

  // A convolution in groups goes through them side by side: whole groups of slices, or none.
  static constexpr FixedVector<SplitRule, 4> splits(Features) {
    FixedVector<SplitRule, 4> out;
    if (options.groups == 1) {
      out.push(split_rule(SplitKind::outputs, K, 0, options.bias ? 0 : -2));
      out.push(split_rule(SplitKind::inputs, C, 1, options.bias ? -1 : -2));
    } else {
      out.push(split_rule(SplitKind::features, options.groups, 0, options.bias ? 0 : -2));
    }
    return out;
  }
  // The bias is whole where inputs are divided: the first rank adds it.
  template <SplitKind kind, Index ranks, Index in, Index out>
  using Part = Conv2d<in, out, options.with_groups(kind == SplitKind::features ? options.groups / ranks : 1)>;

  template <class Context>
  static void forward(Context& context) {
    context.kernels().conv2d_forward(context.rows(), sizes(Context::in), context.input(), context.parameter(0),
                                     context.parameter_if(options.bias && context.adds_whole(), 1), context.output(), context.scratch());
  }
  template <class Context>
  static void backward(Context& context) {
    backward_weight(context);
    backward_input(context);
  }
  template <class Context>
  static void backward_input(Context& context) {
    if (context.input_gradient())
      context.kernels().conv2d_backward_input(context.rows(), sizes(Context::in), context.output_gradient(), context.parameter(0),
                                              context.input_gradient(), context.scratch());
  }
  template <class Context>
  static void backward_weight(Context& context) {
    context.kernels().conv2d_backward_weight(context.rows(), sizes(Context::in), context.input(), context.output_gradient(),
                                             context.gradient(0), context.gradient_if(options.bias, 1), context.scratch());
  }
};

}  // namespace weft
