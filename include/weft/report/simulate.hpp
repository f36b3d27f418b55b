// SPDX-License-Identifier: Apache-2.0
// How long a step of a plan takes on a cluster that is not there: kernels by their shapes, calls by the links that they cross, the schedule
// action by action. The cost grows with stages x actions, not with ranks: thousands of ranks take milliseconds.
#pragma once

#include "weft/plan/refuse.hpp"
#include "weft/report/chunk_time.hpp"
#include "weft/report/convention_memory.hpp"
#include "weft/schedule/timeline.hpp"

namespace weft {

struct StageSeconds {
  double busy = 0;       // computing and exposed communication within actions, of all micro-batches
  double compute = 0;    // the computing alone
  double finish = 0;     // when its gradients are summed
  double optimizer = 0;  // the update
  double memory_bytes = 0;
};

// Seconds of a step, of the stage that ends last: step = compute + bubble + optimizer + all that is exposed. Exposed: a rank waits for it
// and does nothing else. By group: pipe is messages; data, shard and replica are gradients and sharded parameters; world is control.
struct Simulation {
  double step_seconds = 0, compute_seconds = 0, bubble_seconds = 0, optimizer_seconds = 0;
  double exposed_seconds[num_group_kinds]{};
  double forward_seconds = 0, backward_seconds = 0;  // of the heaviest stage and one micro-batch
  double span_bubble_rate = 0;  // as papers on schedules count: of the longest span of a stage, without the barrier at the end
  double model_flops = 0, recomputed_flops = 0;  // of all ranks and a step
  double memory_bytes = 0;                       // of a rank of the stage that needs most
  int heaviest_stage = 0, fullest_stage = 0;
  Index ranks = 1;
  double tokens = 0;  // or rows, of a step
  std::vector<StageSeconds> stages{};

  constexpr double exposed(GroupKind kind) const { return exposed_seconds[int(kind)]; }
  constexpr double exposed() const {
    double sum = 0;
    for (double each : exposed_seconds) sum += each;
    return sum;
  }
  constexpr double model_flops_per_rank() const { return model_flops / step_seconds / double(ranks); }  // a second
  constexpr double flops_per_rank() const { return (model_flops + recomputed_flops) / step_seconds / double(ranks); }
  constexpr double tokens_per_second() const { return tokens / step_seconds; }
};

// Of the whole model and a row: what a tensor group has in parts, together. Stored scores are computed over the whole square.
constexpr double leaf_flops(const PlanData& plan, const LeafSite& leaf, const Convention& convention, double forwards, double backwards) {
  const double ranks = leaf.split == SplitKind::none ? 1 : double(plan.graph.tensor_ranks);
  double forward = leaf.facts.forward_flops_per_row, backward = leaf.facts.backward_flops_per_row;
  if (is_attention(leaf) && convention.stores_scores)
    forward = 4.0 * double(plan.batch.sequence) * double(leaf.out.channels), backward = 2 * forward;
  return ranks * (forwards * forward + backwards * backward);
}

// Errors: weft[cluster.numbers]; and of a plan that was refused, what it was refused for.
class Simulator {
 public:
  constexpr Simulator(const PlanData& plan, const Cluster& cluster, const Convention& convention)
      : plan_(checked(plan, cluster, convention)), cluster_(cluster), convention_(convention), routes_(plan_, cluster) {}

  constexpr Simulation run() {
    out_.ranks = plan_.strategy.ranks;
    out_.tokens = double(plan_.batch.global * plan_.batch.sequence);
    chunks_ = chunk_seconds(plan_, cluster_, convention_, routes_);
    count_flops();
    for (int s = 0; s < num_stages(); ++s) out_.stages.push_back(stage(s));
    for (int s = 0; s < num_stages(); ++s)
      if (out_.stages[std::size_t(s)].busy > out_.stages[std::size_t(out_.heaviest_stage)].busy) out_.heaviest_stage = s;
    schedule();
    finish();
    return out_;
  }

 private:
  static constexpr const PlanData& checked(const PlanData& plan, const Cluster& cluster, const Convention& convention) {
    if (plan.fault.rule != PlanRule::none) require_valid(plan);
    if (!cluster.is_complete(convention.product_type))
      throw Error("cluster.numbers", "a cluster has memory, links and, for the element type of products, flops above 0; fill them in");
    return plan;
  }
  constexpr int num_stages() const { return int(plan_.stages.size()); }

  constexpr void count_flops() {
    for (std::size_t f = 0; f < plan_.graph.frames.size(); ++f) {
      const FrameSite& frame = plan_.graph.frames[f];
      const double times = out_.tokens * double(frame.count);
      for (int l = frame.first_leaf; l < frame.first_leaf + frame.num_leaves; ++l)
        out_.model_flops += times * leaf_flops(plan_, plan_.graph.leaves[std::size_t(l)], convention_, 1, 1);
      for (const Rerun& rerun : plan_.activations.frames[f].reruns)
        for (int i = rerun.first; i <= rerun.last; ++i) {
          const OpSite& op = plan_.graph.ops[std::size_t(frame.first_op + i)];
          if (op.kind == OpKind::leaf)
            out_.recomputed_flops += times * leaf_flops(plan_, plan_.graph.leaves[std::size_t(op.leaf)], convention_, 1, 0);
        }
    }
  }

  constexpr StageSeconds stage(int number) const {
    StageSeconds out;
    for (int c : plan_.stages[std::size_t(number)].chunks) {
      const ChunkSeconds& chunk = chunks_[std::size_t(c)];
      out.busy += double(plan_.micros) * chunk.busy();
      out.compute += double(plan_.micros) * chunk.compute;
    }
    // Adam and its like: read the gradient for the norm and for the update, clear it; read and write states and weights.
    const Shard sharding = plan_.strategy.sharding();
    const double elems =
        double(plan_.stages[std::size_t(number)].parameter_elems) / double(sharding == Shard::none ? 1 : plan_.strategy.shards());
    out.optimizer = streaming_seconds(
        cluster_, elems * (2 * (convention_.optimizer_bytes + convention_.weight_bytes) + 3 * convention_.gradient_bytes));
    return out;
  }

  // Begin and end of every stage, and of the last backward of every chunk.
  constexpr void schedule() {
    const StageSeconds& heaviest = out_.stages[std::size_t(out_.heaviest_stage)];
    for (const ChunkSeconds& chunk : chunks_) last_end_.push_back(chunk.busy() * double(plan_.micros));
    ends_ = last_end_;
    double makespan = heaviest.busy, without_messages = makespan;
    if (plan_.streams()) {
      const ScheduleTable table = schedule_of(plan_);
      std::vector<ScheduleTimes> times;
      for (std::size_t c = 0; c < chunks_.size(); ++c) {  // a chunk has one time for both neighbours: the slower
        const double next = c + 1 < chunks_.size() ? chunks_[c + 1].message : 0;
        times.push_back({chunks_[c].forward, chunks_[c].backward_input, chunks_[c].backward_weight,
                         chunks_[c].message > next ? chunks_[c].message : next});
      }
      const Timeline timeline = simulate_schedule(table, [&](int c) -> const ScheduleTimes& { return times[std::size_t(c)]; });
      for (ScheduleTimes& each : times) each.communication = 0;
      const Timeline at_once = simulate_schedule(table, [&](int c) -> const ScheduleTimes& { return times[std::size_t(c)]; });
      makespan = timeline.makespan, without_messages = at_once.makespan;
      out_.span_bubble_rate = timeline.bubble_rate();
      ends_.clear();
      for (const auto& row : timeline.rows) {
        ends_.push_back(row.empty() ? 0 : row.back().end);
        for (const TimedAction& action : row)
          if (action.action.kind == ActionKind::backward || action.action.kind == ActionKind::backward_weight)
            last_end_[std::size_t(action.action.chunk)] = action.end;
      }
    }
    out_.bubble_seconds = without_messages > heaviest.busy ? without_messages - heaviest.busy : 0;  // sums in another order
    out_.exposed_seconds[int(GroupKind::pipe)] = makespan - without_messages;
    for (int c : plan_.stages[std::size_t(out_.heaviest_stage)].chunks) {
      const ChunkSeconds& chunk = chunks_[std::size_t(c)];
      out_.forward_seconds += chunk.forward, out_.backward_seconds += chunk.backward_input + chunk.backward_weight;
      out_.compute_seconds += double(plan_.micros) * chunk.compute;
      out_.exposed_seconds[int(GroupKind::tensor)] += double(plan_.micros) * chunk.tensor_exposed;
      out_.exposed_seconds[int(GroupKind::shard)] += double(plan_.micros) * chunk.shard_exposed;
    }
    out_.step_seconds = makespan;
  }

  // When backward of a stage has passed everything from an element of its arena on.
  constexpr double ready(int stage_number, const Bucket& bucket) const {
    if (bucket.chunk < 0) return ends_[std::size_t(stage_number)];
    const ChunkData& chunk = plan_.chunks[std::size_t(bucket.chunk)];
    double at = last_end_[std::size_t(bucket.chunk)];
    for (Index u = chunk.first_unit;
         u < chunk.end_unit &&
         plan_.units[std::size_t(u)].first_parameter_elem + plan_.units[std::size_t(u)].parameter_elems <= bucket.first;
         ++u)
      at -= chunks_[std::size_t(bucket.chunk)].backward_of_unit[std::size_t(u - chunk.first_unit)];
    return at;
  }

  // Of a policy of synchronisation: the mean of the steps after which it begins anew.
  constexpr double synchronise_seconds(const StageData& stage) const {
    const SyncData& sync = plan_.strategy.sync;
    double seconds = 0;
    for (Index update = 1; update <= sync.every && plan_.strategy.data() > 1; ++update) {
      const SyncStep said = sync.step(update);
      for (const SyncEntry& entry : said.entries()) {
        const double states = double(plan_.training.optimizer_states), elems = double(stage.parameter_elems);
        const bool parameters = entry.what == Shared::parameters;
        const double calls = parameters ? 1 : states, bytes = parameters ? convention_.weight_bytes : convention_.optimizer_bytes / states;
        if (calls > 0) seconds += calls * collective_seconds(Operation::all_reduce, elems * bytes, routes_[GroupKind::data]);
      }
    }
    return seconds / double(sync.every);
  }

  // What a step ends with: sums, ties, control, the update, what is published.
  constexpr void finish() {
    double latest = out_.step_seconds, control = 0, after = 0, publish_of_latest[num_group_kinds]{};
    for (int s = 0; s < num_stages(); ++s) {
      StageSeconds& own = out_.stages[std::size_t(s)];
      const StageData& data = plan_.stages[std::size_t(s)];
      const double end = ends_[std::size_t(s)];
      double queue = 0, exposed[num_group_kinds]{}, slowed[num_group_kinds]{}, published[num_group_kinds]{}, published_all = 0;
      auto visit = [&](const LedgerEntry& entry) {
        // Calls of layers are within the actions (of a model that joins); those of policies are counted below.
        if (entry.phase == LedgerPhase::layer_backward || entry.phase == LedgerPhase::synchronise) return;
        const bool parts = entry.call.operation == Operation::reduce_scatter || entry.call.operation == Operation::all_gather;
        const Route route = routes_.of(entry);
        const double bytes = double(entry.call.count) * element_bytes(entry, convention_) * (parts ? double(route.ranks) : 1);
        const double times = entry.phase == LedgerPhase::join_backward ? 2 : 1;  // and the same forward
        const double seconds = times * collective_seconds(entry.call.operation, bytes, route);
        if (entry.phase == LedgerPhase::control) {
          control = seconds;
        } else if (entry.phase == LedgerPhase::publish) {
          published[int(entry.group)] += seconds, published_all += seconds;
        } else {
          const bool early = entry.phase == LedgerPhase::bucket && entry.group == GroupKind::data && plan_.strategy.overlap;
          const double start = early ? ready(s, data.buckets[std::size_t(entry.number)]) : end;
          queue = (start > queue ? start : queue) + seconds;
          const double before = queue - seconds > end ? queue - seconds : end;
          const double open = queue > before ? queue - before : 0;
          exposed[int(entry.group)] += open;
          slowed[int(entry.group)] += (seconds - open) * cluster_.kernels.collective_fraction;
        }
      };
      LedgerWalk<decltype(visit)>(plan_, s, visit, 0).end();
      published[int(GroupKind::data)] += synchronise_seconds(data), published_all += synchronise_seconds(data);
      own.finish = queue > end ? queue : end;
      for (int k = 0; k < num_group_kinds; ++k) exposed[k] += slowed[k], own.finish += slowed[k];
      if (own.finish >= latest) {
        latest = own.finish;
        for (int k = 0; k < num_group_kinds; ++k) late_[k] = exposed[k];
      }
      if (own.optimizer + published_all > after) {
        after = own.optimizer + published_all, out_.optimizer_seconds = own.optimizer;
        for (int k = 0; k < num_group_kinds; ++k) publish_of_latest[k] = published[k];
      }
    }
    // A stage that ended before the others hides behind them what it says until they end.
    double late = 0;
    for (double each : late_) late += each;
    const double shown = late > 0 ? (latest - out_.step_seconds) / late : 0;
    for (int k = 0; k < num_group_kinds; ++k) out_.exposed_seconds[k] += shown * late_[k] + publish_of_latest[k];
    out_.exposed_seconds[int(GroupKind::world)] += control;
    out_.step_seconds = latest + control + after;
  }

  const PlanData& plan_;
  const Cluster& cluster_;
  const Convention& convention_;
  GroupRoutes routes_;
  std::vector<ChunkSeconds> chunks_{};
  std::vector<double> last_end_{}, ends_{};
  double late_[num_group_kinds]{};
  Simulation out_{};
};

// Memory of every stage, and which needs most.
template <class BytesOfStage>
constexpr void place_memory(Simulation& out, BytesOfStage&& bytes_of_stage) {
  for (std::size_t s = 0; s < out.stages.size(); ++s) {
    const double bytes = out.stages[s].memory_bytes = bytes_of_stage(int(s));
    if (bytes > out.memory_bytes) out.memory_bytes = bytes, out.fullest_stage = int(s);
  }
}

// As another program would run it; memory is what such programs count.
constexpr Simulation simulate(const PlanData& plan, const Cluster& cluster, const Convention& convention) {
  Simulation out = Simulator(plan, cluster, convention).run();
  if (!plan.streams()) {
    place_memory(out, [&](int stage) { return convention_memory(plan, stage, convention).total(); });
    return out;
  }
  const ScheduleTable table = schedule_of(plan);
  place_memory(out, [&](int stage) { return convention_memory(plan, stage, convention, table.rows[std::size_t(stage)]).total(); });
  return out;
}

// As this library runs it; memory is what it allocates.
constexpr Simulation simulate(const PlanData& plan, const Cluster& cluster) {
  const Convention convention = as_planned(plan);
  Simulation out = Simulator(plan, cluster, convention).run();
  place_memory(out, [&](int stage) { return double(plan.stages[std::size_t(stage)].memory.total()); });
  return out;
}

}  // namespace weft
