// SPDX-License-Identifier: Apache-2.0
// The passes in order: check → place activations → joins → buckets → ledger → memory. One constexpr function, for plans at compile time and
// for plans whose sizes are known at start-up only; both give the same data and the same faults.
#pragma once

#include "weft/base/hash.hpp"
#include "weft/graph/lower.hpp"
#include "weft/plan/buckets.hpp"

namespace weft {

// The control exchange of a step: see run/control.hpp for what stands where. One more for every parameter whose use depends on the data.
inline constexpr Index control_fields = 8;

constexpr PlanFault find_fault(const GraphData& graph, const StrategyData& strategy, const Batch& batch, const TrainingData& training) {
  static_assert(int(GraphRule::empty) == int(PlanRule::empty),
                "weft[plan.rules]: PlanRule begins with GraphRule's rules, in its order; keep both lists alike");
  if (graph.fault.rule != GraphRule::none)
    return {PlanRule(int(graph.fault.rule)), graph.fault.leaf, graph.fault.given.channels, graph.fault.wanted.channels,
            graph.fault.given.height};
  if (strategy.ranks < 1) return {.rule = PlanRule::ranks_positive, .found = strategy.ranks};
  if (strategy.bucket_bytes < 1) return {.rule = PlanRule::bucket_positive, .found = strategy.bucket_bytes};
  if (batch.global < 1 || batch.micro < 1 || batch.sequence < 1)
    return {.rule = PlanRule::batch_positive, .found = batch.global, .wanted = batch.micro, .other = batch.sequence};
  if (batch.global % (strategy.ranks * batch.micro) != 0)
    return {.rule = PlanRule::batch_divides, .found = batch.global, .wanted = strategy.ranks, .other = batch.micro};
  if (graph.longest_sequence > 0 && batch.sequence > graph.longest_sequence)
    return {.rule = PlanRule::sequence_fits, .found = batch.sequence, .wanted = graph.longest_sequence};
  if (!training.target.valid())
    return {
        .rule = PlanRule::loss_fits, .leaf = int(graph.leaves.size()) - 1, .found = graph.output.channels, .wanted = graph.output.plane()};
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

// Every call of a step, in its order on the one communicator of the data axis.
constexpr std::vector<LedgerEntry> make_ledger(const PlanData& plan) {
  std::vector<LedgerEntry> out;
  if (plan.strategy.ranks == 1) return out;
  const auto call = [](ElementType type, Index count, Index tag) {
    return CallRecord{.operation = Operation::all_reduce, .type = type, .reduction = Reduction::sum, .count = count, .tag = tag};
  };
  const auto join = [&](LedgerPhase phase, std::size_t number) {
    const Index elems = plan.graph.leaves[std::size_t(plan.joins[number].leaf)].facts.join_elems + 1;  // and the rows
    out.push_back({phase, Index(number), call(ElementType::f64, elems, Index(number))});
  };
  for (std::size_t j = 0; j < plan.joins.size(); ++j) join(LedgerPhase::join_forward, j);
  std::size_t next = 0;
  const auto buckets_from = [&](Index first_complete) {
    for (; next < plan.buckets.size() && plan.buckets[next].first >= first_complete; ++next)
      out.push_back({LedgerPhase::bucket, Index(next), call(plan.training.type, plan.buckets[next].elems, Index(next))});
  };
  for (std::size_t j = plan.joins.size(); j-- > 0;) {
    const JoinSite& site = plan.joins[j];
    const FrameSite& frame = plan.graph.frames[std::size_t(site.frame)];
    const Index base = frame.first_parameter_elem + site.repetition * frame.parameter_elems;
    const std::size_t following = std::size_t(frame.first_op + site.op + 1);
    if (plan.strategy.overlap) buckets_from(base + (site.op + 1 < frame.num_ops ? plan.watermarks[following] : frame.parameter_elems));
    join(LedgerPhase::join_backward, j);
  }
  buckets_from(0);
  out.push_back({LedgerPhase::control, 0, call(ElementType::f64, plan.control_elems, 0)});
  return out;
}

constexpr Memory make_memory(const PlanData& plan, const ExecutorFacts& executor) {
  const Index real = bytes_of(plan.training.type);
  const auto aligned = [](Index bytes) { return round_up(bytes, alignment_bytes); };
  const auto io = [&](Features features) { return tensor_bytes(features, {.rows = plan.rows, .real_bytes = real}); };
  Memory out;
  out.parameters = out.gradients = aligned(plan.graph.parameter_elems * real);
  out.buffers = aligned(plan.graph.buffer_elems * real);
  out.optimizer = plan.training.optimizer_states * out.parameters;
  out.activations = plan.depth * plan.activations.slot_bytes;
  out.boundaries = 2 * plan.activations.boundary_bytes;
  out.workspace = plan.activations.workspace_bytes;
  out.inputs = plan.depth * (io(plan.graph.input) + io(plan.training.target));
  for (const JoinSite& join : plan.joins) {
    const LayerFacts& facts = plan.graph.leaves[std::size_t(join.leaf)].facts;
    out.joins += 2 * aligned((facts.join_elems + 1) * 8) + aligned(facts.step_elems * real);
  }
  out.control = aligned(plan.control_elems * 8);
  out.scratch = aligned(executor.scratch_bytes);
  return out;
}

constexpr PlanData make_plan(GraphData graph, const StrategyData& strategy, const Batch& batch, const TrainingData& training,
                             const Budget& budget = {}, const ExecutorFacts& executor = {}) {
  PlanData plan;
  plan.fault = find_fault(graph, strategy, batch, training);
  plan.graph = graph, plan.strategy = strategy, plan.batch = batch, plan.training = training;
  if (plan.fault.rule != PlanRule::none) return plan;
  plan.rows = batch.micro * batch.sequence;
  plan.micros = batch.global / (strategy.ranks * batch.micro);
  plan.depth = graph.joins() ? plan.micros : 1;
  plan.control_elems = control_fields;
  for (const LeafSite& leaf : graph.leaves)
    if (leaf.facts.reports_touched) plan.control_elems += leaf.facts.parameters.size() * graph.frames[std::size_t(leaf.frame)].count;
  while (plan.nominal < double(batch.global) * double(batch.sequence) * double(training.counts_per_row)) plan.nominal *= 2;
  plan.activations = place_activations(graph, {plan.rows, bytes_of(training.type), plan.depth > 1});
  plan.joins = find_joins(graph);
  plan.buckets = make_buckets(graph, strategy.bucket_bytes, bytes_of(training.type));
  plan.watermarks = gradient_watermarks(graph);
  plan.ledger = make_ledger(plan);
  plan.memory = make_memory(plan, executor);
  if (budget.bytes_per_rank > 0 && plan.memory.total() > budget.bytes_per_rank)
    plan.fault = {.rule = PlanRule::over_budget,
                  .found = plan.memory.total(),
                  .wanted = budget.bytes_per_rank,
                  .other = plan.memory.total() - budget.bytes_per_rank};
  return plan;
}

// Equal for plans that train the same model in the same way on the same bytes; a static plan and one made at start-up are compared by it.
constexpr std::uint64_t fingerprint(const PlanData& plan) {
  Fingerprint print;
  print.add(plan.strategy.ranks).add(plan.strategy.bucket_bytes).add(plan.strategy.overlap);
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
  for (const LedgerEntry& entry : plan.ledger)
    print.add(Index(entry.phase)).add(entry.number).add(Index(entry.call.operation)).add(Index(entry.call.type)).add(entry.call.count);
  return print.add(plan.memory.total()).value();
}

}  // namespace weft
