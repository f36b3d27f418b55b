// SPDX-License-Identifier: Apache-2.0
// Steps of small models through pipelines, to be compared with one rank.
#pragma once

#include "run/engine_cases.hpp"

#include <weft/run/collect.hpp>

#include <cmath>
#include <map>

namespace weft::test {

struct GradientsOf {
  std::vector<double> losses{};                          // of the steps
  std::map<std::string, std::vector<double>> tensors{};  // of the last step, by path
};

// Steps over micro-batches of `lengths` tokens a sequence (the same lengths in every step, one sequence a micro-batch); what is in them
// depends on step and place only.
template <class Model, Index tensor = 1>
GradientsOf gradients_of(const PlanData& plan, const std::vector<Index>& lengths, int steps = 1) {
  GradientsOf out;
  launch(int(plan.strategy.ranks), [&](ThreadCommunicator& comm) {
    using TheEngine = EngineOf<Model, SoftmaxCrossEntropy<>, double, Sgd, ThreadCommunicator>;
    TheEngine engine(plan, model_code<typename TheEngine::Kernels, double, Model, SoftmaxCrossEntropy<>, tensor>(), comm, Sgd{.rate = 0.1},
                     {.poison = true});
    const Index per_rank = Index(lengths.size()) / plan.strategy.data(), width = plan.graph.input.elems();
    const auto classes = tensor > 1 ? plan.graph.whole_output.elems() : plan.graph.output.elems();
    for (int step = 0; step < steps; ++step) {
      const StepResult result = engine.step(
          per_rank,
          [&](auto& to) {
            const Index item = engine.place().data * per_rank + to.number, length = lengths[std::size_t(item)], seed = 31 * item + 7 * step;
            to.leading = {1, length, 0};
            to.first_item = item;
            for (Index i = 0; i < length * width; ++i)
              if (plan.graph.input.element == Element::token)
                to.tokens()[i] = std::int32_t((seed + i) * 7 % classes);
              else
                to.values()[i] = std::sin(0.7 * double(seed + i));
            for (Index i = 0; i < length; ++i) to.integer_targets()[i] = std::int32_t((seed + i) * 5 % classes);
          },
          0.1);
      if (comm.rank() == 0) out.losses.push_back(result.loss);
    }
    for_each_collected(engine.state(), Collected::gradients, engine.gradient_scale(), 0,
                       [&](const std::string& path, const ParameterFacts& facts, const std::vector<double>& data) {
                         if (facts.kind != ParameterKind::buffer) out.tensors[path] = data;
                       });
  });
  return out;
}

inline void compare_gradients(const GradientsOf& found, const GradientsOf& one, double tolerance, const std::string& what) {
  REQUIRE(found.losses.size() == one.losses.size());
  for (std::size_t i = 0; i < one.losses.size(); ++i) CHECK_MESSAGE(std::abs(found.losses[i] - one.losses[i]) <= tolerance, what);
  REQUIRE_MESSAGE((found.tensors.size() == one.tensors.size() && !one.tensors.empty()), what);
  for (const auto& tensor : one.tensors) {
    const std::string& path = tensor.first;
    const std::vector<double>& reference = tensor.second;
    const std::vector<double>& gradient = found.tensors.at(path);
    REQUIRE_MESSAGE(gradient.size() == reference.size(), what << ", " << path);
    double largest = 1e-300, worst = 0;
    for (std::size_t i = 0; i < reference.size(); ++i) {
      const double error = std::abs(gradient[i] - reference[i]);
      largest = std::max(largest, std::abs(reference[i])), worst = std::max(worst, std::isfinite(error) ? error : 1e300);
    }
    CHECK_MESSAGE(worst <= tolerance * largest, what << ", " << path << ": " << worst << " of " << largest);
  }
}

// Ten units: enough for four stages of two chunks.
using Deep = Sequential<Linear<5, 8>, Repeat<8, Residual<LayerNorm<8>, Linear<8, 8>, Gelu>>, Linear<8, 3>>;

using DeepRecipe = Recipe<Fp64, SoftmaxCrossEntropy<>, Sgd>;

}  // namespace weft::test
