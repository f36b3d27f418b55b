// SPDX-License-Identifier: Apache-2.0
// A simulated step as text: what it is made of, what waits for which axis, what a rank holds and sends.
#pragma once

#include "weft/report/describe.hpp"
#include "weft/report/simulate.hpp"
#include "weft/report/volume.hpp"

namespace weft {

// For whom a rank waits, in words.
constexpr const char* wait_text(GroupKind kind) {
  switch (kind) {
    case GroupKind::world: return "waiting for control";
    case GroupKind::data: return "waiting for data ranks";
    case GroupKind::pipe: return "waiting for messages";
    case GroupKind::tensor: return "waiting for tensor ranks";
    case GroupKind::shard: return "waiting for shards";
    case GroupKind::replica: return "waiting for copies of shards";
    case GroupKind::tie: return "waiting for tied stages";
    case GroupKind::copies: return "waiting for shared slices";
  }
  return "";
}

// Tables of the time of a step (parts of less than 0.05 % are left out), the volume of each axis, and the memory of the stage that needs
// most, in the numbers of a convention.
inline std::string describe(const Simulation& simulation, const PlanData& plan, const Cluster& cluster, const Convention& convention) {
  std::string out;
  char line[256];
  const auto print = [&](const char* format, auto... values) {
    std::snprintf(line, sizeof line, format, values...);
    out += line;
  };
  const StrategyData& strategy = plan.strategy;
  const auto number = [](Index value) { return static_cast<long long>(value); };
  print("%lld ranks = %lld data x %lld pipe x %lld tensor on %s, %s\n", number(strategy.ranks), number(strategy.data()),
        number(strategy.stages()), number(strategy.tensor()), cluster.name, convention.name);
  const double step = simulation.step_seconds, scale = step < 0.1 ? 1e3 : 1;
  const char* const unit = step < 0.1 ? "ms" : "s";
  print("step: %s, %.0f tokens/s, model %.1f TFLOP/s a rank, with what is recomputed %.1f\n", seconds_text(step).c_str(),
        simulation.tokens_per_second(), simulation.model_flops_per_rank() / 1e12, simulation.flops_per_rank() / 1e12);
  const auto part = [&](const char* what, double seconds) {
    if (seconds >= 5e-4 * step) print("  %-28s %9.3f %s  %4.1f %%\n", what, scale * seconds, unit, 100 * seconds / step);
  };
  part("computing", simulation.compute_seconds);
  part("bubble", simulation.bubble_seconds);
  for (int k = 0; k < num_group_kinds; ++k) part(wait_text(GroupKind(k)), simulation.exposed_seconds[k]);
  part("optimizer", simulation.optimizer_seconds);
  print("heaviest stage: %d, forward %s and backward %s a micro-batch\n", simulation.heaviest_stage,
        seconds_text(simulation.forward_seconds).c_str(), seconds_text(simulation.backward_seconds).c_str());
  const Volume sent = volume(plan, simulation.heaviest_stage, convention);
  const GroupRoutes routes(plan, cluster);
  out += "sent by a rank of it in a step:\n";
  for (int k = 0; k < num_group_kinds; ++k)
    if (sent.bytes[k] > 0)
      print("  %-8s %10s, groups of %lld on %lld node(s)\n", name_of(GroupKind(k)), volume_text(sent.bytes[k]).c_str(),
            number(routes[GroupKind(k)].ranks), number(routes[GroupKind(k)].nodes));
  const ConventionMemory memory = convention_memory(plan, simulation.fullest_stage, convention);
  print("memory of a rank of stage %d: %s = weights %s + gradients %s + optimizer %s + activations %s + made again %s\n",
        simulation.fullest_stage, volume_text(memory.total()).c_str(), volume_text(memory.weights).c_str(),
        volume_text(memory.gradients).c_str(), volume_text(memory.optimizer).c_str(), volume_text(memory.activations).c_str(),
        volume_text(memory.live).c_str());
  return out;
}

}  // namespace weft
