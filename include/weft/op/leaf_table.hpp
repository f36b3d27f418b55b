// SPDX-License-Identifier: Apache-2.0
// A model's layers as tables of functions. A (layer, features) pair is instantiated once, however often it stands in the model.
#pragma once

#include "weft/graph/split_parts.hpp"
#include "weft/layer/loss.hpp"
#include "weft/op/leaf_context.hpp"
#include "weft/plan/refuse.hpp"

namespace weft {

template <class KernelSet, class Real, class L, Features in, Features out_features>
constexpr LeafFunctions<Real> leaf_functions() {
  using Context = LeafContext<KernelSet, Real, in, out_features>;
  using Call = LeafCall<Real>;
  LeafFunctions<Real> out;
  out.forward = [](Call& call) {
    Context context(call);
    L::forward(context);
  };
  out.backward = [](Call& call) {
    Context context(call);
    L::backward(context);
  };
  if constexpr (requires(Context & context) { L::backward_weight(context); }) {
    out.backward_input = [](Call& call) {
      Context context(call);
      L::backward_input(context);
    };
    out.backward_weight = [](Call& call) {
      Context context(call);
      L::backward_weight(context);
    };
  }
  if constexpr (requires(Context & context) { L::statistics(context); }) {
    out.statistics = [](Call& call) {
      Context context(call);
      L::statistics(context);
    };
    out.joined = [](Call& call) {
      Context context(call);
      L::joined(context);
    };
    out.backward_statistics = [](Call& call) {
      Context context(call);
      L::backward_statistics(context);
    };
  }
  return out;
}

template <class KernelSet, class Real, class Model, CodeSplit split>
constexpr auto leaf_table() {
  std::array<LeafFunctions<Real>, std::size_t(Leaves<Model>::size)> table{};
  for_each_type(Leaves<Model>{}, [&]<int I, class L>() {
    constexpr LeafPart part = leaf_parts_of<Model, split>[std::size_t(I)];
    using Part = typename PartOf<L, part.kind, split.ranks, part.in.channels, part.out.channels>::type;
    table[std::size_t(I)] = leaf_functions<KernelSet, Real, Part, part.in, part.out>();
  });
  return table;
}

// The loss of a micro-batch as a function, in the same way.
template <class Real>
struct LossCall {
  Index rows = 0;
  const Real* prediction = nullptr;
  const void* targets = nullptr;
  double scale = 0;
  Real* gradient = nullptr;
  ClassGroup group{};
  double loss = 0;
  Index count = 0;
};

template <class KernelSet, class Real, class Loss, Features out, Index whole_classes>
void run_loss(LossCall<Real>& call) {
  LossContext<KernelSet, Real, out, whole_classes> context(call.rows, call.prediction, call.targets, call.scale, call.gradient, call.group);
  const auto result = Loss::run(context);
  call.loss = result.loss, call.count = result.count;
}

// All code of a model that an engine calls.
template <class Real>
struct ModelCode {
  const LeafFunctions<Real>* leaves = nullptr;
  void (*loss)(LossCall<Real>&) = nullptr;
  CodeSplit split{};
};

template <class KernelSet, class Real, class Model, CodeSplit split>
inline constexpr auto leaf_table_of = leaf_table<KernelSet, Real, Model, split>();

// The code of one rank: of the whole model, or of its part in a tensor group of `tensor_ranks`.
template <class KernelSet, class Real, class Model, class Loss, Index tensor_ranks = 1, bool sequence = false>
constexpr ModelCode<Real> model_code() {
  constexpr CodeSplit split{tensor_ranks, sequence && tensor_ranks > 1, divides_classes<Loss>};
  constexpr PartFault fault = part_fault_of<Model, split>;
  if constexpr (fault.leaf >= 0) {
    explain<PlanFault{.rule = PlanRule::tensor_part, .leaf = fault.leaf, .found = fault.has, .wanted = fault.left},
            At<fault.leaf, Leaves<Model>>>();
    return {};
  } else {
    constexpr LeafPart last = leaf_parts_of<Model, split>[std::size_t(Leaves<Model>::size) - 1];
    return {leaf_table_of<KernelSet, Real, Model, split>.data(),
            &run_loss<KernelSet, Real, Loss, last.prediction, last.whole_prediction.elems()>, split};
  }
}

// The code for a plan that is made at start-up, among the tensor degrees that are compiled: 1 and `tensor_ranks`, with and without sequence
// parallelism. Degrees that do not divide the model have no code: no plan has them. Errors: weft[code.tensor].
template <class KernelSet, class Real, class Model, class Loss, Index... tensor_ranks>
ModelCode<Real> model_code_for(Index ranks, bool sequence) {
  ModelCode<Real> code;
  const auto consider = [&]<Index degree, bool by_rows>() {
    if constexpr (degree == 1 || is_divisible<Model, CodeSplit{degree, by_rows, divides_classes<Loss>}>)
      if (degree == ranks && by_rows == (sequence && ranks > 1)) code = model_code<KernelSet, Real, Model, Loss, degree, by_rows>();
  };
  consider.template operator()<1, false>();
  (consider.template operator()<tensor_ranks, false>(), ...);
  (consider.template operator()<tensor_ranks, true>(), ...);
  if (code.leaves == nullptr) {
    std::string compiled("1");
    for (const Index degree : std::initializer_list<Index>{tensor_ranks...}) compiled.append(", ").append(text_of(degree));
    throw Error("code.tensor",
                text_of("the strategy has another number of tensor ranks than the program has code for; add it to the arguments of "
                        "make_trainer (strategy ",
                        ranks, ", compiled ", compiled, ")"));
  }
  return code;
}

}  // namespace weft
