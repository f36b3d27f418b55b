// SPDX-License-Identifier: Apache-2.0
// How long a stage is busy with a chunk of a plan: its units one after the other, whose sharded parameters arrive one unit ahead.
#pragma once

#include "weft/report/frame_time.hpp"
#include "weft/schedule/timeline.hpp"

namespace weft {

// One micro-batch through a chunk, with the communication that the stage waits for.
struct ChunkSeconds {
  double forward = 0, backward_input = 0, backward_weight = 0;
  double message = 0;                                         // from and to the chunk before
  double compute = 0, tensor_exposed = 0, shard_exposed = 0;  // what the three are made of
  std::vector<double> backward_of_unit{};

  constexpr double busy() const { return forward + backward_input + backward_weight; }
};

// Units pass one after the other. Beside them runs one queue of what is sharded: while a unit is computed, the parameters of the next come
// in, then its gradients go out.
class ShardQueue {
 public:
  // taken: of the device by what runs beside kernels.
  constexpr ShardQueue(Index buffers, double taken, double first_gather)
      : buffers_(std::size_t(buffers)), taken_(taken), gathered_(first_gather), queue_(first_gather) {}

  constexpr void pass(double compute, double scatter, double next_gather) {
    wait(gathered_);
    if (scatters_.size() >= buffers_) wait(scatters_[scatters_.size() - buffers_]);  // there is memory for its gradients
    if (next_gather > 0) gathered_ = enqueue(next_gather);
    const double beside = queue_ > clock_ ? queue_ - clock_ : 0, slow = compute / (1 - taken_);
    const double lost = slow < beside ? slow - compute : beside * taken_;
    exposed_ += lost, clock_ += compute + lost;
    if (scatter > 0) scatters_.push_back(enqueue(scatter));
  }
  // Seconds until all is done.
  constexpr double finish() {
    wait(queue_);
    return clock_;
  }
  constexpr double exposed() const { return exposed_; }

 private:
  constexpr void wait(double until) {
    if (until > clock_) exposed_ += until - clock_, clock_ = until;
  }
  constexpr double enqueue(double seconds) { return queue_ = (queue_ > clock_ ? queue_ : clock_) + seconds; }

  std::size_t buffers_;
  double taken_, gathered_, queue_, clock_ = 0, exposed_ = 0;
  std::vector<double> scatters_{};  // when they end
};

constexpr std::vector<FrameSeconds> frame_seconds(const PlanData& plan, const Cluster& cluster, const Convention& convention,
                                                  const Route& tensor) {
  std::vector<FrameSeconds> out;
  for (int f = 0; f < int(plan.graph.frames.size()); ++f) out.push_back(FrameClock(plan, f, cluster, convention, tensor).seconds());
  return out;
}

// A message from the chunk before c: each tensor rank sends what it has of the tensor, or a slice that the receivers gather.
constexpr double message_seconds(const PlanData& plan, int c, const Convention& convention, const GroupRoutes& routes) {
  const int from = plan.chunks[std::size_t(c - 1)].stage, to = plan.chunks[std::size_t(c)].stage;
  if (from == to) return 0;
  const Index own = chunk_input_rows(plan, c, plan.rows);
  const double bytes = double(own) * double(chunk_input(plan, c).elems()) * convention.activation_bytes;
  const Route& tensor = routes[GroupKind::tensor];
  if (!convention.divides_messages || own != plan.rows || tensor.ranks == 1)
    return collective_seconds(Operation::send, bytes, routes.hop(from, to));
  return collective_seconds(Operation::send, bytes / double(tensor.ranks), routes.hop(from, to)) +
         collective_seconds(Operation::all_gather, bytes, tensor);
}

constexpr ChunkSeconds one_chunk_seconds(const PlanData& plan, int c, const std::vector<FrameSeconds>& frames, const Cluster& cluster,
                                         const Convention& convention, const GroupRoutes& routes) {
  const ChunkData& chunk = plan.chunks[std::size_t(c)];
  const StrategyData& strategy = plan.strategy;
  bool splits = false;
  for (const Action& action : plan.stages[std::size_t(chunk.stage)].actions) splits |= action.kind == ActionKind::backward_weight;
  const auto unit = [&](Index u) -> const FrameSeconds& { return frames[std::size_t(plan.units[std::size_t(u)].frame)]; };
  const auto shard = [&](bool sharded, Operation operation, Index u, double bytes) {
    if (!sharded || plan.is_shared(u)) return 0.0;
    return collective_seconds(operation, bytes * double(plan.units[std::size_t(u)].parameter_elems), routes[GroupKind::shard]);
  };
  const auto gather = [&](Index u) { return shard(strategy.shards_parameters(), Operation::all_gather, u, convention.weight_bytes); };
  const auto scatter = [&](Index u) { return shard(strategy.shards_gradients(), Operation::reduce_scatter, u, convention.gradient_bytes); };
  const double loss = c + 1 == int(plan.chunks.size()) ? loss_seconds(plan, cluster, routes[GroupKind::tensor]) : 0;
  ChunkSeconds out;
  const Index first = chunk.first_unit, last = chunk.end_unit - 1;
  const auto queue = [&](double first_gather) {
    return ShardQueue(convention.scatter_buffers, cluster.kernels.collective_fraction, first_gather);
  };
  ShardQueue forward = queue(gather(first)), input = queue(gather(last)), weight = queue(0);
  for (Index u = first; u <= last; ++u) {
    const FrameSeconds& own = unit(u);
    forward.pass(own.forward + own.forward_exposed, 0, u < last ? gather(u + 1) : 0);
    out.backward_of_unit.push_back(own.backward_weight + (splits ? 0 : own.backward_input + own.backward_exposed));
    out.compute += own.forward + own.backward_input + own.backward_weight;
    out.tensor_exposed += own.forward_exposed + own.backward_exposed;
  }
  for (Index u = last; u >= first; --u) {
    const FrameSeconds& own = unit(u);
    input.pass(own.backward_input + own.backward_exposed + (splits ? 0 : own.backward_weight), splits ? 0 : scatter(u),
               u > first ? gather(u - 1) : 0);
    if (splits) weight.pass(own.backward_weight, scatter(u), 0);
  }
  out.forward = forward.finish() + loss, out.backward_input = input.finish(), out.backward_weight = weight.finish();
  out.compute += loss;
  out.shard_exposed = forward.exposed() + input.exposed() + weight.exposed();
  if (c > 0) out.message = message_seconds(plan, c, convention, routes);
  return out;
}

constexpr std::vector<ChunkSeconds> chunk_seconds(const PlanData& plan, const Cluster& cluster, const Convention& convention,
                                                  const GroupRoutes& routes) {
  const std::vector<FrameSeconds> frames = frame_seconds(plan, cluster, convention, routes[GroupKind::tensor]);
  std::vector<ChunkSeconds> out;
  for (int c = 0; c < int(plan.chunks.size()); ++c) out.push_back(one_chunk_seconds(plan, c, frames, cluster, convention, routes));
  return out;
}

}  // namespace weft
