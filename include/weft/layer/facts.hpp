// SPDX-License-Identifier: Apache-2.0
// What a layer says about itself: parameters, what it keeps for backward, and its cost. Data only; the plan is made from it.
//
// A layer is a type with
//   static constexpr const char* name;  static constexpr int version;
//   static constexpr Features output(Features in);                      features of the result; {} when `in` does not fit
//   static constexpr LayerFacts facts(Features in, Index sequence);     asked only when `in` fits
//   template <class Context> static void forward(Context&);             see op/leaf_context.hpp for what a context offers
//   template <class Context> static void backward(Context&);
// Options that make no sense: `static constexpr bool valid`, and `static constexpr bool explain()` with a static_assert for every rule.
// A layer whose facts split backward also has backward_input(Context&), the gradient of the input, and backward_weight(Context&), those of
// the parameters: together what backward does. The second gets input and output gradient, and runs after the first.
// A layer that the ranks of a tensor group can divide has splits() and Part: see layer/split.hpp. Without them it is replicated.
// A layer whose facts join micro-batches also has statistics(Context&), joined(Context&), backward_statistics(Context&).
// And, where it has only one fitting input, `static constexpr Features input` (used in messages, and as the model's input when it is
// first).
#pragma once

#include "weft/base/fixed_vector.hpp"
#include "weft/layer/split.hpp"
#include "weft/shape/features.hpp"

namespace weft {

// Weight decay goes by kind: weights are decayed, the others are not (unless the optimizer says all). A buffer is state that is saved
// with the model but not trained (running statistics).
enum class ParameterKind : char { weight, embedding, bias, norm, buffer };

struct InitialValue {
  enum class Kind : char { constant, normal, uniform } kind = Kind::constant;
  double value = 0;  // the constant, the standard deviation, or the bound of a uniform value in [-value, value)
  bool operator==(const InitialValue&) const = default;
};

struct ParameterFacts {
  const char* name = "";
  FixedVector<Index, 4> extents{};
  ParameterKind kind = ParameterKind::weight;
  InitialValue initial{};

  constexpr Index elems() const {
    Index product = 1;
    for (Index extent : extents) product *= extent;
    return product;
  }
};

constexpr ParameterFacts parameter(const char* name, ParameterKind kind, InitialValue initial, Index a, Index b = -1, Index c = -1,
                                   Index d = -1) {
  ParameterFacts facts{name, {}, kind, initial};
  for (Index extent : {a, b, c, d})
    if (extent >= 0) facts.extents.push(extent);
  return facts;
}

constexpr double square_root(double x) {  // constexpr in C++20; Newton from above
  double root = x > 1 ? x : 1;
  for (double next = 0; x > 0; root = next) {
    next = 0.5 * (root + x / root);
    if (next >= root) break;
  }
  return x > 0 ? root : 0;
}

// torch.nn.Linear and Conv2d draw weight and bias from U(-1/√fan_in, 1/√fan_in).
constexpr InitialValue uniform_by_fan_in(Index fan_in) { return {InitialValue::Kind::uniform, 1 / square_root(double(fan_in))}; }

// A tensor that forward leaves for backward.
struct SavedFacts {
  Index elems_per_row = 0, fixed_elems = 0;
  bool integer = false;  // int32 instead of the element type of the model
};

struct LayerFacts {
  FixedVector<ParameterFacts, 8> parameters{};
  FixedVector<SavedFacts, 4> saved{};
  bool needs_input = false, needs_output = false;  // in backward: they are kept until then
  bool in_place = false;                           // output may be the input's memory, and the input gradient that of the output gradient
  bool adds_residual = false;                      // forward can add context.residual() to its result
  bool adds_input_gradient = false;                // backward can add to dx (context.accumulates())
  bool passes = false;                             // output is the input, in other features: no work, no copy
  bool splits_backward = false;                    // backward_input, and backward_weight which may come later
  bool recomputes_alone = false;                   // cheap to make again for the memory that it needs: see Recompute::selective
  bool reports_touched = false;                    // which parameters took part depends on the data: the layer calls context.touch(i)
  Index join_elems = 0;  // > 0: micro-batches join here: so many doubles are summed over the global batch, forward and again backward
  Index step_elems = 0;  // elements that live for a step, shared by its micro-batches (what was computed from the joined sums)
  Index cache_elems_per_row = 0;  // generation: what is kept of every past token
  double forward_flops_per_row = 0, backward_flops_per_row = 0;
};

}  // namespace weft
