// SPDX-License-Identifier: Apache-2.0
// Takes the micro-batches of a step through a rank's chunks: one after the other, as the stage's schedule says, or segment by segment.
#pragma once

#include <cstring>
#include <vector>

#include "weft/run/control.hpp"
#include "weft/run/gradient_exchange.hpp"
#include "weft/run/rank_state.hpp"

namespace weft {

// A micro-batch to be filled: input (rows, features) and targets, tokens as int32, the rest as Real. The filler sets `leading` (up to the
// plan's capacity) and the item's place in the global batch.
template <class Real>
struct MicroBatchInput {
  Index number = 0;  // which of this rank's micro-batches in this step
  std::byte *input = nullptr, *targets = nullptr;
  Leading leading{};
  Index first_item = 0;

  std::int32_t* tokens() const { return reinterpret_cast<std::int32_t*>(input); }
  Real* values() const { return reinterpret_cast<Real*>(input); }
  std::int32_t* integer_targets() const { return reinterpret_cast<std::int32_t*>(targets); }
  Real* real_targets() const { return reinterpret_cast<Real*>(targets); }
};

template <class State>
class MicroBatchRun {
 public:
  using Real = typename State::Real;
  using Comm = typename State::Comm;

  MicroBatchRun(State& state, GradientExchange<State>& exchange)
      : state_(state), plan_(state.plan), walker_(state.walker), exchange_(exchange) {
    left_.assign(plan_.chunks.size(), 0);
  }

  // The sum of the losses of this rank's micro-batches in the step, without rounding; of the reproducible mode.
  ExactSum& exact_loss() { return loss_; }
  // Rows of a micro-batch of the last step.
  Index rows(int micro) const { return micros_[std::size_t(micro)].leading.rows(); }

  // Forward and backward of a step. The first step allocates the list of micro-batches.
  template <class Fill>
  void run(Index num_micros, Fill& fill) {
    num_micros_ = num_micros, loss_ = {};
    micros_.clear();
    micros_.reserve(std::size_t(std::max(plan_.micros, num_micros)));
    const Index rounds = state_.lockstep() ? plan_.micros : num_micros;
    std::fill(left_.begin(), left_.end(), rounds);
    if (!plan_.joins.empty()) return run_segments(fill);
    if (!stage().actions.empty()) return run_schedule(fill);
    for (int m = 0; m < int(rounds); ++m) {
      run_forward({ActionKind::forward, 0, m}, fill);
      run_backward({ActionKind::backward, 0, m}, fill);
    }
  }

  // Forward only, through all chunks in order, of one micro-batch that is no part of a step.
  template <class Fill>
  MicroBatch run_prediction(Fill& fill) {
    micros_.clear();
    take_input(fill, false);
    MicroBatch micro = micros_[0];
    for (int c = 0; c < int(plan_.chunks.size()); ++c) {
      if (!state_.is_here(c)) continue;
      micro.chunk = c;
      if (c > 0 && !state_.is_here(c - 1)) pass_message(false, state_.chunk(c - 1).stage, micro, c, walker_.chunk_input(micro));
      walker_.forward({-1, int(plan_.joins.size())}, micro, [&](Index u) { state_.store.gather(u); });
      if (state_.is_last_chunk(c)) break;
      MicroBatch next = micro;
      next.chunk = c + 1;
      if (state_.is_here(c + 1))
        copy_rows(micro, c + 1, walker_.chunk_output(micro), walker_.chunk_input(next));
      else
        pass_message(true, state_.chunk(c + 1).stage, micro, c + 1, const_cast<Real*>(walker_.chunk_output(micro)));
    }
    micro.chunk = int(plan_.chunks.size()) - 1;
    return micro;
  }

  // Of the whole tensor group; every rank of it gets the same. gradient: null outside of training.
  kernel::LossSum run_loss(const MicroBatch& micro, Real* gradient) {
    LossCall<Real> call{micro.leading.rows(), walker_.prediction(micro), walker_.targets(micro.input_slot), 1 / plan_.nominal, gradient};
    if (plan_.divides_classes())
      call.group = {int(state_.place.tensor), state_.arenas.loss.template as<double>(), &state_.groups[GroupKind::tensor],
                    [](void* group, double* data, Index count, Reduction reduction) {
                      static_cast<Comm*>(group)->all_reduce(data, count, reduction);
                    }};
    state_.code.loss(call);
    return {call.loss, call.count};
  }

 private:
  const StageData& stage() const { return state_.stage(); }

  template <class Fill>
  void take_input(Fill& fill, bool training) {
    MicroBatchInput<Real> micro;
    const Index m = Index(micros_.size());
    const Index slot = training ? m % stage().input_depth : 0;
    if (training && m >= num_micros_) {
      micros_.push_back({.leading = {0, plan_.batch.sequence, 0}, .input_slot = slot, .number = m, .training = true});
      return;
    }
    micro.number = m, micro.input = walker_.input(slot), micro.targets = walker_.targets(slot);
    micro.leading = {plan_.batch.micro, plan_.batch.sequence, 0};
    fill(micro);
    const Leading leading = micro.leading;
    if (leading.batch < 0 || leading.sequence < 1 || leading.rows() > plan_.rows || leading.sequence > plan_.batch.sequence ||
        leading.past != 0)
      throw Error("engine.capacity", text_of("a micro-batch is larger than the plan's; fill fewer or plan more (given ", leading.batch,
                                             " x ", leading.sequence, ", capacity ", plan_.batch.micro, " x ", plan_.batch.sequence, ")"));
    micros_.push_back({.leading = leading, .first_item = micro.first_item, .input_slot = slot, .number = m, .training = training});
    walker_.wrote_input(micros_.back());
  }
  // Micro-batch m on its way through a chunk; reads up to it where that has not been done.
  template <class Fill>
  MicroBatch micro_batch(const Action& action, Fill& fill) {
    while (Index(micros_.size()) <= action.micro) take_input(fill, true);
    return micro_batch(action.chunk, action.micro);
  }
  MicroBatch micro_batch(int chunk, Index m) const {
    const ChunkData& data = state_.chunk(chunk);
    MicroBatch micro = micros_[std::size_t(m)];
    micro.chunk = chunk;
    micro.slot = m % data.depth;
    micro.message_slot = m % data.input_depth;
    micro.gradient_slot = m % data.gradient_depth;
    micro.weight_slot = m % data.weight_depth;
    return micro;
  }

  void add_loss(const MicroBatch& micro) {
    walker_.loss_reads(micro);
    const kernel::LossSum sum = run_loss(micro, walker_.prediction_gradient(micro));
    walker_.wrote_chunk_gradient(micro);
    if (state_.place.tensor != 0) return;
    ControlBlock control(state_.arenas.control.template as<double>());
    if (plan_.strategy.reproducible) loss_.add(sum.loss);
    control[ControlField::loss] += sum.loss, control[ControlField::count] += double(sum.count);
  }

  // ── without a join: one chunk after the other ──
  template <class Fill>
  void run_forward(const Action& action, Fill& fill) {
    const MicroBatch micro = micro_batch(action, fill);
    walker_.forward(whole_, micro, [&](Index u) { state_.store.gather(u); });
    if (state_.is_last_chunk(action.chunk)) {
      add_loss(micro);
    } else if (state_.is_here(action.chunk + 1)) {  // handed over, without a message
      const MicroBatch next = micro_batch(action.chunk + 1, action.micro);
      walker_.reads_chunk_output(micro);
      copy_rows(micro, action.chunk + 1, walker_.chunk_output(micro), walker_.chunk_input(next));
      walker_.wrote_chunk_input(next);
    }
  }

  // All of backward, or one of its parts.
  template <class Fill>
  void run_backward(const Action& action, Fill& fill) {
    const MicroBatch micro = micro_batch(action, fill);
    const ChunkData& chunk = state_.chunk(action.chunk);
    const bool last = action.kind != ActionKind::backward_input && --left_[std::size_t(action.chunk)] == 0;
    const auto before = [&](Index u) {
      if (action.kind != ActionKind::backward_weight && u > chunk.first_unit) state_.store.gather(u - 1);
      state_.store.open_gradients(u);
    };
    const auto after = [&](Index u, int i) {
      if (i == 0 && plan_.strategy.shards_gradients()) exchange_.unit_done(u);
      exchange_.op_done(u, i, action.kind, action.micro);
      if (last) exchange_.start_buckets(action.chunk, walker_.watermark(u, i));
      exchange_.progress();
    };
    if (action.kind != ActionKind::backward_weight) state_.store.gather(chunk.end_unit - 1);
    if (action.kind == ActionKind::backward_weight) return walker_.backward_weight(micro, before, after);
    if (action.kind == ActionKind::backward_input)
      walker_.backward_input(micro, before, after);
    else
      walker_.backward(whole_, micro, before, after);
    if (action.chunk > 0 && state_.is_here(action.chunk - 1)) {
      const MicroBatch before_it = micro_batch(action.chunk - 1, action.micro);
      walker_.reads_chunk_input_gradient(micro);
      copy_rows(micro, action.chunk, walker_.chunk_input_gradient(micro), walker_.chunk_gradient(before_it));
      walker_.wrote_chunk_gradient(before_it);
    }
  }

  // What goes from chunk - 1 to chunk, and back as a gradient.
  Index boundary_elems(const MicroBatch& micro, int chunk) const {
    return chunk_input_rows(plan_, chunk, micro.leading.rows()) * chunk_input(plan_, chunk).elems();
  }
  void copy_rows(const MicroBatch& micro, int chunk, const Real* from, Real* to) const {
    std::memcpy(to, from, std::size_t(boundary_elems(micro, chunk)) * sizeof(Real));
  }

  // Messages that stand side by side in the schedule go out as one exchange.
  template <class Fill>
  void run_schedule(Fill& fill) {
    if constexpr (requires(Comm & comm) { comm.exchange({}, {}); }) {
      const ActionRow& actions = stage().actions;
      for (std::size_t i = 0; i < actions.size();) {
        FixedVector<Outgoing, max_exchange_messages> sends;
        FixedVector<Incoming, max_exchange_messages> receives;
        for (; i < actions.size() && is_message(actions[i].kind); ++i) add_message(actions[i], sends, receives, fill);
        if (sends.size() + receives.size() > 0)
          state_.groups[GroupKind::pipe].exchange({sends.begin(), sends.end()}, {receives.begin(), receives.end()});
        if (i == actions.size()) break;
        const Action& action = actions[i++];
        if (action.kind == ActionKind::forward)
          run_forward(action, fill);
        else
          run_backward(action, fill);
      }
    } else {
      throw Error("engine.messages", "a pipeline needs a communicator that sends and receives; see CanSendReceive of comm/concept.hpp");
    }
  }
  template <class Sends, class Receives, class Fill>
  void add_message(const Action& action, Sends& sends, Receives& receives, Fill& fill) {
    const MicroBatch micro = micro_batch(action, fill);
    const bool gradient = action.kind == ActionKind::send_backward || action.kind == ActionKind::receive_backward;
    const bool is_behind = action.kind == ActionKind::send_forward || action.kind == ActionKind::receive_backward;  // concerns chunk + 1
    const int tensor_of = action.chunk + is_behind;
    const int peer = state_.chunk(is_behind ? action.chunk + 1 : action.chunk - 1).stage;
    const Index count = boundary_elems(micro, tensor_of), tag = message_tag(plan_, tensor_of, action.micro, gradient);
    switch (action.kind) {
      case ActionKind::send_forward:
        walker_.reads_chunk_output(micro);
        return sends.push(outgoing(walker_.chunk_output(micro), count, peer, tag));
      case ActionKind::send_backward:
        walker_.reads_chunk_input_gradient(micro);
        return sends.push(outgoing(walker_.chunk_input_gradient(micro), count, peer, tag));
      case ActionKind::receive_forward:
        walker_.wrote_chunk_input(micro);
        return receives.push(incoming(walker_.chunk_input(micro), count, peer, tag));
      default: walker_.wrote_chunk_gradient(micro); return receives.push(incoming(walker_.chunk_gradient(micro), count, peer, tag));
    }
  }
  void pass_message(bool sends, int peer, const MicroBatch& micro, int chunk, Real* data) {
    if constexpr (requires(Comm & comm) { comm.exchange({}, {}); }) {
      if (sends)
        state_.groups[GroupKind::pipe].send(static_cast<const Real*>(data), boundary_elems(micro, chunk), peer);
      else
        state_.groups[GroupKind::pipe].receive(data, boundary_elems(micro, chunk), peer);
    }
  }

  // ── with joins: all micro-batches through a segment, then the next ──
  template <class Fill>
  void run_segments(Fill& fill) {
    const int last = int(plan_.joins.size());
    const auto nothing = [](Index) {};
    const Index micros = state_.lockstep() ? plan_.micros : num_micros_;
    for (int s = 0; s <= last; ++s) {
      const Segment segment{s - 1, s};
      for (Index m = 0; m < micros; ++m) {
        const MicroBatch micro = micro_batch(Action{ActionKind::forward, 0, int(m)}, fill);
        walker_.forward(segment, micro, nothing);
        if (s == last) {
          add_loss(micro);
          run_segment_backward(segment, micro, m + 1 == micros);
        } else {
          walker_.join_sums(std::size_t(s), false)[join_elems(s)] += double(micro.leading.rows());
        }
      }
      if (s == last)
        finish_segment(segment);
      else
        meet(s, false);
    }
    for (int s = last - 1; s >= 0; --s) {
      meet(s, true);
      const Segment segment{s - 1, s};
      for (Index m = 0; m < micros; ++m) run_segment_backward(segment, micro_batch(0, m), m + 1 == micros);
      finish_segment(segment);
    }
  }
  void run_segment_backward(Segment segment, const MicroBatch& micro, bool last) {
    if (segment.first >= 0) walker_.join_sums(std::size_t(segment.first), true)[join_elems(segment.first)] += double(micro.leading.rows());
    walker_.backward(
        segment, micro, [](Index) {},
        [&](Index u, int i) {
          if (last) exchange_.start_buckets(0, walker_.watermark(u, i));
          exchange_.progress();
        });
  }
  // Also for a rank that had nothing to do: it takes part in everything, with zeros.
  void finish_segment(Segment segment) {
    if (segment.first < 0) return;
    const JoinSite& site = plan_.joins[std::size_t(segment.first)];
    exchange_.start_buckets(0, walker_.watermark(site.unit, site.op + 1));
  }
  Index join_elems(int join) const { return plan_.graph.leaves[std::size_t(plan_.joins[std::size_t(join)].leaf)].facts.join_elems; }
  // All micro-batches of all ranks have given their sums to a join.
  void meet(int join, bool backward) {
    double* sums = walker_.join_sums(std::size_t(join), backward);
    if (state_.groups.has(GroupKind::data)) state_.groups[GroupKind::data].all_reduce(sums, join_elems(join) + 1, Reduction::sum, join);
    if (!backward) walker_.joined(std::size_t(join), sums[join_elems(join)]);
  }

  State& state_;
  const PlanData& plan_;
  typename State::WalkerType& walker_;
  GradientExchange<State>& exchange_;
  std::vector<MicroBatch> micros_;
  std::vector<Index> left_;  // by chunk: backwards that are still to come in this step
  Index num_micros_ = 0;
  ExactSum loss_{};
  static constexpr Segment whole_{-1, 0};
};

}  // namespace weft
