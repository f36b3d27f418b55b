// SPDX-License-Identifier: Apache-2.0
// The passes in order: check → place activations → joins → partition → schedule → buckets → memory. One constexpr function, for plans at
// compile time and for plans whose sizes are known at start-up only; both give the same data and the same faults.
#pragma once

#include "weft/base/exact_sum.hpp"
#include "weft/base/hash.hpp"
#include "weft/graph/split.hpp"
#include "weft/layout/fit_to_world.hpp"
#include "weft/plan/boundaries.hpp"
#include "weft/plan/ledger.hpp"
#include "weft/plan/place_stages.hpp"
#include "weft/schedule/prove.hpp"

namespace weft {

// The control exchange of a step: see run/control.hpp for what stands where. One more for every parameter whose use depends on the data.
inline constexpr Index control_fields = 8;

// Whole units of sharded parameters that are held at once (the one in use, the next, the one before), and of gradients.
inline constexpr Index num_gather_buffers = 3, num_scatter_buffers = 1;

constexpr PlanFault refused_divisor(PlanRule rule, Index found, Index of) {
  const NearestDivisors nearest = nearest_divisors(of, found);
  return {.rule = rule, .found = found, .wanted = of, .below = nearest.below, .above = nearest.above};
}

constexpr PlanFault find_fault(const GraphData& graph, const StrategyData& strategy, const Batch& batch, const TrainingData& training) {
  static_assert(int(GraphRule::tensor_part) == int(PlanRule::tensor_part),
                "weft[plan.rules]: PlanRule begins with GraphRule's rules, in its order; keep both lists alike");
  if (graph.fault.rule >= GraphRule::tensor_divides)
    return {PlanRule(int(graph.fault.rule)), graph.fault.leaf, graph.fault.given.channels, graph.fault.number};
  if (graph.fault.rule != GraphRule::none)
    return {PlanRule(int(graph.fault.rule)), graph.fault.leaf, graph.fault.given.channels, graph.fault.wanted.channels,
            graph.fault.given.height};
  if (strategy.ranks < 1) return {.rule = PlanRule::ranks_positive, .found = strategy.ranks};
  for (int i = 0; i < strategy.axes.size(); ++i)
    if (strategy.axes[i].extent < 1) return {.rule = PlanRule::ranks_positive, .found = strategy.axes[i].extent};
  if (strategy.shard_ranks < 0 || strategy.data() % strategy.shards() != 0)
    return refused_divisor(PlanRule::shard_divides, strategy.shard_ranks, strategy.data());
  if (strategy.sync.every < 1) return {.rule = PlanRule::sync_every, .found = strategy.sync.every};
  if (strategy.bucket_bytes < 1) return {.rule = PlanRule::bucket_positive, .found = strategy.bucket_bytes};
  if (batch.global < 1 || batch.micro < 1 || batch.sequence < 1)
    return {.rule = PlanRule::batch_positive, .found = batch.global, .wanted = batch.micro, .other = batch.sequence};
  if (batch.global % (strategy.data() * batch.micro) != 0)
    return {.rule = PlanRule::batch_divides,
            .found = batch.global,
            .wanted = strategy.data(),
            .other = batch.micro,
            .below = batch.global - batch.global % (strategy.data() * batch.micro),
            .above = round_up(batch.global, strategy.data() * batch.micro)};
  if (strategy.stages() > 1 && strategy.chunks_asked != 1 && strategy.chunks_asked != strategy.chunks_per_stage)
    return {
        .rule = PlanRule::chunks_taken, .found = strategy.chunks_asked, .wanted = strategy.chunks_per_stage, .other = strategy.stages()};
  const Index num_chunks = strategy.stages() * strategy.chunks_per_stage;
  if (num_chunks < 1 || num_chunks > graph.num_units)
    return {.rule = PlanRule::stages_fit,
            .found = strategy.stages(),
            .wanted = graph.num_units,
            .other = strategy.chunks_per_stage,
            .below = strategy.chunks_per_stage > 0 ? graph.num_units / strategy.chunks_per_stage : 0};
  if (!starts_fit(strategy, num_chunks, graph.num_units))
    return {.rule = PlanRule::stages_fixed, .found = strategy.chunk_starts.size(), .wanted = num_chunks, .other = graph.num_units};
  if (graph.joins() && strategy.stages() > 1) return {.rule = PlanRule::pipeline_joins, .found = strategy.stages()};
  if (graph.joins() && strategy.recompute != Recompute::none) return {.rule = PlanRule::recompute_joins};
  int data_axes = 0;
  for (int i = 0; i < strategy.axes.size(); ++i) data_axes += strategy.axes[i].role == Role::batch && strategy.axes[i].extent > 1;
  if (strategy.updates_alone() && (data_axes > 1 || strategy.shards() > 1))
    return {.rule = PlanRule::sync_data, .found = strategy.data(), .wanted = strategy.shards()};
  if (strategy.reproducible) {
    if (strategy.tensor() > 1) return {.rule = PlanRule::reproducible_tensor, .found = strategy.tensor()};
    if (graph.joins()) return {.rule = PlanRule::reproducible_joins};
    if (strategy.updates_alone()) return {.rule = PlanRule::reproducible_sync, .found = strategy.data()};
    for (const ParameterSite& site : graph.parameters)
      if (const Index uses = num_uses_elsewhere(graph, int(&site - graph.parameters.data())); uses > 1)
        return {.rule = PlanRule::reproducible_ties, .leaf = site.leaf, .found = uses};
  }
  if (graph.joins() && strategy.updates_alone()) return {.rule = PlanRule::sync_joins, .found = strategy.data()};
  if (graph.joins() && strategy.shards_gradients()) return {.rule = PlanRule::shard_joins, .found = strategy.shards()};
  if (graph.longest_sequence > 0 && batch.sequence > graph.longest_sequence)
    return {.rule = PlanRule::sequence_fits, .found = batch.sequence, .wanted = graph.longest_sequence};
  if (!training.target.valid())
    return {
        .rule = PlanRule::loss_fits, .leaf = int(graph.leaves.size()) - 1, .found = graph.output.channels, .wanted = graph.output.plane()};
  return {};
}

// The first stage, and micro-batch, whose gradients do not come in the order of the micro-batches, if there is one.
constexpr PlanFault find_disorder(const PlanData& plan) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    for (int c : plan.stages[s].chunks)
      for (const ActionKind part : {ActionKind::backward_input, ActionKind::backward_weight}) {
        int last = -1;
        for (const Action& action : plan.stages[s].actions) {
          if (action.chunk != c || (action.kind != part && action.kind != ActionKind::backward)) continue;
          if (action.micro != last + 1) return {.rule = PlanRule::reproducible_order, .found = Index(s), .wanted = action.micro};
          last = action.micro;
        }
      }
  return {};
}

constexpr std::vector<JoinSite> find_joins(const GraphData& graph) {
  std::vector<JoinSite> out;
  for (std::size_t f = 0; f < graph.frames.size(); ++f) {
    const FrameSite& frame = graph.frames[f];
    for (Index repetition = 0; repetition < frame.count; ++repetition)
      for (int i = 0; i < frame.num_ops; ++i) {
        const OpSite& op = graph.ops[std::size_t(frame.first_op + i)];
        if (op.kind == OpKind::leaf && graph.leaves[std::size_t(op.leaf)].facts.join_elems > 0)
          out.push_back({frame.first_unit + repetition, repetition, int(f), i, op.leaf});
      }
  }
  return out;
}

// Parameters whose gradients are summands of the ranks of a tensor group, or of neighbours in it, as stretches of their unit.
constexpr std::vector<Stretch> summed_stretches(const GraphData& graph) {
  std::vector<Stretch> out;
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    const ParameterSite& site = graph.parameters[p];
    if (site.owner != int(p) || site.facts.kind == ParameterKind::buffer) continue;
    const int frame = graph.leaves[std::size_t(site.leaf)].frame;
    if (site.split.summed) out.push_back({frame, site.offset, round_up(site.facts.elems(), parameter_alignment_elems), graph.tensor_ranks});
    if (site.split.dimension < 0 || !site.split.slicing.has_copies(graph.tensor_ranks)) continue;
    const std::size_t begin = out.size();
    for_each_slice(site, graph.tensor_ranks, 0, [&](Index own, Index, Index count, Index copies) {
      if (copies == 1) return;
      if (out.size() > begin && out.back().ranks == copies && out.back().first + out.back().elems == site.offset + own)
        out.back().elems += count;
      else
        out.push_back({frame, site.offset + own, count, copies});
    });
  }
  return out;
}

constexpr PlanFault refused_schedule(PlanRule rule, const ScheduleShape& shape) {
  return {.rule = rule, .found = shape.stages, .wanted = shape.micros, .other = shape.chunks_per_stage};
}
// micros: of the table that was proved.
constexpr PlanFault wrong_schedule(const ScheduleFault& fault, int micros) {
  static_assert(int(PlanRule::schedule_deadlock) - int(PlanRule::schedule_shape) == int(ScheduleRule::deadlock) - int(ScheduleRule::shape),
                "weft[plan.rules]: PlanRule holds ScheduleRule's rules, in its order; keep both lists alike");
  return {.rule = PlanRule(int(PlanRule::schedule_shape) + int(fault.rule) - int(ScheduleRule::shape)),
          .found = fault.stage,
          .wanted = fault.position,
          .other = micros,
          .action = fault.action,
          .waiting_for = fault.waiting_for};
}

constexpr void place_facts(PlanData& plan, const ChunkFacts* chunks, const StageFacts* stages) {
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) {
    ChunkData& chunk = plan.chunks[c];
    chunk.depth = chunks[c].depth, chunk.input_depth = chunks[c].input_depth;
    chunk.gradient_depth = chunks[c].gradient_depth, chunk.weight_depth = chunks[c].weight_depth;
    chunk.whole_backwards = chunks[c].whole_backwards, chunk.completed = chunks[c].completed, chunk.loss_in_place = chunks[c].loss_in_place;
  }
  for (std::size_t s = 0; s < plan.stages.size(); ++s) plan.stages[s].input_depth = stages[s].input_depth;
}

// Chunks onto stages.
constexpr void place_chunks(PlanData& plan, const std::vector<int>& stage_of_chunk) {
  plan.chunks = make_chunks(plan.graph, plan.units, plan.strategy, stage_of_chunk);
  plan.stages = std::vector<StageData>(std::size_t(plan.strategy.stages()));
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) plan.stages[std::size_t(plan.chunks[c].stage)].chunks.push_back(int(c));
}

// Which stage does what when, and how many micro-batches it holds meanwhile.
constexpr PlanFault place_schedule(PlanData& plan) {
  const StrategyData& strategy = plan.strategy;
  if (strategy.stages() == 1) {
    place_chunks(plan, {0});
    plan.chunks[0].depth = plan.stages[0].input_depth = plan.depth;
    return {};
  }
  const ScheduleShape shape{int(strategy.stages()), int(strategy.chunks_per_stage), int(plan.micros)};
  if (const ProvedSchedule* proved = strategy.proved) {
    if (proved->provable != Provable::yes)
      return refused_schedule(proved->provable == Provable::refused ? PlanRule::schedule_refuses : PlanRule::schedule_too_large, shape);
    if (proved->fault.rule != ScheduleRule::none) return wrong_schedule(proved->fault, proved->window.micros);
    std::vector<int> stage_of_chunk;
    for (int c = 0; c < shape.num_chunks(); ++c) stage_of_chunk.push_back(proved->chunks[c].stage);
    place_chunks(plan, stage_of_chunk);
    place_facts(plan, proved->chunks, proved->stages);
    return {};
  }
  if (strategy.table && strategy.table->shape.micros != shape.micros)
    return {.rule = PlanRule::schedule_table, .found = strategy.table->shape.micros, .wanted = shape.micros};
  ScheduleTable table;
  if (strategy.table)
    table = *strategy.table;
  else
    table = strategy.schedule(shape);
  if (table.rows.empty()) return refused_schedule(PlanRule::schedule_refuses, shape);
  const ScheduleFault fault = verify(table);
  if (fault.rule != ScheduleRule::none) return wrong_schedule(fault, shape.micros);
  table = with_communication(table);
  const ScheduleFacts facts = schedule_facts(table);
  place_chunks(plan, table.stage_of_chunk);
  place_facts(plan, facts.chunks.data(), facts.stages.data());
  for (std::size_t s = 0; s < plan.stages.size(); ++s) plan.stages[s].actions = table.rows[s];
  return {};
}

constexpr bool splits_backward(const PlanData& plan) {
  for (const ChunkData& chunk : plan.chunks)
    if (plan.streams() && chunk.whole_backwards < plan.micros) return true;
  return false;
}

// Places of activations and messages in the arenas of a stage.
constexpr void place_micro_batches(PlanData& plan, int stage_number) {
  StageData& stage = plan.stages[std::size_t(stage_number)];
  const Index real = bytes_of(plan.training.type);
  Index slots = 0, messages = 0;
  for (int c : stage.chunks) {
    ChunkData& chunk = plan.chunks[std::size_t(c)];
    const bool last = c + 1 == int(plan.chunks.size());
    for (Index u = chunk.first_unit; u < chunk.end_unit; ++u) {
      chunk.weight_slot_bytes += plan.activations.frames[std::size_t(plan.units[std::size_t(u)].frame)].weight_slot_bytes;
      chunk.slot_bytes += plan.activations.frames[std::size_t(plan.units[std::size_t(u)].frame)].slot_bytes;
    }
    // What the next chunk sends back stays where it arrives.
    if (!last)
      chunk.weight_slot_bytes -=
          plan.activations.frames[std::size_t(plan.units[std::size_t(chunk.end_unit - 1)].frame)].output_gradient_slot_bytes;
    chunk.first_slot_byte = slots, slots += chunk.depth * chunk.slot_bytes;
    chunk.first_weight_slot_byte = slots, slots += chunk.weight_depth * chunk.weight_slot_bytes;
    if (c > 0) chunk.input_bytes = tensor_bytes(chunk_input(plan, c), {.rows = chunk_input_rows(plan, c, plan.rows), .real_bytes = real});
    if (!last)
      chunk.gradient_bytes = tensor_bytes(chunk_input(plan, c + 1), {.rows = chunk_input_rows(plan, c + 1, plan.rows), .real_bytes = real});
    if (last && !plan.activations.frames.back().output_gradient_kept && !chunk.loss_in_place) {
      chunk.gradient_bytes = tensor_bytes(plan.graph.output, {.rows = plan.rows, .real_bytes = real});
      chunk.gradient_depth = chunk.depth;  // written by the loss, right after forward
    }
    chunk.first_input_byte = messages, messages += chunk.input_depth * chunk.input_bytes;
    chunk.first_gradient_byte = messages, messages += chunk.gradient_depth * chunk.gradient_bytes;
  }
  stage.memory.activations = slots, stage.memory.messages = messages;
}

constexpr Memory make_memory(const PlanData& plan, int stage_number, const ExecutorFacts& executor) {
  const StageData& stage = plan.stages[std::size_t(stage_number)];
  const StrategyData& strategy = plan.strategy;
  const Index real = bytes_of(plan.training.type);
  const auto aligned = [](Index bytes) { return round_up(bytes, alignment_bytes); };
  const auto io = [&](Features features) { return tensor_bytes(features, {.rows = plan.rows, .real_bytes = real}); };
  const Index whole = aligned(stage.parameter_elems * real), part = aligned(stage.parameter_elems / strategy.shards() * real);
  const Index unit = aligned(stage.largest_unit_elems * real), resident = aligned(stage.resident_elems * real);
  Memory out = stage.memory;
  out.parameters = strategy.shards_parameters() ? part : whole;
  out.gradients = strategy.shards_gradients() ? part : whole;
  if (strategy.reproducible) {
    // Partial sums beside each other; what a micro-batch adds to a unit, and to guests; the parts of all ranks of a block's slice.
    out.gradients *= plan.fold.most;
    Index guests = 0, largest = stage.largest_unit_elems;
    for (const GuestData& guest : stage.guests) guests += guest.elems, largest = guest.elems > largest ? guest.elems : largest;
    out.fold = unit + aligned(guests * real) + (strategy.data() > 1 ? plan.fold.last * aligned(largest * real) : 0);
  }
  out.optimizer = plan.training.optimizer_states * (strategy.sharding() == Shard::none ? whole : part);
  if (strategy.shards_gradients()) out.gathered += num_scatter_buffers * unit + resident;
  if (strategy.shards_parameters()) out.gathered += num_gather_buffers * unit + resident;
  out.buffers = aligned(stage.buffer_elems * real);
  const bool first = plan.chunks.front().stage == stage_number, last = plan.chunks.back().stage == stage_number;
  out.inputs = (first ? stage.input_depth : 1) * io(plan.graph.input) + (last ? stage.input_depth : 1) * io(plan.training.target);
  for (const JoinSite& join : plan.joins) {
    const LayerFacts& facts = plan.graph.leaves[std::size_t(join.leaf)].facts;
    out.joins += 2 * aligned((facts.join_elems + 1) * 8) + aligned(facts.step_elems * real);
  }
  out.control = aligned(plan.control_elems * 8);
  if (last && plan.divides_classes()) out.loss = aligned(4 * plan.rows * 8);
  out.scratch = aligned(executor.scratch_bytes);
  return out;
}

constexpr PlanData make_plan_as_said(GraphData graph, const StrategyData& strategy, const Batch& batch, const TrainingData& training,
                                     const Budget& budget = {}, const ExecutorFacts& executor = {}) {
  PlanData plan;
  plan.fault = find_fault(graph, strategy, batch, training);
  plan.graph = graph, plan.strategy = strategy, plan.batch = batch, plan.training = training;
  plan.summed = summed_stretches(graph);
  if (plan.fault.rule != PlanRule::none) return plan;
  plan.rows = batch.micro * batch.sequence;
  plan.micros = batch.global / (strategy.data() * batch.micro);
  plan.depth = graph.joins() ? plan.micros : 1;
  plan.control_elems = control_fields;
  for (const LeafSite& leaf : graph.leaves)
    if (leaf.facts.reports_touched) plan.control_elems += leaf.facts.parameters.size() * graph.frames[std::size_t(leaf.frame)].count;
  if (strategy.updates_alone()) plan.control_elems += 2 * strategy.data();  // count and square sum of each replica
  while (plan.nominal < double(batch.global) * double(batch.sequence) * double(training.counts_per_row)) plan.nominal *= 2;
  plan.joins = find_joins(graph);
  plan.watermarks = gradient_watermarks(graph);
  plan.units = make_units(graph, strategy.reproducible ? strategy.data() : strategy.shards());
  if (strategy.reproducible) plan.fold = fold_size(strategy.data(), plan.micros), plan.control_elems += 2 * ExactSum::num_limbs;
  plan.fault = place_schedule(plan);
  plan.strategy.table = nullptr, plan.strategy.proved = nullptr;  // have been used, and need not outlive the plan
  if (plan.fault.rule != PlanRule::none) return plan;
  if (strategy.reproducible) plan.fault = find_disorder(plan);
  if (plan.fault.rule != PlanRule::none) return plan;
  const bool splits = splits_backward(plan);
  if (strategy.recompute != Recompute::none && splits) plan.fault = {.rule = PlanRule::recompute_splits, .found = strategy.stages()};
  if (plan.fault.rule != PlanRule::none) return plan;
  plan.activations = place_activations(graph, {plan.rows, bytes_of(training.type), plan.depth > 1, splits, strategy.recompute});
  for (int s = 0; s < int(plan.stages.size()); ++s) place_parameters(plan, s);
  place_ties(plan);
  for (int s = 0; s < int(plan.stages.size()); ++s) {
    StageData& stage = plan.stages[std::size_t(s)];
    stage.buckets =
        make_buckets(graph, plan.units, plan.chunks, completion_order(plan, stage), stage, strategy.bucket_bytes, bytes_of(training.type));
    place_micro_batches(plan, s);
    place_shared(plan, s);
    stage.memory = make_memory(plan, s, executor);
    if (stage.memory.total() > plan.memory.total()) plan.memory = stage.memory;
  }
  if (budget.bytes_per_rank > 0 && plan.memory.total() > budget.bytes_per_rank)
    plan.fault = {.rule = PlanRule::over_budget,
                  .found = plan.memory.total(),
                  .wanted = budget.bytes_per_rank,
                  .other = plan.memory.total() - budget.bytes_per_rank};
  return plan;
}

// The plan; where the strategy leaves it to the planner (Activations::fit), with as little recomputed as the budget allows.
constexpr PlanData make_plan(const GraphData& graph, StrategyData strategy, const Batch& batch, const TrainingData& training,
                             const Budget& budget = {}, const ExecutorFacts& executor = {}) {
  PlanData plan = make_plan_as_said(graph, strategy, batch, training, budget, executor);
  while (strategy.fits_recompute && plan.fault.rule == PlanRule::over_budget && strategy.recompute != Recompute::full) {
    strategy.recompute = Recompute(int(strategy.recompute) + 1);
    plan = make_plan_as_said(graph, strategy, batch, training, budget, executor);
  }
  return plan;
}

// Equal for plans that train the same model in the same way on the same bytes; a static plan and one made at start-up are compared by it.
constexpr std::uint64_t fingerprint(const PlanData& plan) {
  Fingerprint print;
  print.add(plan.strategy.ranks).add(plan.strategy.bucket_bytes).add(plan.strategy.overlap);
  for (int i = 0; i < plan.strategy.axes.size(); ++i) print.add(Index(plan.strategy.axes[i].role)).add(plan.strategy.axes[i].extent);
  print.add(plan.strategy.reproducible);
  print.add(Index(plan.strategy.sharding())).add(plan.strategy.shards()).add(Index(plan.strategy.recompute));
  print.add(plan.strategy.schedule_name).add(plan.strategy.schedule_version).add(Index(plan.strategy.table_print)).add(plan.micros);
  for (const ChunkData& chunk : plan.chunks) print.add(chunk.stage).add(chunk.first_unit).add(chunk.end_unit).add(chunk.depth);
  print.add(plan.strategy.sync.name).add(plan.strategy.sync.version).add(plan.strategy.sync.every);
  print.add(plan.batch.global).add(plan.batch.micro).add(plan.batch.sequence);
  print.add(Index(plan.training.type)).add(plan.training.optimizer_states).add(plan.training.loss_name);
  for (const LeafSite& leaf : plan.graph.leaves) {
    print.add(leaf.name).add(leaf.version).add(plan.graph.frames[std::size_t(leaf.frame)].count);
    for (const PathPiece& piece : leaf.path) print.add(Index(piece.kind)).add(piece.text).add(piece.number);
    print.add(leaf.in.channels).add(leaf.in.height).add(leaf.in.width).add(leaf.out.channels).add(leaf.out.height).add(leaf.out.width);
  }
  for (const ParameterSite& site : plan.graph.parameters) {
    print.add(site.facts.name).add(site.owner).add(site.offset).add(Index(site.facts.kind));
    for (Index extent : site.facts.extents) print.add(extent);
  }
  for (const OpSite& op : plan.graph.ops) print.add(Index(op.kind)).add(op.input).add(op.second).add(op.output).add(op.column);
  for (const StageData& stage : plan.stages) {
    for (const Bucket& bucket : stage.buckets) print.add(bucket.first).add(bucket.elems).add(bucket.chunk);
    print.add(stage.memory.total());
  }
  return print.add(plan.memory.total()).value();
}

}  // namespace weft
