// SPDX-License-Identifier: Apache-2.0
// Activations, elementwise, for any features.
#pragma once

#include "weft/layer/facts.hpp"

namespace weft {

// What elementwise layers share: features pass through unchanged.
struct ElementwiseLayer {
  static constexpr Features output(Features in) { return in.element == Element::real ? in : Features{}; }
  static constexpr FixedVector<SplitRule, 4> splits(Features in) { return side_by_side(in.channels); }
};

// y = max(x, 0). Keeps y, which may be the memory of x.
struct Relu : ElementwiseLayer {
  static constexpr const char* name = "relu";
  static constexpr int version = 1;

  static constexpr LayerFacts facts(Features in, Index) {
    LayerFacts facts;
    facts.needs_output = true;
    facts.in_place = true;
    facts.forward_flops_per_row = facts.backward_flops_per_row = double(in.elems());
    return facts;
  }
  template <class Context>
  static void forward(Context& context) {
    context.kernels().relu_forward(context.input_elems(), context.input(), context.output());
  }
  template <class Context>
  static void backward(Context& context) {
    if (context.input_gradient())
      context.kernels().relu_backward(context.input_elems(), context.output_value(), context.output_gradient(), context.input_gradient());
  }
};

// y = x · sigmoid(x). Keeps x.
struct Silu : ElementwiseLayer {
  static constexpr const char* name = "silu";
  static constexpr int version = 1;

  static constexpr LayerFacts facts(Features in, Index) {
    LayerFacts facts;
    facts.needs_input = true;
    facts.forward_flops_per_row = 10.0 * double(in.elems());
    facts.backward_flops_per_row = 14.0 * double(in.elems());
    return facts;
  }
  template <class Context>
  static void forward(Context& context) {
    context.kernels().silu_forward(context.input_elems(), context.input(), context.output());
  }
  template <class Context>
  static void backward(Context& context) {
    if (context.input_gradient())
      context.kernels().silu_backward(context.input_elems(), context.input(), context.output_gradient(), context.input_gradient());
  }
};

enum class GeluForm : char { tanh, erf };

// y = x · Φ(x) (Hendrycks and Gimpel, arXiv 1606.08415), exactly by erf, or in the tanh approximation that GPT-2 was trained with. Keeps x.
template <GeluForm form>
struct BasicGelu : ElementwiseLayer {
  static constexpr const char* name = form == GeluForm::tanh ? "gelu_tanh" : "gelu_erf";
  static constexpr int version = 1;

  static constexpr LayerFacts facts(Features in, Index) {
    LayerFacts facts;
    facts.needs_input = true;
    facts.forward_flops_per_row = 14.0 * double(in.elems());
    facts.backward_flops_per_row = 22.0 * double(in.elems());
    return facts;
  }
  template <class Context>
  static void forward(Context& context) {
    if constexpr (form == GeluForm::tanh)
      context.kernels().gelu_tanh_forward(context.input_elems(), context.input(), context.output());
    else
      context.kernels().gelu_erf_forward(context.input_elems(), context.input(), context.output());
  }
  template <class Context>
  static void backward(Context& context) {
    if (!context.input_gradient()) return;
    if constexpr (form == GeluForm::tanh)
      context.kernels().gelu_tanh_backward(context.input_elems(), context.input(), context.output_gradient(), context.input_gradient());
    else
      context.kernels().gelu_erf_backward(context.input_elems(), context.input(), context.output_gradient(), context.input_gradient());
  }
};
using Gelu = BasicGelu<GeluForm::tanh>;
using GeluErf = BasicGelu<GeluForm::erf>;

// y = silu(gate) · up (Shazeer, arXiv 2002.05202). Shapes: x (rows, 2·I) = gate | up, y (rows, I). Keeps x.
struct SwiGlu {
  static constexpr const char* name = "swiglu";
  static constexpr int version = 1;

  static constexpr Features output(Features in) {
    return in.element == Element::real && in.plane() == 1 && in.channels % 2 == 0 ? Features{in.channels / 2} : Features{};
  }
  static constexpr FixedVector<SplitRule, 4> splits(Features in) {
    SplitRule rule = split_rule(SplitKind::features, in.channels / 2);
    rule.slicing.push(in.channels / 2), rule.slicing.push(in.channels / 2);
    FixedVector<SplitRule, 4> out;
    out.push(rule);
    out.push(split_rule(SplitKind::rows, 0));
    return out;
  }
  static constexpr LayerFacts facts(Features in, Index) {
    LayerFacts facts;
    facts.needs_input = true;
    facts.forward_flops_per_row = 6.0 * double(in.elems());
    facts.backward_flops_per_row = 10.0 * double(in.elems());
    return facts;
  }
  template <class Context>
  static void forward(Context& context) {
    context.kernels().swiglu_forward(context.rows(), context.input_features() / 2, context.input(), context.output());
  }
  template <class Context>
  static void backward(Context& context) {
    if (context.input_gradient())
      context.kernels().swiglu_backward(context.rows(), context.input_features() / 2, context.input(), context.output_gradient(),
                                        context.input_gradient());
  }
};

}  // namespace weft
