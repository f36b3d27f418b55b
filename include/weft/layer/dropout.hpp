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

  static constexpr LayerFacts facts(Features in, Index) {
    LayerFacts facts;
    facts.in_place = true;
    facts.forward_flops_per_row = facts.backward_flops_per_row = 2.0 * double(in.elems());
    return facts;
  }

  template <class Context>
  static void forward(Context& context) {
    if (probability.value > 0 && context.training())
      for_each_part(context, [&](Index at, Index rows, Index width, Index first_row) {
        context.kernels().dropout_forward(rows, width, first_row, probability.value, context.dropout_stream(), context.input() + at,
                                          context.output() + at);
      });
    else
      context.pass_value();
  }

  template <class Context>
  static void backward(Context& context) {
    if (!context.input_gradient()) return;
    if (probability.value > 0)
      for_each_part(context, [&](Index at, Index rows, Index width, Index first_row) {
        context.kernels().dropout_backward(rows, width, first_row, probability.value, context.dropout_stream(),
                                           context.output_gradient() + at, context.input_gradient() + at);
      });
    else
      context.pass_gradient();
  }

 private:
  // visit(first element, rows, width, first row in the global batch): all at once, or, where features are divided, slice by slice, an
  // element for a row.
  template <class Context, class Visit>
  static void for_each_part(Context& context, Visit&& visit) {
    if (!context.features_divided()) return visit(Index(0), context.rows(), context.input_features(), context.first_row());
    for (Index r = 0; r < context.rows(); ++r)
      context.for_each_feature_slice([&](Index own, Index whole, Index count, Index whole_features) {
        visit(r * context.input_features() + own, count, Index(1), (context.first_row() + r) * whole_features + whole);
      });
  }
};

}  // namespace weft
