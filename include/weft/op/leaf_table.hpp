// SPDX-License-Identifier: Apache-2.0
// A model's layers as tables of functions. A (layer, features) pair is instantiated once, however often it stands in the model.
#pragma once

#include <array>

#include "weft/graph/lower.hpp"
#include "weft/op/leaf_context.hpp"

namespace weft {

template <class KernelSet, class Real, class L, Features in>
constexpr LeafFunctions<Real> leaf_functions() {
  using Context = LeafContext<KernelSet, Real, in, L::output(in)>;
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

template <class Model>
inline constexpr auto leaf_inputs_of = leaf_inputs<Model>();

template <class KernelSet, class Real, class Model>
constexpr auto leaf_table() {
  std::array<LeafFunctions<Real>, std::size_t(Leaves<Model>::size)> table{};
  for_each_type(Leaves<Model>{}, [&]<int I, class L>() {
    table[std::size_t(I)] = leaf_functions<KernelSet, Real, L, leaf_inputs_of<Model>[std::size_t(I)]>();
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
  double loss = 0;
  Index count = 0;
};

template <class KernelSet, class Real, class Loss, Features out>
void run_loss(LossCall<Real>& call) {
  LossContext<KernelSet, Real, out> context(call.rows, call.prediction, call.targets, call.scale, call.gradient);
  const auto result = Loss::run(context);
  call.loss = result.loss, call.count = result.count;
}

// All code of a model that an engine calls.
template <class Real>
struct ModelCode {
  const LeafFunctions<Real>* leaves = nullptr;
  void (*loss)(LossCall<Real>&) = nullptr;
};

template <class KernelSet, class Real, class Model>
inline constexpr auto leaf_table_of = leaf_table<KernelSet, Real, Model>();

template <class KernelSet, class Real, class Model, class Loss>
constexpr ModelCode<Real> model_code() {
  constexpr Features out = lower<Model>().output;
  return {leaf_table_of<KernelSet, Real, Model>.data(), &run_loss<KernelSet, Real, Loss, out>};
}

}  // namespace weft
