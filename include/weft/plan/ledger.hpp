// SPDX-License-Identifier: Apache-2.0
// Every call that a rank makes in a step, derived from the plan's descriptions alone: the engine's code has no part in it, so that
// comparing the two means something. The order is total within a group of ranks, and says nothing across groups.
#pragma once

#include "weft/plan/plan_data.hpp"

namespace weft {

constexpr const char* name_of(LedgerPhase phase) {
  switch (phase) {
    case LedgerPhase::join_forward: return "join, forward";
    case LedgerPhase::message: return "message";
    case LedgerPhase::gather: return "gather";
    case LedgerPhase::scatter: return "scatter";
    case LedgerPhase::layer_forward: return "layer, forward";
    case LedgerPhase::layer_backward: return "layer, backward";
    case LedgerPhase::loss: return "loss";
    case LedgerPhase::summed: return "summed gradient";
    case LedgerPhase::bucket: return "gradient bucket";
    case LedgerPhase::tie: return "tie";
    case LedgerPhase::join_backward: return "join, backward";
    case LedgerPhase::fold: return "fold";
    case LedgerPhase::control: return "control";
    case LedgerPhase::publish: return "publish";
    case LedgerPhase::synchronise: return "synchronise";
  }
  return "unknown";
}

constexpr const char* name_of(GroupKind kind) {
  switch (kind) {
    case GroupKind::world: return "world";
    case GroupKind::data: return "data";
    case GroupKind::pipe: return "pipe";
    case GroupKind::tensor: return "tensor";
    case GroupKind::shard: return "shard";
    case GroupKind::replica: return "replica";
    case GroupKind::tie: return "tie";
    case GroupKind::copies: return "copies";
  }
  return "unknown";
}

// The features of what chunk c takes from the chunk before it.
constexpr Features chunk_input(const PlanData& plan, int c) {
  const UnitData& unit = plan.units[std::size_t(plan.chunks[std::size_t(c)].first_unit)];
  return plan.graph.tensors[std::size_t(plan.graph.frames[std::size_t(unit.frame)].first_tensor)];
}

// The rows of it that a rank sends or receives.
constexpr Index chunk_input_rows(const PlanData& plan, int c, Index rows) {
  const UnitData& unit = plan.units[std::size_t(plan.chunks[std::size_t(c)].first_unit)];
  const FrameSite& frame = plan.graph.frames[std::size_t(unit.frame)];
  return plan.graph.rows_divided[std::size_t(frame.first_tensor)] ? divide_up(rows, plan.graph.tensor_ranks) : rows;
}

// Messages are told apart by what they carry: the tag of micro-batch m into chunk c, or of its gradient out of it.
constexpr Index message_tag(const PlanData& plan, int c, int micro, bool gradient) {
  return 1 + (Index(c) * 2 + gradient) * plan.micros + micro;
}

// What a communicating op calls; barrier stands for nothing.
constexpr Operation communication_of(OpKind kind, bool backward) {
  switch (kind) {
    case OpKind::all_reduce: return backward ? Operation::barrier : Operation::all_reduce;
    case OpKind::enter: return backward ? Operation::all_reduce : Operation::barrier;
    case OpKind::gather_rows: return backward ? Operation::reduce_scatter : Operation::all_gather;
    case OpKind::copy_rows: return backward ? Operation::barrier : Operation::all_gather;
    case OpKind::scatter_rows: return backward ? Operation::all_gather : Operation::reduce_scatter;
    case OpKind::slice_rows: return backward ? Operation::all_gather : Operation::barrier;
    default: return Operation::barrier;
  }
}

// updates: so far, that of the step among them. Only policies of synchronisation look at it; at 0 they say all that they ever say together
// if, as usual, they go by its multiples.
template <class Visit>
class LedgerWalk {
 public:
  constexpr LedgerWalk(const PlanData& plan, int stage, Visit& visit, Index updates)
      : plan_(plan), strategy_(plan.strategy), number_(stage), stage_(plan.stages[std::size_t(stage)]), visit_(visit), updates_(updates) {}

  constexpr void step() {
    if (!plan_.joins.empty()) {  // all micro-batches through a segment, then the next
      const int last = int(plan_.joins.size());
      for (int s = 0; s <= last; ++s) {
        for (int m = 0; m < int(plan_.micros); ++m) {
          segment(s - 1, s, false, m);
          if (s == last) loss(m), segment(s - 1, s, true, m);
        }
        if (s < last) join(LedgerPhase::join_forward, std::size_t(s));
      }
    } else if (stage_.actions.empty()) {
      for (Index m = 0; m < plan_.micros; ++m) action({ActionKind::forward, 0, int(m)}), action({ActionKind::backward, 0, int(m)});
    } else {
      const ActionRow& actions = stage_.actions;
      for (std::size_t i = 0, end; i < actions.size(); i = end) {
        for (end = i + 1; is_message(actions[i].kind) && end < actions.size() && is_message(actions[end].kind);) ++end;
        for (const bool sends : {true, false})  // messages side by side are one exchange, sends first
          for (std::size_t j = i; j < end; ++j)
            if (sends == !is_receive(actions[j].kind)) action(actions[j]);
      }
    }
    end();
  }

  // What an action of a schedule says to others.
  constexpr void action(const Action& action) {
    if (action.chunk < 0) return;
    const ChunkData& chunk = plan_.chunks[std::size_t(action.chunk)];
    const bool gathers = strategy_.shards_parameters(), scatters = strategy_.shards_gradients();
    switch (action.kind) {
      case ActionKind::send_forward: return message(Operation::send, action.chunk + 1, action, false, action.chunk + 1);
      case ActionKind::receive_forward: return message(Operation::receive, action.chunk, action, false, action.chunk - 1);
      case ActionKind::send_backward: return message(Operation::send, action.chunk, action, true, action.chunk - 1);
      case ActionKind::receive_backward: return message(Operation::receive, action.chunk + 1, action, true, action.chunk + 1);
      case ActionKind::forward:
        for (Index u = chunk.first_unit; u < chunk.end_unit; ++u) {
          if (gathers) unit(LedgerPhase::gather, u);
          for (int i = 0; i < num_ops(u); ++i) layer(u, i, false, action.micro);
        }
        if (action.chunk + 1 == int(plan_.chunks.size())) loss(action.micro);
        return;
      case ActionKind::backward:
      case ActionKind::backward_input:
        if (gathers) unit(LedgerPhase::gather, chunk.end_unit - 1);
        for (Index u = chunk.end_unit; u-- > chunk.first_unit;) {
          if (gathers && u > chunk.first_unit) unit(LedgerPhase::gather, u - 1);
          for (int i = num_ops(u); i-- > 0;) {
            for (const Rerun& rerun : plan_.activations.frames[std::size_t(plan_.units[std::size_t(u)].frame)].reruns)
              for (int again = rerun.first; rerun.before == i && again <= rerun.last; ++again) layer(u, again, false, action.micro);
            layer(u, i, true, action.micro);
          }
          if (scatters) summed(u), unit(LedgerPhase::scatter, u);
        }
        return;
      case ActionKind::backward_weight:
        for (Index u = chunk.end_unit; scatters && u-- > chunk.first_unit;) summed(u), unit(LedgerPhase::scatter, u);
        return;
      default: return;
    }
  }

 private:
  constexpr void put(LedgerPhase phase, Index number, CallRecord call, GroupKind group, int micro = -1, Index elems_per_row = 0,
                     bool divided = false, Index copies = 0) {
    visit_(LedgerEntry{phase, number, call, group, micro, elems_per_row, divided, copies});
  }

  // What a tensor group says for an op of a unit.
  constexpr void layer(Index u, int i, bool backward, int micro) {
    const FrameSite& frame = plan_.graph.frames[std::size_t(plan_.units[std::size_t(u)].frame)];
    const OpSite& op = plan_.graph.ops[std::size_t(frame.first_op + i)];
    if (!is_communication(op.kind)) return;
    const Operation operation = communication_of(op.kind, backward);
    if (operation == Operation::barrier) return;
    const bool divided = operation != Operation::all_reduce;
    const Index width = plan_.graph.tensors[std::size_t(frame.first_tensor + op.input)].elems();
    put(backward ? LedgerPhase::layer_backward : LedgerPhase::layer_forward, u,
        {.operation = operation,
         .type = plan_.training.type,
         .reduction = Reduction::sum,
         .count = (divided ? divide_up(plan_.rows, plan_.graph.tensor_ranks) : plan_.rows) * width},
        GroupKind::tensor, micro, width, divided);
  }
  // Of the ops between two joins, in the order of a pass.
  constexpr void segment(int first, int last, bool backward, int micro) {
    const JoinSite* from = first < 0 ? nullptr : &plan_.joins[std::size_t(first)];
    const JoinSite* to = last < int(plan_.joins.size()) ? &plan_.joins[std::size_t(last)] : nullptr;
    const Index begin = from ? from->unit : 0, end = to ? to->unit : Index(plan_.units.size()) - 1;
    for (Index n = 0; n <= end - begin; ++n) {
      const Index u = backward ? end - n : begin + n;
      const int low = from && u == begin ? from->op : 0, high = to && u == end ? to->op : num_ops(u) - 1;
      for (int i = low; i <= high; ++i) layer(u, backward ? high + low - i : i, backward, micro);
    }
  }
  constexpr int num_ops(Index u) const { return plan_.graph.frames[std::size_t(plan_.units[std::size_t(u)].frame)].num_ops; }
  constexpr void loss(int micro) {
    if (!plan_.divides_classes()) return;
    CallRecord call{.operation = Operation::all_reduce, .type = ElementType::f64, .reduction = Reduction::maximum, .count = plan_.rows};
    put(LedgerPhase::loss, 0, call, GroupKind::tensor, micro, 1);
    call.reduction = Reduction::sum, call.count = 3 * plan_.rows;
    put(LedgerPhase::loss, 0, call, GroupKind::tensor, micro, 3);
  }
  static constexpr CallRecord all_reduce(ElementType type, Index count, Index tag) {
    return {.operation = Operation::all_reduce, .type = type, .reduction = Reduction::sum, .count = count, .tag = tag};
  }
  constexpr bool has_data() const { return strategy_.data() > 1; }
  constexpr bool sums_gradients() const { return has_data() && !strategy_.updates_alone(); }

  constexpr void message(Operation operation, int tensor_of, const Action& action, bool gradient, int other) {
    put(LedgerPhase::message, action.chunk,
        {.operation = operation,
         .type = plan_.training.type,
         .peer = plan_.chunks[std::size_t(other)].stage,
         .count = chunk_input_rows(plan_, tensor_of, plan_.rows) * chunk_input(plan_, tensor_of).elems(),
         .tag = message_tag(plan_, tensor_of, action.micro, gradient)},
        GroupKind::pipe, action.micro, chunk_input(plan_, tensor_of).elems(), chunk_input_rows(plan_, tensor_of, plan_.rows) != plan_.rows);
  }

  // Gradients that are summands within a tensor group, or of neighbours in it, of a unit: in one call each.
  constexpr void summed(Index u) {
    if (plan_.is_shared(u)) return;
    each_summed(u);
  }
  constexpr void each_summed(Index u) {
    for (const Stretch& stretch : plan_.summed)
      if (stretch.frame == plan_.units[std::size_t(u)].frame)
        put(LedgerPhase::summed, u, all_reduce(plan_.training.type, stretch.elems, u + 1),
            stretch.ranks == plan_.graph.tensor_ranks ? GroupKind::tensor : GroupKind::copies, -1, 0, false, stretch.ranks);
  }

  // A unit's whole parameters are gathered, or its gradients are divided. Units that others use are treated once a step.
  constexpr void unit(LedgerPhase phase, Index u) {
    if (!plan_.is_shared(u)) sharded(phase, u, plan_.units[std::size_t(u)].parameter_elems);
  }
  constexpr void sharded(LedgerPhase phase, Index u, Index elems) {
    if (elems == 0) return;
    const bool scatter = phase == LedgerPhase::scatter;
    put(phase, u,
        {.operation = scatter ? Operation::reduce_scatter : Operation::all_gather,
         .type = plan_.training.type,
         .reduction = Reduction::sum,
         .count = elems / strategy_.shards(),
         .tag = u + 1},
        GroupKind::shard);
  }
  // Partial gradients of a block go to the data rank that folds them, slice by slice; where it is not the one that updates, all get the
  // sums.
  constexpr void folded(Index u, Index elems) {
    if (!has_data() || elems == 0) return;
    CallRecord call{.operation = Operation::all_to_all, .type = plan_.training.type, .count = elems / strategy_.data(), .tag = u + 1};
    for (Index level = 0; level < plan_.fold.last; ++level) put(LedgerPhase::fold, u, call, GroupKind::data);
    call.operation = Operation::all_gather;
    if (strategy_.shards() != strategy_.data()) put(LedgerPhase::fold, u, call, GroupKind::data);
  }
  // Units and guests of a stage, in the order of its arena.
  template <class Function>
  constexpr void for_each_block(Function&& function) const {
    for (int c : stage_.chunks)
      for (Index u = plan_.chunks[std::size_t(c)].first_unit; u < plan_.chunks[std::size_t(c)].end_unit; ++u)
        function(u, plan_.units[std::size_t(u)].parameter_elems, plan_.is_shared(u));
    for (const GuestData& guest : stage_.guests) function(guest.unit, guest.elems, true);
  }

  constexpr void join(LedgerPhase phase, std::size_t number) {
    if (!has_data()) return;
    const Index elems = plan_.graph.leaves[std::size_t(plan_.joins[number].leaf)].facts.join_elems + 1;  // and the rows
    put(phase, Index(number), all_reduce(ElementType::f64, elems, Index(number)), GroupKind::data);
  }

 public:
  // What a step ends with: sums over data ranks and ties, control, what is published.
  constexpr void end() {
    const Shard sharding = strategy_.sharding();
    std::size_t next = 0;
    const auto buckets_from = [&](Index first_complete) {
      for (; sums_gradients() && next < stage_.buckets.size() && stage_.buckets[next].first >= first_complete; ++next)
        put(LedgerPhase::bucket, Index(next), all_reduce(plan_.training.type, stage_.buckets[next].elems, Index(next)), GroupKind::data);
    };
    for (std::size_t j = plan_.joins.size(); j-- > 0;) {
      const JoinSite& site = plan_.joins[j];
      const FrameSite& frame = plan_.graph.frames[std::size_t(site.frame)];
      const std::size_t following = std::size_t(frame.first_op + site.op + 1);
      if (strategy_.overlap && sharding == Shard::none)
        buckets_from(plan_.units[std::size_t(site.unit)].first_parameter_elem +
                     (site.op + 1 < frame.num_ops ? plan_.watermarks[following] : frame.parameter_elems));
      join(LedgerPhase::join_backward, j);
      for (int m = 0; m < int(plan_.micros); ++m) segment(int(j) - 1, int(j), true, m);
    }
    for (int c : stage_.chunks)
      for (Index u = plan_.chunks[std::size_t(c)].first_unit; u < plan_.chunks[std::size_t(c)].end_unit; ++u)
        if (!strategy_.shards_gradients() || plan_.is_shared(u)) each_summed(u);
    if (strategy_.reproducible) {
      for_each_block([&](Index u, Index elems, bool) { folded(u, elems); });
    } else if (sharding == Shard::none) {
      for (; sums_gradients() && next < stage_.buckets.size(); ++next)
        put(LedgerPhase::bucket, Index(next), all_reduce(plan_.training.type, stage_.buckets[next].elems, Index(next)), GroupKind::data);
    } else {
      for_each_block([&](Index u, Index elems, bool resident) {
        if (sharding == Shard::optimizer || resident) sharded(LedgerPhase::scatter, u, elems);
      });
      if (strategy_.replicas() > 1)
        for_each_block([&](Index u, Index elems, bool) {
          if (elems > 0)
            put(LedgerPhase::bucket, u, all_reduce(plan_.training.type, elems / strategy_.shards(), u + 1), GroupKind::replica);
        });
    }
    for (std::size_t t = 0; t < plan_.ties.size(); ++t)
      if (plan_.ties[t].stages.size() > 1 && plan_.ties[t].contains(number_))
        put(LedgerPhase::tie, Index(t),
            all_reduce(plan_.training.type, plan_.units[std::size_t(plan_.ties[t].unit)].parameter_elems / strategy_.shards(), Index(t)),
            GroupKind::tie);
    if (strategy_.ranks > 1) put(LedgerPhase::control, 0, all_reduce(ElementType::f64, plan_.control_elems, 0), GroupKind::world);
    if (sharding == Shard::optimizer || sharding == Shard::gradients)
      for_each_block([&](Index u, Index elems, bool) { sharded(LedgerPhase::publish, u, elems); });
    if (sharding == Shard::parameters)
      for_each_block([&](Index u, Index elems, bool resident) {
        if (resident) sharded(LedgerPhase::publish, u, elems);
      });
    if (!has_data()) return;
    const SyncStep said = strategy_.sync.step(updates_);
    for (const SyncEntry& entry : said.entries()) {
      const Index calls = entry.what == Shared::parameters ? 1 : plan_.training.optimizer_states;
      for (Index i = 0; i < calls; ++i)
        put(LedgerPhase::synchronise, i,
            {.operation = Operation::all_reduce,
             .type = plan_.training.type,
             .reduction = entry.reduction,
             .count = stage_.parameter_elems},
            GroupKind::data);
    }
  }

 private:
  const PlanData& plan_;
  const StrategyData& strategy_;
  int number_;
  const StageData& stage_;
  Visit& visit_;
  Index updates_;
};

// Calls visit(entry) for every call of a rank of a stage, in order.
template <class Visit>
constexpr void for_each_call(const PlanData& plan, int stage, Visit&& visit, Index updates = 0) {
  LedgerWalk<std::remove_reference_t<Visit>>(plan, stage, visit, updates).step();
}

constexpr std::vector<LedgerEntry> ledger_of(const PlanData& plan, int stage = 0) {
  std::vector<LedgerEntry> out;
  for_each_call(plan, stage, [&](const LedgerEntry& entry) { out.push_back(entry); });
  return out;
}

// What a rank says to others in a step. Bytes are payload: each element once a call, whatever the algorithm sends; of a message, what is
// sent (what is received counts at the sender); of a gather or scatter, what a rank keeps.
struct LedgerTotals {
  Index calls = 0, bytes = 0, control_calls = 0, control_bytes = 0;

  constexpr Index calls_per_step() const { return calls; }
  constexpr Index bytes_per_step() const { return bytes; }
  bool operator==(const LedgerTotals&) const = default;
};

constexpr void add_entry(LedgerTotals& totals, const LedgerEntry& entry, Index count = 1) {
  const Index bytes = entry.call.operation == Operation::receive ? 0 : count * entry.call.count * bytes_of(entry.call.type);
  if (entry.phase == LedgerPhase::control)
    totals.control_calls += count, totals.control_bytes += bytes;
  else
    totals.calls += count, totals.bytes += bytes;
}

// Calls visit(entry, count) for the calls of a rank of a stage, in no order: calls that differ in the micro-batch only, once for all. Works
// without actions too (a plan of proved facts).
template <class Visit>
constexpr void for_each_kind_of_call(const PlanData& plan, int stage, Visit&& visit, Index updates = 0) {
  Index count = 1;
  const auto counted = [&](const LedgerEntry& entry) { visit(entry, count); };
  LedgerWalk<const decltype(counted)> walk(plan, stage, counted, updates);
  if (!plan.streams()) return walk.step();
  const auto actions = [&](ActionKind kind, int chunk, Index number) {
    count = number;
    if (number > 0) walk.action({kind, chunk, 0});
  };
  for (int c : plan.stages[std::size_t(stage)].chunks) {
    const ChunkData& chunk = plan.chunks[std::size_t(c)];
    const bool from_other = c > 0 && plan.chunks[std::size_t(c - 1)].stage != stage;
    const bool to_other = c + 1 < int(plan.chunks.size()) && plan.chunks[std::size_t(c + 1)].stage != stage;
    actions(ActionKind::forward, c, plan.micros);
    actions(ActionKind::backward, c, chunk.whole_backwards);
    for (const ActionKind kind : {ActionKind::backward_input, ActionKind::backward_weight})
      actions(kind, c, plan.micros - chunk.whole_backwards);
    for (const ActionKind kind : {ActionKind::receive_forward, ActionKind::send_backward}) actions(kind, c, from_other ? plan.micros : 0);
    for (const ActionKind kind : {ActionKind::send_forward, ActionKind::receive_backward}) actions(kind, c, to_other ? plan.micros : 0);
  }
  count = 1;
  walk.end();
}

// Of all groups, or of one.
constexpr LedgerTotals totals(const PlanData& plan, int stage = 0) {
  LedgerTotals out;
  if (plan.stages.empty()) return out;
  for_each_kind_of_call(plan, stage, [&](const LedgerEntry& entry, Index count) { add_entry(out, entry, count); });
  return out;
}
// Of the step that makes an update of this number (from 1 on): policies of synchronisation may say something in some steps only.
constexpr LedgerTotals totals_at(const PlanData& plan, int stage, Index update) {
  LedgerTotals out;
  if (plan.stages.empty()) return out;
  for_each_kind_of_call(
      plan, stage, [&](const LedgerEntry& entry, Index count) { add_entry(out, entry, count); }, update);
  return out;
}
constexpr LedgerTotals totals(const PlanData& plan, int stage, GroupKind group) {
  LedgerTotals out;
  if (plan.stages.empty()) return out;
  for_each_kind_of_call(plan, stage, [&](const LedgerEntry& entry, Index count) {
    if (entry.group == group) add_entry(out, entry, count);
  });
  return out;
}

}  // namespace weft
