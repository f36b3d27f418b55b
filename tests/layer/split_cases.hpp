// SPDX-License-Identifier: Apache-2.0
// Trains a model on any mesh and puts together what the ranks have of its parameters, gradients and buffers, to be compared with one rank.
#pragma once

#include "run/engine_cases.hpp"

#include <weft/plan.hpp>
#include <weft/run/collect.hpp>

#include <cmath>
#include <map>

namespace weft::test {

struct SplitRun {
  std::vector<double> losses, norms;
  std::map<std::string, std::vector<double>> tensors;    // parameters, buffers; gradients of the first step, where they are whole
  std::map<std::string, std::vector<double>> collected;  // by run/collect.hpp
  Index differing = 0;                                   // elements that two ranks have with different bits
};

struct SplitCase {
  Index items = 8, micro = 4, sequence = 1, steps = 3;
  double clip = 0.5;
  std::uint64_t seed = 3;
};

// A row of numbers, tokens and classes that depend on its place in the global batch only.
template <class Micro>
void fill_by_place(Micro& to, const GraphData& graph, const SplitCase& how, Index first_item) {
  to.leading = {how.micro, how.sequence, 0};
  to.first_item = first_item;
  const Index first = first_item * how.sequence, rows = how.micro * how.sequence, width = graph.input.elems();
  for (Index i = 0; i < rows * width; ++i) {
    if (graph.input.element == Element::token)
      to.tokens()[i] = std::int32_t((first + i) * 7 % 13);
    else
      to.values()[i] = std::sin(0.3 * double(first * width + i));
  }
  for (Index i = 0; i < rows; ++i)
    to.integer_targets()[i] = (first + i) % 7 == 3 ? -100 : std::int32_t((first + i) * 3 % graph.whole_output.elems());
}

// tensor, sequence: of the mesh's tensor axis, for the code that is generated.
template <class Model, Index tensor, bool sequence, class Loss = SoftmaxCrossEntropy<>, class Rule = Sgd, class MeshType>
SplitRun train_split(const MeshType& strategy, const SplitCase& how, Rule rule = Rule{.rate = 0.05, .momentum = 0.9}) {
  SplitRun run;
  const Batch batch{.global = how.items, .micro = how.micro, .sequence = how.sequence};
  const PlanData plan = plan_at_start<Model, Recipe<Fp64, Loss, Rule>>(strategy, batch);
  std::mutex mutex;
  launch(int(plan.strategy.ranks), [&](ThreadCommunicator& comm) {
    using TheEngine = EngineOf<Model, Loss, double, Rule, ThreadCommunicator>;
    GraphData whole = plan.graph;
    if (tensor == 1) whole.whole_output = whole.output;
    TheEngine engine(plan, model_code<typename TheEngine::Kernels, double, Model, Loss, tensor, sequence>(), comm, rule,
                     {.seed = how.seed, .clip_norm = how.clip, .poison = true});
    const auto keep = [&](const std::string& name, const ParameterSite& site, const double* data, Index begin, Index elems, double scale) {
      const std::lock_guard lock(mutex);
      Index all = 1;
      for (Index extent : tensor > 1 ? site.split.whole : site.facts.extents) all *= extent;
      std::vector<double>& to = run.tensors[name];
      if (to.empty()) to.assign(std::size_t(all), std::nan(""));
      for_each_stretch(site, tensor, engine.place().tensor, [&](Index own, Index place, Index count) {
        for (Index i = 0; i < count; ++i) {
          if (own + i < begin || own + i >= begin + elems) continue;
          double& there = to[std::size_t(place + i)];
          const double value = data[own + i - begin] * scale;
          run.differing += !std::isnan(there) && there != value;
          there = value;
        }
      });
    };
    const auto collect = [&](bool gradients) {
      engine.state().for_each_held([&](int p, Index repetition, const ParameterSite& site, const auto& held) {
        const std::string path = path_of(engine.plan().graph, p, repetition);
        if (!gradients)
          keep(path, site, held.data, held.first, held.elems, 1);
        else if (held.gradient && plan.strategy.sharding() == Shard::none)
          keep("gradient of " + path, site, held.gradient, held.first, held.elems, engine.gradient_scale());
      });
    };
    const Index per_rank = how.items / plan.strategy.data();
    for (Index step = 0; step < how.steps; ++step) {
      const StepResult result = engine.step(
          per_rank / how.micro, [&](auto& to) { fill_by_place(to, whole, how, engine.place().data * per_rank + to.number * how.micro); },
          rule.rate);
      if (step == 0) collect(true);
      if (comm.rank() == 0) run.losses.push_back(result.loss), run.norms.push_back(result.gradient_norm);
    }
    collect(false);
    // What files are made of is the same: each element from one rank.
    for_each_collected(engine.state(), Collected::values, 1, 0,
                       [&](const std::string& path, const ParameterFacts&, const std::vector<double>& all) {
                         const std::lock_guard lock(mutex);
                         run.collected[path] = all;
                       });
  });
  for (const auto& whole : run.collected)
    if (!whole.second.empty()) run.differing += run.tensors.at(whole.first) != whole.second;  // one without elements is nobody's
  return run;
}

inline void compare_numbers(const std::vector<double>& a, const std::vector<double>& b, double tolerance, const std::string& what) {
  REQUIRE_MESSAGE(a.size() == b.size(), what);
  double largest = 1e-300, worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double error = std::abs(a[i] - b[i]);
    largest = std::max(largest, std::abs(b[i])), worst = std::max(worst, std::isfinite(error) ? error : 1e300);
  }
  CHECK_MESSAGE(worst <= tolerance * largest, what << ": " << worst << " of " << largest);
}

inline void compare_runs(const SplitRun& found, const SplitRun& one, const std::string& what, double tolerance = 1e-10) {
  CHECK_MESSAGE(found.differing == 0, what << ": copies differ");
  compare_numbers(found.losses, one.losses, tolerance, what + ", losses");
  compare_numbers(found.norms, one.norms, tolerance, what + ", norms");
  for (const auto& tensor : found.tensors) {
    const auto reference = one.tensors.find(tensor.first);
    REQUIRE_MESSAGE(reference != one.tensors.end(), what << ": " << tensor.first);
    compare_numbers(tensor.second, reference->second, tolerance, what + ", " + tensor.first);
  }
}

}  // namespace weft::test
