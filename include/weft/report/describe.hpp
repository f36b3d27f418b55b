// SPDX-License-Identifier: Apache-2.0
// A plan as text: what a rank holds, computes and says.
#pragma once

#include <cstdio>
#include <string>

#include "weft/plan/make_plan.hpp"

namespace weft {

// "12.3 MiB"
inline std::string bytes_text(Index bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) value /= 1024, ++unit;
  char text[48];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

// Tables of the model, the strategy, the memory of a rank and the calls of a step. `library_bytes`: what libraries are known to hold
// besides.
inline std::string describe(const PlanData& plan, Index library_bytes = 0) {
  std::string out;
  char line[256];
  const auto print = [&](const char* format, auto... values) {
    std::snprintf(line, sizeof line, format, values...);
    out += line;
  };
  const auto bytes = [&](const char* what, Index count, const char* note) {
    if (count > 0) print("  %-14s %12s  %s\n", what, bytes_text(count).c_str(), note);
  };
  print("model: %lld parameters, %.3g flops a row forward, %.3g with backward\n", static_cast<long long>(plan.graph.num_parameters()),
        plan.forward_flops_per_row(), plan.training_flops_per_row());
  for (const FrameSite& frame : plan.graph.frames) {
    for (int l = frame.first_leaf; l < frame.first_leaf + frame.num_leaves; ++l) {
      const LeafSite& leaf = plan.graph.leaves[std::size_t(l)];
      Index elems = 0;
      std::string note;
      for (int p = leaf.first_parameter; p < leaf.first_parameter + leaf.facts.parameters.size(); ++p) {
        if (plan.graph.parameters[std::size_t(p)].owner == p)
          elems += plan.graph.parameters[std::size_t(p)].facts.elems();
        else
          note = "tied to " + path_of(plan.graph, plan.graph.parameters[std::size_t(p)].owner, 0);
      }
      const std::string path = path_of_leaf(plan.graph, l, 0), times = frame.count > 1 ? std::to_string(frame.count) + " x" : "";
      print("  %6s %-44s %7lld -> %-7lld %10lld parameters %s\n", times.c_str(), path.c_str(), static_cast<long long>(leaf.in.elems()),
            static_cast<long long>(leaf.out.elems()), static_cast<long long>(elems), note.c_str());
    }
  }
  print("step: %lld sequences of %lld over %lld ranks, %lld micro-batches of %lld a rank; all parameters are replicated\n",
        static_cast<long long>(plan.batch.global), static_cast<long long>(plan.batch.sequence), static_cast<long long>(plan.strategy.ranks),
        static_cast<long long>(plan.micros), static_cast<long long>(plan.batch.micro));
  print("memory of a rank, framework bytes (exact): %s\n", bytes_text(plan.memory.total()).c_str());
  bytes("parameters", plan.memory.parameters, name_of(plan.training.type));
  bytes("buffers", plan.memory.buffers, "state that is not trained");
  bytes("gradients", plan.memory.gradients, "");
  bytes("optimizer", plan.memory.optimizer, (std::to_string(plan.training.optimizer_states) + " states").c_str());
  bytes("activations", plan.memory.activations, (std::to_string(plan.depth) + " micro-batch(es) held").c_str());
  bytes("boundaries", plan.memory.boundaries, "between parts of the model");
  bytes("workspace", plan.memory.workspace, "within a part, reused");
  bytes("inputs", plan.memory.inputs, "");
  bytes("joins", plan.memory.joins, "statistics over the global batch");
  bytes("control", plan.memory.control, "");
  bytes("scratch", plan.memory.scratch, "of kernels");
  if (library_bytes > 0) print("library bytes (measured): %s\n", bytes_text(library_bytes).c_str());
  const LedgerTotals sums = totals(plan.ledger);
  print("communication of a rank and step: %lld calls, %s; control: %lld call(s), %s\n", static_cast<long long>(sums.calls),
        bytes_text(sums.bytes).c_str(), static_cast<long long>(sums.control_calls), bytes_text(sums.control_bytes).c_str());
  for (std::size_t i = 0; i < plan.ledger.size() && i < 12; ++i) {
    const LedgerEntry& entry = plan.ledger[i];
    const char* phase[] = {"join, forward", "gradient bucket", "join, backward", "control"};
    print("  %-16s %3lld  %s\n", phase[int(entry.phase)], static_cast<long long>(entry.number), to_text(entry.call).c_str());
  }
  if (plan.ledger.size() > 12) print("  … and %lld more\n", static_cast<long long>(plan.ledger.size() - 12));
  print("fingerprint: %016llx\n", static_cast<unsigned long long>(fingerprint(plan)));
  return out;
}

}  // namespace weft
