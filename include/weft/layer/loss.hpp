// SPDX-License-Identifier: Apache-2.0
// What training minimises. A loss is a sum over targets; the engine divides by the number of targets that count in the whole global step,
// so neither ranks nor micro-batches change it. A loss is a type with
//   static constexpr const char* name;
//   static constexpr Features target(Features output);     what one row of targets holds; {} when `output` does not fit
//   static constexpr Index counts_per_row(Features output) the most targets that one row can count
//   template <class Context> static auto run(Context&)     sums the loss, and writes scale · gradient unless output_gradient() is null;
//                                                          returns {double loss; Index count}
#pragma once

#include "weft/base/number.hpp"
#include "weft/shape/features.hpp"

namespace weft {

// Whether a loss takes the slices of classes that the ranks of a tensor group have.
template <class Loss>
inline constexpr bool divides_classes = requires {
  requires Loss::divides_classes;
};

struct CrossEntropyOptions {
  std::int32_t ignored = -100;  // a target that does not count
  Number label_smoothing = 0;
  bool operator==(const CrossEntropyOptions&) const = default;
};

// -log softmax(logits)[target], torch.nn.functional.cross_entropy's conventions. Shapes: logits (rows, V), targets (rows) int32.
template <CrossEntropyOptions options = CrossEntropyOptions{}>
struct SoftmaxCrossEntropy {
  static constexpr const char* name = "softmax_cross_entropy";
  static constexpr bool divides_classes = true;
  static constexpr Features target(Features output) {  // one class would always be right
    return output.plane() == 1 && output.channels >= 2 && output.element == Element::real ? token_features : Features{};
  }
  static constexpr Index counts_per_row(Features) { return 1; }

  template <class Context>
  static auto run(Context& context) {
    const Index bad = context.first_bad_target(options.ignored);
    if (bad >= 0) context.refuse_target(bad);
    if constexpr (Context::divides_classes)
      return context.kernels().divided_cross_entropy(context.rows(), context.output_features(), context.classes(), context.output_value(),
                                                     context.integer_targets(), options.ignored, options.label_smoothing.value,
                                                     double(context.scale()), context.output_gradient(), context.group());
    else
      return context.kernels().softmax_cross_entropy(
          context.rows(), context.output_features(), context.output_value(), context.integer_targets(), options.ignored,
          context.real(options.label_smoothing.value), context.scale(), context.output_gradient());
  }
};

// (prediction - target)², mean over all elements. Shapes: prediction, targets (rows, C).
struct MeanSquaredError {
  static constexpr const char* name = "mean_squared_error";
  static constexpr Features target(Features output) { return output.element == Element::real ? output : Features{}; }
  static constexpr Index counts_per_row(Features output) { return output.elems(); }

  template <class Context>
  static auto run(Context& context) {
    return context.kernels().mean_squared_error(context.rows(), context.output_features(), context.output_value(), context.real_targets(),
                                                context.scale(), context.output_gradient());
  }
};

}  // namespace weft
