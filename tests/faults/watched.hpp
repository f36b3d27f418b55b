// SPDX-License-Identifier: Apache-2.0
// A layer that tells a test when it runs and where its parameters are: to count what is gathered, and what has been started meanwhile.
#pragma once

#include "run/engine_cases.hpp"

#include <weft/run/collect.hpp>

#include <cmath>
#include <set>

namespace weft::test {

// Called on a rank's thread by every Watched layer, before it does its work.
inline thread_local std::function<void(bool forward, const double* parameters)> watch;

// y = x · scale, by features.
template <Index C>
struct Watched {
  static constexpr const char* name = "watched";
  static constexpr int version = 1;
  static constexpr Features output(Features in) { return in == Features{C} ? in : Features{}; }
  static constexpr LayerFacts facts(Features, Index) {
    LayerFacts facts;
    facts.parameters.push(parameter("scale", ParameterKind::weight, {InitialValue::Kind::constant, 0.75}, C));
    facts.needs_input = true;
    return facts;
  }
  template <class Context>
  static void forward(Context& context) {
    if (watch) watch(true, context.parameter(0));
    for (Index i = 0; i < context.input_elems(); ++i) context.output()[i] = context.input()[i] * context.parameter(0)[i % C];
  }
  template <class Context>
  static void backward(Context& context) {
    if (watch) watch(false, context.parameter(0));
    for (Index i = 0; i < context.input_elems(); ++i) {
      context.gradient(0)[i % C] += context.output_gradient()[i] * context.input()[i];
      if (context.input_gradient()) context.input_gradient()[i] = context.output_gradient()[i] * context.parameter(0)[i % C];
    }
  }
};

// L equal layers, each a unit.
template <Index L, Index C>
using Equal = Sequential<Input<C>, Repeat<L, Watched<C>>>;

// What rank 0 saw in its steps.
struct Seen {
  std::vector<double> losses, parameters;
  std::set<const double*> places;  // of a unit's whole parameters
  Index most_ahead = 0;            // units that were gathered and not yet used, beside the one in use
  Index started_in_backward = 0;   // calls of the data group when the first layer's backward began, of the last step
  Index calls = 0;                 // of the data group, in the last step, without the control call
};

// Steps of two micro-batches a rank, of one row.
template <class Model>
Seen train_watched(const PlanData& plan, int steps, const LaunchOptions& launch_options = {}) {
  Seen seen;
  launch(
      int(plan.strategy.ranks),
      [&](ThreadCommunicator& comm) {
        using TheEngine = EngineOf<Model, MeanSquaredError, double, AdamW, ThreadCommunicator>;
        TheEngine engine(plan, model_code<typename TheEngine::Kernels, double, Model, MeanSquaredError>(), comm, AdamW{.rate = 1e-3},
                         {.clip_norm = 1, .poison = true});
        auto& groups = engine.state().groups;
        const auto count = [&](GroupKind kind, Operation operation) {
          Index calls = 0;
          if (groups.has(kind))
            for (const CallRecord& call : groups[kind].records()) calls += call.operation == operation && call.type == ElementType::f64;
          return calls;
        };
        Index used = 0;
        const Index width = plan.graph.input.elems();
        for (int step = 0; step < steps; ++step) {
          used = 0;
          if (comm.rank() == 0)
            watch = [&](bool forward, const double* parameters) {
              seen.places.insert(parameters);
              if (plan.strategy.shards_parameters())
                seen.most_ahead = std::max(seen.most_ahead, count(GroupKind::shard, Operation::all_gather) - ++used);
              if (!forward) seen.started_in_backward = count(GroupKind::data, Operation::all_reduce);
            };
          const StepResult result = engine.step(
              2,
              [&](auto& micro) {
                micro.leading = {1, 1, 0};
                const Index item = (Index(step) * plan.strategy.data() + engine.place().data) * 2 + micro.number;
                for (Index i = 0; i < width; ++i) micro.values()[i] = 1 + std::sin(double(item * 5 + i));
                for (Index i = 0; i < width; ++i) micro.real_targets()[i] = std::cos(double(item + i));
              },
              1e-3);
          watch = nullptr;
          if (comm.rank() != 0) continue;
          seen.losses.push_back(result.loss), seen.calls = count(GroupKind::data, Operation::all_reduce) - 1;
        }
        const auto model = engine.collect({}, 0);
        for (const auto& tensor : model.tensors) seen.parameters.insert(seen.parameters.end(), tensor.data.begin(), tensor.data.end());
      },
      launch_options);
  return seen;
}

inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::isfinite(a[i] - b[i]) ? std::abs(a[i] - b[i]) : 1e300);
  return worst;
}

using WatchedRecipe = Recipe<Fp64, MeanSquaredError, AdamW>;

}  // namespace weft::test
