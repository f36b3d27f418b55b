// SPDX-License-Identifier: Apache-2.0
// Trains a small model on any mesh and hands back what came out, for suites that compare one strategy with another.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <weft/weft.hpp>

namespace weft::contract {

using SmallRecipe = Recipe<Fp64, MeanSquaredError, Sgd>;
inline constexpr Sgd small_rule{.rate = 0.05, .momentum = 0.9};
inline constexpr int small_states = int(Sgd::num_states);

struct SmallTraining {
  std::vector<double> losses{}, norms{};  // by step
  WholeModel<double> model{};             // after the last
};

// Rows that depend on their place in the global batch of a step only.
template <class Micro>
void fill_small(Micro& to, const PlanData& plan, Index step, Index data_rank) {
  const Index in = plan.graph.input.elems(), out = plan.training.target.elems();
  const Index first = (step * plan.batch.global + data_rank * plan.micros * plan.batch.micro) + to.number * plan.batch.micro;
  for (Index r = 0; r < plan.batch.micro; ++r) {
    for (Index i = 0; i < in; ++i) to.values()[r * in + i] = std::sin(double((first + r) * 7 + i * 3));
    for (Index i = 0; i < out; ++i) to.real_targets()[r * out + i] = std::cos(double((first + r) * 5 + i));
  }
}

// Some steps on as many threads as the mesh has ranks. tensor_ranks: the degrees, besides 1, that there is code for.
template <class Model, Index... tensor_ranks, class MeshType>
SmallTraining train_small(const MeshType& axes, const Batch& batch, Index steps, double clip_norm = 0) {
  const PlanData plan = plan_at_start<Model, SmallRecipe>(axes, batch);
  SmallTraining out;
  launch(int(plan.strategy.ranks), [&](auto& rank) {
    auto trainer = make_trainer<Model, SmallRecipe, Cpu<kernel::cpu::Builtin>, tensor_ranks...>(plan, rank, small_rule, {},
                                                                                                {.seed = 5, .clip_norm = clip_norm});
    const Index data_rank = trainer.engine().place().data;
    GeneratedLoader loader(plan.micros, int(data_rank), [&](Index step, int, auto& micro) { fill_small(micro, plan, step, data_rank); });
    for (Index step = 0; step < steps; ++step) {
      const StepResult result = trainer.step(loader);
      if (rank.rank() == 0) out.losses.push_back(result.loss), out.norms.push_back(result.gradient_norm);
    }
    auto model = trainer.engine().collect({}, 0);
    if (rank.rank() == 0) out.model = std::move(model);
  });
  return out;
}

// "" or what differs: |a - b| > tolerance · the largest |b|.
inline std::string difference(const SmallTraining& a, const SmallTraining& b, double tolerance) {
  const auto differs = [&](const std::vector<double>& left, const std::vector<double>& right) {
    double largest = 1e-300, worst = 0;
    for (const double value : right) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < right.size(); ++i) {
      const double each = std::abs(left[i] - right[i]) / largest;
      if (!(each <= worst)) worst = each;
    }
    return left.size() != right.size() || !(worst <= tolerance);
  };
  if (differs(a.losses, b.losses)) return "losses";
  if (differs(a.norms, b.norms)) return "norms of the gradient";
  if (a.model.tensors.size() != b.model.tensors.size()) return "the number of tensors";
  for (std::size_t t = 0; t < a.model.tensors.size(); ++t)
    if (differs(a.model.tensors[t].data, b.model.tensors[t].data)) return "parameter " + a.model.tensors[t].path;
  return {};
}

}  // namespace weft::contract
