// SPDX-License-Identifier: Apache-2.0
// What the engine's tests share: small models, a loss whose gradient is the data, and engines of them.
#pragma once

#include <weft/comm/self/self_communicator.hpp>
#include <weft/kernel/cpu/gemm.hpp>
#include <weft/optim/optim.hpp>
#include <weft/plan.hpp>
#include <weft/run/engine.hpp>
#include <weft/run/launch.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <mutex>
#include <vector>

namespace weft::test {

// The sum of the model's outputs: with one weight w and y = w x the gradient of the mean is the mean of x.
struct SumLoss {
  static constexpr const char* name = "sum";
  static constexpr Features target(Features) { return token_features; }
  static constexpr Index counts_per_row(Features) { return 1; }
  template <class Context>
  static kernel::LossSum run(Context& context) {
    double sum = 0;
    const Index elems = context.rows() * context.output_features();
    for (Index i = 0; i < elems; ++i) sum += double(context.output_value()[i]);
    for (Index i = 0; context.output_gradient() && i < elems; ++i) context.output_gradient()[i] = context.scale();
    return {sum, context.rows()};
  }
};

using OneWeight = Sequential<Named<"only", Linear<1, 1, Bias::no>>>;
using CpuExecutor = Cpu<kernel::cpu::Builtin>;

template <class Model, class Loss, class Real, class Rule, class Communicator>
using EngineOf = Engine<CpuExecutor, Real, Communicator, Rule>;

template <class Real>
struct PrecisionOf {
  using type = Fp64;
};
template <>
struct PrecisionOf<float> {
  using type = Fp32;
};

// Calls body(engine) on every rank of a world of threads.
template <class Model, class Loss, class Real, class Rule, class Body>
void with_engines(const DataParallel& data, const Batch& batch, Rule rule, const EngineOptions& options, Body&& body,
                  const LaunchOptions& launch_options = {}) {
  const PlanData plan = plan_at_start<Model, Recipe<typename PrecisionOf<Real>::type, Loss, Rule>>(mesh(data), batch);
  launch(
      int(data.ranks),
      [&](ThreadCommunicator& comm) {
        using TheEngine = EngineOf<Model, Loss, Real, Rule, ThreadCommunicator>;
        TheEngine engine(plan, model_code<typename TheEngine::Kernels, Real, Model, Loss>(), comm, rule, options);
        body(engine);
      },
      launch_options);
}

// Fills one row with one number.
inline auto give(double x) {
  return [x](auto& micro) {
    micro.leading = {1, 1, 0};
    micro.values()[0] = x;
    micro.integer_targets()[0] = 0;
  };
}

}  // namespace weft::test
