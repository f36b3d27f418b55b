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

// "2.01 GB": of 1000, as links and devices are sold.
inline std::string volume_text(double bytes) {
  const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (bytes >= 1000 && unit < 4) bytes /= 1000, ++unit;
  char text[48];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return text;
}

// "14.781 s", "8.123 ms"
inline std::string seconds_text(double seconds) {
  char text[48];
  if (seconds >= 0.1)
    std::snprintf(text, sizeof text, "%.3f s", seconds);
  else
    std::snprintf(text, sizeof text, "%.3f ms", 1e3 * seconds);
  return text;
}

// "1 call", "3 calls"
inline std::string calls_text(Index count) { return text_of(count, count == 1 ? " call" : " calls"); }

// How the ranks of a tensor group divide a layer: "replicated" where it has no rule that applies, "outputs / 4", "rows / 4", and which of
// its parameters have slices that several ranks keep.
inline std::string split_text(const GraphData& graph, int leaf) {
  const LeafSite& site = graph.leaves[std::size_t(leaf)];
  const char* names[] = {"replicated", "outputs", "inputs", "features", "vocabulary", "rows"};
  std::string text = names[int(site.split)];
  if (site.split == SplitKind::none) return text;
  text += text_of(" / ", graph.tensor_ranks);
  for (int p = site.first_parameter; p < site.first_parameter + site.facts.parameters.size(); ++p) {
    const ParameterSplit& split = graph.parameters[std::size_t(p)].split;
    const bool shared = split.dimension >= 0 && split.slicing.has_copies(graph.tensor_ranks);
    if (shared) text += text_of(", copies in ", graph.parameters[std::size_t(p)].facts.name);
  }
  return text;
}

// Tables of the model, the strategy, the memory of a rank and the calls of a step. `library_bytes`: what libraries are known to hold
// besides.
inline std::string describe(const PlanData& plan, Index library_bytes = 0) {
  std::string out;
  char line[512];
  const auto print = [&](const char* format, auto... values) {
    std::snprintf(line, sizeof line, format, values...);
    out += line;
  };
  const auto bytes = [&](const char* what, Index count, const char* note) {
    if (count > 0) print("  %-14s %12s  %s\n", what, bytes_text(count).c_str(), note);
  };
  print("model: %lld parameters, %.3g flops a row forward, %.3g with backward%s\n", static_cast<long long>(plan.graph.num_parameters()),
        plan.forward_flops_per_row(), plan.training_flops_per_row(),
        plan.graph.tensor_ranks > 1 ? "; flops and layers are those of one tensor rank" : "");
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
      if (plan.graph.tensor_ranks > 1) note = text_of(split_text(plan.graph, l), note.empty() ? "" : "; ", note);
      const std::string path = path_of_leaf(plan.graph, l, 0), times = frame.count > 1 ? std::to_string(frame.count) + " x" : "";
      print("  %6s %-44s %7lld -> %-7lld %10lld parameters %s\n", times.c_str(), path.c_str(), static_cast<long long>(leaf.in.elems()),
            static_cast<long long>(leaf.out.elems()), static_cast<long long>(elems), note.c_str());
    }
  }
  const StrategyData& strategy = plan.strategy;
  const auto number = [](Index value) { return static_cast<long long>(value); };
  if (plan.batch.sequence > 1)
    print("step: %lld sequences of %lld, ", number(plan.batch.global), number(plan.batch.sequence));
  else
    print("step: %lld rows, ", number(plan.batch.global));
  print("%lld micro-batch%s of %lld a data rank\n", number(plan.micros), plan.micros > 1 ? "es" : "", number(plan.batch.micro));
  const char* sharded[] = {"", ", optimizer states", ", optimizer states and gradients", ", optimizer states, gradients and parameters"};
  print("ranks: %lld = %lld data x %lld pipe x %lld tensor%s", number(strategy.ranks), number(strategy.data()), number(strategy.stages()),
        number(strategy.tensor()), sharded[int(strategy.sharding())]);
  if (strategy.sharding() != Shard::none) print(" sharded over %lld", number(strategy.shards()));
  out += "\n";
  if (*strategy.sync.name)
    print("synchronisation: %s, every %lld%s\n", strategy.sync.name, number(strategy.sync.every),
          strategy.sync.sums_gradients ? "" : "; each replica updates from its own gradients");
  if (plan.streams()) print("pipeline: %s, %zu chunks\n", strategy.schedule_name, plan.chunks.size());
  for (std::size_t c = 0; plan.streams() && c < plan.chunks.size(); ++c) {
    const ChunkData& chunk = plan.chunks[c];
    print("  chunk %2zu on stage %2d: units %lld to %lld, activations of %lld micro-batches, inputs of %lld, gradients of %lld\n", c,
          chunk.stage, number(chunk.first_unit), number(chunk.end_unit - 1), number(chunk.depth), number(chunk.input_depth),
          number(chunk.gradient_depth));
  }
  if (plan.recomputed_flops_per_row() > 0)
    print("recomputed: %s, %.3g flops a row\n", strategy.recompute == Recompute::full ? "blocks" : "attention",
          plan.recomputed_flops_per_row());
  for (const TieData& tie : plan.ties) {
    print("  tied across stages: %s, on", path_of(plan.graph, tie.parameter, 0).c_str());
    for (int stage : tie.stages) print(" %d", stage);
    out += "\n";
  }
  int heaviest = 0;
  for (int s = 0; s < int(plan.stages.size()); ++s)
    if (plan.stages[std::size_t(s)].memory.total() > plan.stages[std::size_t(heaviest)].memory.total()) heaviest = s;
  if (plan.streams())
    for (std::size_t s = 0; s < plan.stages.size(); ++s)
      print("memory of a rank of stage %2zu: %s\n", s, bytes_text(plan.stages[s].memory.total()).c_str());
  print("memory of a rank%s, framework bytes (exact): %s\n", plan.streams() ? " of the stage that needs most" : "",
        bytes_text(plan.memory.total()).c_str());
  bytes("parameters", plan.memory.parameters, name_of(plan.training.type));
  bytes("buffers", plan.memory.buffers, "state that is not trained");
  bytes("gradients", plan.memory.gradients, "");
  bytes("optimizer", plan.memory.optimizer, text_of(plan.training.optimizer_states, " states").c_str());
  bytes("gathered", plan.memory.gathered, "whole units of what is sharded");
  bytes("activations", plan.memory.activations,
        plan.streams() ? "" : text_of(plan.depth, plan.depth == 1 ? " micro-batch held" : " micro-batches held").c_str());
  bytes("live", plan.memory.live, "made again before backward");
  bytes("boundaries", plan.memory.boundaries, "between parts of the model");
  bytes("workspace", plan.memory.workspace, "within a part, reused");
  bytes("messages", plan.memory.messages, "between stages");
  bytes("inputs", plan.memory.inputs, "");
  bytes("joins", plan.memory.joins, "statistics over the global batch");
  bytes("control", plan.memory.control, "");
  bytes("scratch", plan.memory.scratch, "of kernels");
  if (library_bytes > 0) print("library bytes (measured): %s\n", bytes_text(library_bytes).c_str());
  const LedgerTotals sums = totals(plan, heaviest);
  print("communication of %s rank and step: %s, %s; control: %s, %s\n", plan.streams() ? "such a" : "a", calls_text(sums.calls).c_str(),
        bytes_text(sums.bytes).c_str(), calls_text(sums.control_calls).c_str(), bytes_text(sums.control_bytes).c_str());
  // Calls of a kind in one line: how many, their bytes, and one of them.
  struct Kind {
    LedgerPhase phase;
    GroupKind group;
    Operation operation;
    LedgerTotals sums;
    CallRecord example;
  };
  std::vector<Kind> kinds;
  for_each_call(plan, heaviest, [&](const LedgerEntry& entry) {
    std::size_t k = 0;
    while (k < kinds.size() &&
           (kinds[k].phase != entry.phase || kinds[k].group != entry.group || kinds[k].operation != entry.call.operation))
      ++k;
    if (k == kinds.size()) kinds.push_back({entry.phase, entry.group, entry.call.operation, {}, entry.call});
    add_entry(kinds[k].sums, entry);
  });
  for (const Kind& kind : kinds)
    print("  %-16s %-8s %12s %10s; the first: %s\n", name_of(kind.phase), name_of(kind.group),
          calls_text(kind.sums.calls + kind.sums.control_calls).c_str(), bytes_text(kind.sums.bytes + kind.sums.control_bytes).c_str(),
          to_text(kind.example).c_str());
  print("fingerprint: %016llx\n", static_cast<unsigned long long>(fingerprint(plan)));
  for (std::size_t end; (end = out.find(" \n")) != out.npos;) out.erase(end, 1);
  return out;
}

}  // namespace weft
