// SPDX-License-Identifier: Apache-2.0
// Who holds what: units into chunks by cost, chunks onto stages, parameters into each stage's arena, ties across stages.
#pragma once

#include "weft/plan/buckets.hpp"
#include "weft/plan/partition.hpp"

namespace weft {

// What a unit costs in a step, in flops a row; layers without products still count a little, so that parts stay even.
constexpr double unit_cost(const GraphData& graph, const FrameSite& frame) {
  double cost = 0;
  for (int l = frame.first_leaf; l < frame.first_leaf + frame.num_leaves; ++l) {
    const LeafSite& leaf = graph.leaves[std::size_t(l)];
    cost += leaf.facts.forward_flops_per_row + leaf.facts.backward_flops_per_row + double(leaf.in.elems() + leaf.out.elems());
  }
  return cost;
}

constexpr std::vector<UnitData> make_units(const GraphData& graph, Index shards) {
  std::vector<UnitData> out;
  for (std::size_t f = 0; f < graph.frames.size(); ++f)
    for (Index repetition = 0; repetition < graph.frames[f].count; ++repetition)
      out.push_back({.frame = int(f),
                     .repetition = repetition,
                     .parameter_elems = round_up(graph.frames[f].parameter_elems, parameter_alignment_elems * shards)});
  return out;
}

// Chunks in the model's order; none if they cannot be cut so.
constexpr std::vector<ChunkData> make_chunks(const GraphData& graph, const std::vector<UnitData>& units, const StrategyData& strategy,
                                             const std::vector<int>& stage_of_chunk) {
  const Index num_chunks = Index(stage_of_chunk.size());
  std::vector<Index> starts;
  if (strategy.chunk_starts.size() > 0) {
    for (Index start : strategy.chunk_starts) starts.push_back(start);
  } else {
    std::vector<double> costs;
    for (const UnitData& unit : units) costs.push_back(unit_cost(graph, graph.frames[std::size_t(unit.frame)]));
    starts = partition(costs, num_chunks);
  }
  std::vector<ChunkData> out;
  if (Index(starts.size()) != num_chunks) return out;
  for (std::size_t c = 0; c < starts.size(); ++c)
    out.push_back(
        {.stage = stage_of_chunk[c], .first_unit = starts[c], .end_unit = c + 1 < starts.size() ? starts[c + 1] : Index(units.size())});
  return out;
}

// Whether starts ascend from 0 and stay within the units.
constexpr bool starts_fit(const StrategyData& strategy, Index num_chunks, Index num_units) {
  const auto& starts = strategy.chunk_starts;
  if (starts.size() == 0) return true;
  if (starts.size() != num_chunks || starts[0] != 0) return false;
  for (int i = 1; i < starts.size(); ++i)
    if (starts[i] <= starts[i - 1]) return false;
  return starts[starts.size() - 1] < num_units;
}

// Arena offsets of a stage's parameters and buffers, chunk by chunk; then guests.
constexpr void place_parameters(PlanData& plan, int stage_number) {
  StageData& stage = plan.stages[std::size_t(stage_number)];
  for (int c : stage.chunks) {
    const ChunkData& chunk = plan.chunks[std::size_t(c)];
    for (Index u = chunk.first_unit; u < chunk.end_unit; ++u) {
      UnitData& unit = plan.units[std::size_t(u)];
      unit.chunk = c;
      unit.first_parameter_elem = stage.parameter_elems, unit.first_buffer_elem = stage.buffer_elems;
      stage.parameter_elems += unit.parameter_elems;
      stage.buffer_elems += plan.graph.frames[std::size_t(unit.frame)].buffer_elems;
      if (unit.parameter_elems > stage.largest_unit_elems) stage.largest_unit_elems = unit.parameter_elems;
    }
  }
}

// How many repetitions of other blocks use a parameter.
constexpr Index num_uses_elsewhere(const GraphData& graph, int owner) {
  Index uses = 0;
  const auto first_unit_of = [&](const ParameterSite& site) {
    return graph.frames[std::size_t(graph.leaves[std::size_t(site.leaf)].frame)].first_unit;
  };
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    const ParameterSite& site = graph.parameters[p];
    if (site.owner == owner && int(p) != owner && first_unit_of(site) != first_unit_of(graph.parameters[std::size_t(owner)]))
      uses += graph.frames[std::size_t(graph.leaves[std::size_t(site.leaf)].frame)].count;
  }
  return uses;
}

// Ties between units: a stage that uses a parameter of another stage's unit gets it as a guest, and both sum their gradients.
// In the reproducible mode another use on the owner's own stage is a guest too: its gradients are folded apart.
constexpr void place_ties(PlanData& plan) {
  for (const ParameterSite& site : plan.graph.parameters) {
    const int owner = site.owner;
    if (owner == int(&site - plan.graph.parameters.data())) continue;
    const FrameSite& user = plan.graph.frames[std::size_t(plan.graph.leaves[std::size_t(site.leaf)].frame)];
    const Index unit = plan.owner_unit(owner, 0);
    if (plan.graph.frames[std::size_t(plan.units[std::size_t(unit)].frame)].first_unit == user.first_unit) continue;  // within a unit
    const int owner_stage = plan.stage_of_unit(unit);
    for (Index repetition = 0; repetition < user.count; ++repetition) {
      const int stage_number = plan.stage_of_unit(user.first_unit + repetition);
      if (stage_number == owner_stage ? !plan.strategy.reproducible : plan.first_elem(stage_number, owner, 0) >= 0) continue;
      StageData& stage = plan.stages[std::size_t(stage_number)];
      const Index elems = plan.units[std::size_t(unit)].parameter_elems;
      stage.guests.push_back({owner, unit, stage.parameter_elems, elems});
      stage.parameter_elems += elems;
      std::size_t tie = 0;
      while (tie < plan.ties.size() && plan.ties[tie].parameter != owner) ++tie;
      if (tie == plan.ties.size()) {
        plan.ties.push_back({owner, unit, {}});
        plan.ties[tie].stages.push_back(owner_stage);
      }
      if (stage_number != owner_stage) plan.ties[tie].stages.push_back(stage_number);
    }
  }
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    StageData& stage = plan.stages[s];
    for (const GuestData& guest : stage.guests) stage.resident_elems += guest.elems;
    for (int c : stage.chunks)
      for (Index u = plan.chunks[std::size_t(c)].first_unit; u < plan.chunks[std::size_t(c)].end_unit; ++u)
        if (plan.is_shared(u)) stage.resident_elems += plan.units[std::size_t(u)].parameter_elems;
  }
}

// The chunks of a stage in the order in which their last backward ends.
constexpr std::vector<int> completion_order(const PlanData& plan, const StageData& stage) {
  std::vector<int> out = filled(Index(stage.chunks.size()), 0);
  for (int c : stage.chunks) out[std::size_t(plan.chunks[std::size_t(c)].completed)] = c;
  return out;
}

}  // namespace weft
