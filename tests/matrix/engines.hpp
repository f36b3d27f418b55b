// SPDX-License-Identifier: Apache-2.0
// run_cell for one element type: one instantiation a tensor degree, everything else is data of the plan.
#pragma once

#include <weft/kernel/cpu/gemm.hpp>
#include <weft/optim/optim.hpp>
#include <weft/plan.hpp>
#include <weft/run/engine.hpp>
#include <weft/run/launch.hpp>

#include <mutex>

#include "matrix/run_cell.hpp"

namespace weft::test {

using MatrixModel =
    Gpt<GptOptions{.vocabulary = 29, .sequence = matrix_sequence, .width = 96, .heads = 24, .layers = 16, .tied = true, .dropout = 0.1}>;

template <class Real>
using MatrixRecipe = Recipe<std::conditional_t<sizeof(Real) == 8, Fp64, Fp32>, SoftmaxCrossEntropy<>, AdamW>;

template <class PipeType>
StrategyData strategy_of(const Cell& cell, const PipeType& pipe) {
  const DataParallel data{.ranks = cell.data, .bucket_bytes = 50000, .shard = cell.shard, .shard_ranks = cell.data / cell.replicas};
  const TensorParallel tensor{.ranks = cell.tensor, .sequence = cell.sequence};
  const Activations activations{.recompute = cell.recompute};
  const Reproducible order{.reproducible = cell.reproducible};
  if (cell.order == OrderChoice::pipe_first) return lower_strategy(mesh(pipe, data, tensor, activations, order));
  if (cell.order == OrderChoice::tensor_first) return lower_strategy(mesh(tensor, data, pipe, activations, order));
  return lower_strategy(mesh(data, pipe, tensor, activations, order));
}
inline StrategyData strategy_of(const Cell& cell) {
  switch (cell.schedule) {
    case ScheduleChoice::gpipe: return strategy_of(cell, Pipeline<schedule::GPipe>{.stages = cell.stages});
    case ScheduleChoice::interleaved: return strategy_of(cell, Pipeline<schedule::Interleaved>{.stages = cell.stages, .chunks = 2});
    case ScheduleChoice::zero_bubble_h1: return strategy_of(cell, Pipeline<schedule::ZeroBubbleH1>{.stages = cell.stages});
    case ScheduleChoice::zero_bubble_h2: return strategy_of(cell, Pipeline<schedule::ZeroBubbleH2>{.stages = cell.stages});
    case ScheduleChoice::zero_bubble_v: return strategy_of(cell, Pipeline<schedule::ZeroBubbleV>{.stages = cell.stages});
    default: return strategy_of(cell, Pipeline<>{.stages = cell.stages});
  }
}

// Item by item what the global batch holds: tokens, and targets of which some are ignored.
template <class Real>
void fill_items(MicroBatchInput<Real>& to, Index first_item, Index items) {
  to.leading = {items, matrix_sequence, 0};
  to.first_item = first_item;
  for (Index i = 0; i < items * matrix_sequence; ++i) {
    const Index token = first_item * matrix_sequence + i;
    to.tokens()[i] = std::int32_t((token * 7 + token / 5) % 29);
    to.integer_targets()[i] = token % 7 == 3 ? -100 : std::int32_t(token * 3 % 29);
  }
}

template <class Real>
std::vector<Trained::Tensor> as_doubles(const WholeModel<Real>& model, const std::string& prefix = {}) {
  std::vector<Trained::Tensor> out;
  for (const auto& tensor : model.tensors) out.push_back({prefix + tensor.path, {tensor.data.begin(), tensor.data.end()}});
  return out;
}

// Ranks of a tensor group with shorter slices may use less than others: what counts is the most that a rank of the stage uses.
inline void see_memory(Trained& trained, Index stage, const ShadowMemory& shadow) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  trained.memory.resize(std::max(trained.memory.size(), std::size_t(stage + 1)));
  for (std::size_t a = 0; a < ShadowMemory::num_arenas; ++a) {
    Trained::Used& used = trained.memory[std::size_t(stage)][a];
    used = {std::max(used.measured, shadow.used_bytes(a)), shadow.size_of(a)};
  }
}

template <class Real, Index tensor_ranks>
Trained run_with(const Cell& cell) {
  Trained trained;
  // One item a micro-batch; without a strategy all at once.
  const Index per_rank = cell.micros, global = per_rank * cell.data,
              micro = cell.ranks() == 1 && cell.recompute == Recompute::none && !cell.reproducible ? global : 1;
  const StrategyData strategy = strategy_of(cell);
  const PlanData plan =
      plan_data<MatrixModel, MatrixRecipe<Real>>(strategy, Batch{.global = global, .micro = micro, .sequence = matrix_sequence});
  try {
    require_valid(plan);
  } catch (const Error& error) {
    trained.refused = error.id();
    return trained;
  }
  launch(cell.ranks(), [&](ThreadCommunicator& comm) {
    using TheEngine = Engine<Cpu<kernel::cpu::Builtin>, Real, ThreadCommunicator, AdamW>;
    using Kernels = typename TheEngine::Kernels;
    const ModelCode<Real> code = cell.sequence ? model_code<Kernels, Real, MatrixModel, SoftmaxCrossEntropy<>, tensor_ranks, true>()
                                               : model_code<Kernels, Real, MatrixModel, SoftmaxCrossEntropy<>, tensor_ranks>();
    // A large epsilon: else Adam moves by the sign of gradients that are next to nothing, which in float32 is noise.
    TheEngine engine(plan, code, comm, AdamW{.rate = 0.01, .epsilon = 1e-3}, {.seed = 5, .clip_norm = 0.5, .poison = true});
    ShadowMemory shadow(engine.arenas());
    engine.state().walker.set_shadow(&shadow);
    for (Index step = 0; step < matrix_steps; ++step) {
      shadow.forget();
      const StepResult result = engine.step(
          per_rank / micro, [&](auto& to) { fill_items(to, engine.place().data * per_rank + to.number * micro, micro); }, 0.01);
      const auto gradients = engine.collect(Collected::gradients, 0);
      if (comm.rank() != 0) continue;
      trained.losses.push_back(result.loss), trained.norms.push_back(result.gradient_norm);
      for (auto& tensor : as_doubles(gradients, "step " + std::to_string(step) + " ")) trained.gradients.push_back(std::move(tensor));
    }
    engine.state().walker.set_shadow(nullptr);
    see_memory(trained, engine.place().stage, shadow);
    const auto parameters = engine.collect(Collected::values, 0), moments = engine.collect(Collected::first_state, 0);
    if (comm.rank() == 0) trained.parameters = as_doubles(parameters), trained.first_moments = as_doubles(moments);
  });
  return trained;
}

template <class Real>
Trained run_cell_of(const Cell& cell) {
  switch (cell.tensor) {
    case 2: return run_with<Real, 2>(cell);
    case 3: return run_with<Real, 3>(cell);
    case 4: return run_with<Real, 4>(cell);
    case 8: return run_with<Real, 8>(cell);
    default: return run_with<Real, 1>(cell);
  }
}

}  // namespace weft::test
