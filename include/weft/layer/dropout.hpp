// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/base/number.hpp"
#include "weft/layer/activation.hpp"

namespace weft {

// y = kept ? x / (1 - p) : 0, in training; the identity otherwise (Srivastava et al., JMLR 15, 2014). The mask comes from a counter-based
// stream at the element's place in the global batch, so it does not depend on how the batch is split, and backward draws it again.
template <Number probability>
struct Dropout : ElementwiseLayer {
  static constexpr const char* name = "dropout";
  static constexpr int version = 1;

  static constexpr bool valid = probability.value >= 0 && probability.value < 1;
  static constexpr bool explain() {
    static_assert(probability.value >= 0 && probability.value < 1, "weft[dropout.probability]: Dropout<p> needs 0 <= p < 1; use another p");
    return true;
  }

  static constexpr Features output(Features in) { return ElementwiseLayer::output(in); }

  static constexpr FixedVector<SplitRule, 4> splits(Features) {  // rows only: streams count whole rows
    FixedVector<SplitRule, 4> out;
    out.push(split_rule(SplitKind::rows, 0));
    return out;
  }

  static constexpr LayerFacts facts(Features in, Index) {
    LayerFacts facts;
    facts.in_place = true;
    facts.forward_flops_per_row = facts.backward_flops_per_row = 2.0 * double(in.elems());
    return facts;
  }

  template <class Context>
  static void forward(Context& context) {
    if (probability.value > 0 && context.training())
      context.kernels().dropout_forward(context.rows(), context.input_features(), context.first_row(), probability.value,
                                        context.dropout_stream(), context.input(), context.output());
    else
      context.pass_value();
  }

  template <class Context>
  static void backward(Context& context) {
    if (!context.input_gradient()) return;
    if (probability.value > 0)
      context.kernels().dropout_backward(context.rows(), context.input_features(), context.first_row(), probability.value,
                                         context.dropout_stream(), context.output_gradient(), context.input_gradient());
    else
      context.pass_gradient();
  }
};

}  // namespace weft
