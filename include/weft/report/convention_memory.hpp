// SPDX-License-Identifier: Apache-2.0
// The memory of a rank under a convention: what a plan's layers keep, in another program's bytes. PlanData::memory is what this library
// allocates, to the byte; this is what papers count, from the same tables: which tensors backward needs, who holds them, how many
// micro-batches are in flight.
#pragma once

#include "weft/report/convention.hpp"

namespace weft {

struct ConventionMemory {
  double weights = 0, gradients = 0, optimizer = 0;
  double activations = 0;  // kept from forward to backward, at the peak of the schedule
  double live = 0;         // of one block, while it is made again
  constexpr double model_states() const { return weights + gradients + optimizer; }
  constexpr double total() const { return model_states() + activations + live; }
};

// Kept of a unit of a frame for one micro-batch: from forward on; between the two parts of a backward that is split; while backward passes
// it.
struct UnitActivations {
  double kept = 0, weights = 0, live = 0;
};

constexpr UnitActivations unit_activations(const PlanData& plan, int frame_index, const Convention& convention) {
  const GraphData& graph = plan.graph;
  const FrameSite& frame = graph.frames[std::size_t(frame_index)];
  const FrameMemory& memory = plan.activations.frames[std::size_t(frame_index)];
  const double rows = double(plan.rows), slice = rows / double(graph.tensor_ranks);
  UnitActivations out;
  const auto tensor = [&](int number) -> const Features& { return graph.tensors[std::size_t(frame.first_tensor + number)]; };
  std::vector<char> gathered = filled(frame.num_tensors, char(0)), of_attention = gathered;
  for (int i = 0; i < frame.num_ops; ++i) {
    const OpSite& op = graph.ops[std::size_t(frame.first_op + i)];
    if (op.kind == OpKind::gather_rows) gathered[std::size_t(op.output)] = 1;
    if (op.kind == OpKind::leaf && is_attention(graph.leaves[std::size_t(op.leaf)])) of_attention[std::size_t(op.output)] = 1;
  }
  // Tensors that share memory count once.
  const auto is_first = [](const std::vector<Place>& places, int t) {
    for (int other = 0; other < t; ++other)
      if (places[std::size_t(other)].storage == places[std::size_t(t)].storage &&
          places[std::size_t(other)].offset == places[std::size_t(t)].offset)
        return false;
    return true;
  };
  const auto bytes = [&](int t) {
    const bool divided =
        graph.rows_divided[std::size_t(frame.first_tensor + t)] || (convention.gathers_rows_again && gathered[std::size_t(t)]);
    const double of_elem = tensor(t).element == Element::token ? 4 : convention.activation_bytes;
    return (divided ? slice : rows) * double(tensor(t).elems()) * of_elem;
  };
  for (int t = 0; t < frame.num_tensors; ++t) {
    const Storage value = t == 0 ? Storage::none : memory.values[std::size_t(t)].storage;  // the input is the output of the unit before
    if ((value == Storage::slot || value == Storage::live) && is_first(memory.values, t)) {
      const bool keeps = value == Storage::slot || (plan.strategy.recompute == Recompute::selective && convention.keeps_attention_output &&
                                                    of_attention[std::size_t(t)]);
      (keeps ? out.kept : out.live) += bytes(t);
    }
    if (memory.gradients[std::size_t(t)].storage == Storage::weight_slot && is_first(memory.gradients, t)) out.weights += bytes(t);
  }
  for (int l = 0; l < frame.num_leaves; ++l) {
    const LeafSite& leaf = graph.leaves[std::size_t(frame.first_leaf + l)];
    const double own = leaf.rows_divided ? slice : rows;
    double& sum = memory.saved[std::size_t(4 * l)].storage == Storage::live ? out.live : out.kept;
    if (is_called(leaf, "dropout")) sum += own * double(leaf.out.elems()) * convention.mask_bytes;
    // Softmax and dropout of the scores, and the mask between them.
    if (is_attention(leaf) && convention.stores_scores)
      sum += own * double(heads_of(leaf)) * double(plan.batch.sequence) * (2 * convention.activation_bytes + convention.mask_bytes);
    if (!convention.keeps_row_numbers) continue;
    for (const SavedFacts& saved : leaf.facts.saved)
      sum += (own * double(saved.elems_per_row) + double(saved.fixed_elems)) * (saved.integer ? 4 : convention.activation_bytes);
  }
  return out;
}

// Of a rank of a stage, whose schedule has this row (schedule_of). Activations are those in flight when they are most; arenas with a fixed
// place for each micro-batch may need more.
constexpr ConventionMemory convention_memory(const PlanData& plan, int stage_number, const Convention& convention, const ActionRow& row) {
  const StageData& stage = plan.stages[std::size_t(stage_number)];
  const StrategyData& strategy = plan.strategy;
  const double elems = double(stage.parameter_elems), part = elems / double(strategy.shards());
  ConventionMemory out;
  out.weights = convention.weight_bytes * (strategy.shards_parameters() ? part : elems);
  out.gradients = convention.gradient_bytes * (strategy.shards_gradients() ? part : elems);
  out.optimizer = convention.optimizer_bytes * (strategy.sharding() != Shard::none ? part : elems);
  std::vector<UnitActivations> frames;
  for (int f = 0; f < int(plan.graph.frames.size()); ++f) frames.push_back(unit_activations(plan, f, convention));
  std::vector<UnitActivations> chunks;
  for (const ChunkData& chunk : plan.chunks) {
    UnitActivations sum;
    for (Index u = chunk.first_unit; u < chunk.end_unit; ++u) {
      const UnitActivations& unit = frames[std::size_t(plan.units[std::size_t(u)].frame)];
      sum.kept += unit.kept, sum.weights += unit.weights;
      if (chunk.stage == stage_number && unit.live > out.live) out.live = unit.live;
    }
    chunks.push_back(sum);
  }
  if (!plan.streams()) {
    out.activations = double(plan.depth) * chunks[0].kept;
    return out;
  }
  double held = 0;
  for (const Action& action : row) {
    if (!is_compute(action.kind)) continue;
    const UnitActivations& chunk = chunks[std::size_t(action.chunk)];
    if (action.kind == ActionKind::forward) held += chunk.kept;
    if (action.kind == ActionKind::backward_input) held += chunk.weights;
    if (held > out.activations) out.activations = held;
    if (action.kind == ActionKind::backward) held -= chunk.kept;
    if (action.kind == ActionKind::backward_weight) held -= chunk.kept + chunk.weights;
  }
  return out;
}
constexpr ConventionMemory convention_memory(const PlanData& plan, int stage_number, const Convention& convention) {
  const ScheduleTable table = plan.streams() ? schedule_of(plan) : ScheduleTable{{}, {}, std::vector<ActionRow>(1)};
  return convention_memory(plan, stage_number, convention, table.rows[std::size_t(stage_number)]);
}

}  // namespace weft
