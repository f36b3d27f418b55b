// SPDX-License-Identifier: Apache-2.0
// A simulated step as text: what it is made of, what waits for which axis, what a rank holds and sends.
#pragma once

#include "weft/report/describe.hpp"
#include "weft/report/simulate.hpp"
#include "weft/report/volume.hpp"

namespace weft {

// Tables of the time of a step, the volume of each axis, and the memory of the stage that needs most, in the numbers of a convention.
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
  const double step = simulation.step_seconds;
  print("step: %.3f s, %.0f tokens/s, model %.1f TFLOP/s a rank, with what is recomputed %.1f\n", step, simulation.tokens_per_second(),
        simulation.model_flops_per_rank() / 1e12, simulation.flops_per_rank() / 1e12);
  const auto part = [&](const char* what, double seconds) {
    if (seconds > 0) print("  %-28s %9.3f s  %4.1f %%\n", what, seconds, 100 * seconds / step);
  };
  part("computing", simulation.compute_seconds);
  part("bubble", simulation.bubble_seconds);
  for (int k = 0; k < num_group_kinds; ++k)
    part((std::string("waiting for ") + name_of(GroupKind(k))).c_str(), simulation.exposed_seconds[k]);
  part("optimizer", simulation.optimizer_seconds);
  print("heaviest stage: %d, forward %.4f s and backward %.4f s a micro-batch\n", simulation.heaviest_stage, simulation.forward_seconds,
        simulation.backward_seconds);
  const Volume sent = volume(plan, simulation.heaviest_stage, convention);
  const GroupRoutes routes(plan, cluster);
  out += "sent by a rank of it in a step:\n";
  for (int k = 0; k < num_group_kinds; ++k)
    if (sent.bytes[k] > 0)
      print("  %-8s %9.3f GB, groups of %lld on %lld node(s)\n", name_of(GroupKind(k)), sent.bytes[k] / 1e9,
            number(routes[GroupKind(k)].ranks), number(routes[GroupKind(k)].nodes));
  const ConventionMemory memory = convention_memory(plan, simulation.fullest_stage, convention);
  print("memory of a rank of stage %d: %.1f GB = weights %.1f + gradients %.1f + optimizer %.1f + activations %.1f + made again %.1f\n",
        simulation.fullest_stage, memory.total() / 1e9, memory.weights / 1e9, memory.gradients / 1e9, memory.optimizer / 1e9,
        memory.activations / 1e9, memory.live / 1e9);
  return out;
}

}  // namespace weft
