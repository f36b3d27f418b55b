// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/layer/facts.hpp"
#include "weft/shape/pool2d_sizes.hpp"

namespace weft {

struct Pool2dOptions {
  Index kernel = 2, stride = 2, padding = 0;
  bool operator==(const Pool2dOptions&) const = default;
};

// What both kinds of pooling share. Shapes: x (B, C, H, W), y (B, C, H', W'), H' = (H + 2·padding - kernel) / stride + 1.
template <Pool2dOptions options>
struct Pool2dLayer {
  static constexpr Pool2dSizes sizes(Features in) {
    return {in.channels, in.height, in.width, options.kernel, options.stride, options.padding};
  }
  static constexpr bool valid = options.kernel > 0 && options.stride > 0 && options.padding >= 0 && 2 * options.padding <= options.kernel;
  static constexpr bool explain() {
    static_assert(options.kernel > 0 && options.stride > 0, "weft[pool2d.options]: kernel and stride must be at least 1");
    static_assert(options.padding >= 0 && 2 * options.padding <= options.kernel,
                  "weft[pool2d.padding]: padding is at most half the kernel");
    return true;
  }

  static constexpr Features output(Features in) {
    if (in.element != Element::real || in.height + 2 * options.padding < options.kernel || in.width + 2 * options.padding < options.kernel)
      return {};
    return {in.channels, sizes(in).out_height(), sizes(in).out_width()};
  }
  static constexpr FixedVector<SplitRule, 4> splits(Features in) { return side_by_side(in.channels); }
};

// The largest value under the kernel; keeps where it was.
template <Pool2dOptions options = Pool2dOptions{}>
struct MaxPool2d : Pool2dLayer<options> {
  using Pool2dLayer<options>::output, Pool2dLayer<options>::sizes;
  static constexpr const char* name = "max_pool2d";
  static constexpr int version = 1;

  static constexpr LayerFacts facts(Features in, Index) {
    LayerFacts facts;
    facts.saved.push({.elems_per_row = output(in).elems(), .integer = true});
    facts.forward_flops_per_row = double(output(in).elems() * options.kernel * options.kernel);
    facts.backward_flops_per_row = double(output(in).elems());
    return facts;
  }
  template <class Context>
  static void forward(Context& context) {
    context.kernels().max_pool2d_forward(context.rows(), sizes(Context::in), context.input(), context.output(), context.saved_integers(0));
  }
  template <class Context>
  static void backward(Context& context) {
    if (context.input_gradient())
      context.kernels().max_pool2d_backward(context.rows(), sizes(Context::in), context.saved_integers(0), context.output_gradient(),
                                            context.input_gradient());
  }
};

// The mean under the kernel; padding counts as zeros, as torch.nn.AvgPool2d. Keeps nothing.
template <Pool2dOptions options = Pool2dOptions{}>
struct AveragePool2d : Pool2dLayer<options> {
  using Pool2dLayer<options>::output, Pool2dLayer<options>::sizes;
  static constexpr const char* name = "average_pool2d";
  static constexpr int version = 1;

  static constexpr LayerFacts facts(Features in, Index) {
    LayerFacts facts;
    facts.forward_flops_per_row = facts.backward_flops_per_row = double(output(in).elems() * options.kernel * options.kernel);
    return facts;
  }
  template <class Context>
  static void forward(Context& context) {
    context.kernels().average_pool2d_forward(context.rows(), sizes(Context::in), context.input(), context.output());
  }
  template <class Context>
  static void backward(Context& context) {
    if (context.input_gradient())
      context.kernels().average_pool2d_backward(context.rows(), sizes(Context::in), context.output_gradient(), context.input_gradient());
  }
};

// (B, C, H, W) read as (B, C·H·W). No work, no copy.
struct Flatten {
  static constexpr const char* name = "flatten";
  static constexpr int version = 1;
  static constexpr Features output(Features in) { return in.element == Element::real ? Features{in.elems()} : Features{}; }
  static constexpr FixedVector<SplitRule, 4> splits(Features in) { return side_by_side(in.channels); }  // channels stay together
  static constexpr LayerFacts facts(Features, Index) {
    LayerFacts facts;
    facts.passes = facts.in_place = true;
    return facts;
  }
  template <class Context>
  static void forward(Context& context) {
    context.pass_value();
  }
  template <class Context>
  static void backward(Context& context) {
    context.pass_gradient();
  }
};

}  // namespace weft
