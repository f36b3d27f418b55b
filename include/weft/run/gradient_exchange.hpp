// SPDX-License-Identifier: Apache-2.0
// How gradients become those of the global batch: sums over the ranks that have summands of them, started while backward goes on.
#pragma once

#include <cstring>
#include <vector>

#include "weft/base/exact_sum.hpp"
#include "weft/run/gradient_fold.hpp"

namespace weft {

template <class State>
class GradientExchange {
 public:
  using Real = typename State::Real;

  explicit GradientExchange(State& state) : state_(state), plan_(state.plan), fold_(state) {
    requests_.reserve(state.stage().buckets.size());
    find_counted();
  }

  void begin_step() {
    std::memset(state_.arenas.gradients.data(), 0, std::size_t(state_.arenas.gradients.bytes()));
    state_.store.clear_resident_gradients();
    if (plan_.strategy.reproducible) fold_.begin_step();
    requests_.clear();
    next_bucket_ = 0;
  }

  // Starts the buckets of a chunk whose gradients are complete from an element of the arena on.
  void start_buckets(int chunk, Index complete_from) {
    if (!overlaps()) return;
    const std::vector<Bucket>& buckets = state_.stage().buckets;
    while (next_bucket_ < buckets.size() && buckets[next_bucket_].chunk == chunk && buckets[next_bucket_].first >= complete_from)
      start_bucket();
  }
  // Between two operations: does a part of what was started.
  void progress() {
    if (next_bucket_ > 0) state_.groups[GroupKind::data].progress();
  }
  // Backward of an op has given its parameters a micro-batch's part.
  void op_done(Index u, int i, ActionKind kind, int micro) {
    if (plan_.strategy.reproducible) fold_.op_done(u, i, kind, micro);
  }
  // Where gradients are sharded: those that a micro-batch gave to a unit are complete.
  void unit_done(Index u) {
    if (!plan_.is_shared(u)) sum_over_tensor(u);
    state_.store.scatter(u, add_);
  }

  // Once a step: the rest. Afterwards every rank has the sums of what it updates.
  void finish() {
    if (plan_.strategy.reproducible) {
      fold_.finish();
    } else if (plan_.strategy.sharding() == Shard::none) {
      while (sums_over_data() && next_bucket_ < state_.stage().buckets.size()) start_bucket();
      for (auto& request : requests_) state_.groups[GroupKind::data].wait(request);
      requests_.clear();
      sum_rest_over_tensor();
    } else {
      sum_rest_over_tensor();
      state_.store.scatter_rest([](Index count, const Real* from, Real* to) { std::memcpy(to, from, std::size_t(count) * sizeof(Real)); });
    }
    for (std::size_t t = 0; t < plan_.ties.size(); ++t) {
      if (plan_.ties[t].stages.size() == 1 || !plan_.ties[t].contains(state_.stage_number())) continue;
      for (const Block& block : state_.store.blocks()) {
        const bool guest = block.guest >= 0 && state_.stage().guests[std::size_t(block.guest)].parameter == plan_.ties[t].parameter;
        if (guest || (block.guest < 0 && block.unit == plan_.ties[t].unit))
          state_.groups.tie(t).all_reduce(state_.store.own_gradients(block), state_.store.own_elems(block), Reduction::sum, Index(t));
      }
    }
  }

  // Of this rank's part of the gradient, so that the parts of all ranks are the whole once.
  double square_sum() const {
    const auto& store = state_.store;
    const Index shards = store.shards();
    if (shards > 1 && state_.place.data / shards != 0) return 0;  // a replica of what others count
    double sum = 0;
    for_each_counted([&](Index count, const Real* data) { sum += State::Kernels::square_sum(count, data); });
    return sum;
  }
  // The same without rounding.
  ExactSum exact_square_sum() const {
    ExactSum sum;
    if (state_.store.shards() > 1 && state_.place.data / state_.store.shards() != 0) return sum;
    for_each_counted([&](Index count, const Real* data) {
      for (Index i = 0; i < count; ++i) sum.add(double(data[i]) * double(data[i]));
    });
    return sum;
  }

 private:
  struct Range {
    Index first = 0, elems = 0;
  };

  // add(count, gradients) for this rank's part of the gradient.
  template <class Add>
  void for_each_counted(Add&& add) const {
    const auto& store = state_.store;
    const Index shards = store.shards();
    // Without shards, every data rank has the whole gradient and counts its part of it; a replica that updates alone counts all of its own.
    const Index owned = state_.stage().guests.empty() ? state_.stage().parameter_elems : state_.stage().guests[0].first_elem;
    const bool alone = plan_.strategy.updates_alone();
    const Index part = alone ? owned : round_up(divide_up(owned, plan_.strategy.data()), parameter_alignment_elems);
    const Index own = alone ? 0 : part * state_.place.data;
    for (const Range& range : counted_) {
      if (shards == 1) {
        const Index from = std::max(range.first, own), to = std::min(range.first + range.elems, std::min(own + part, owned));
        if (from < to) add(to - from, state_.gradients() + from);
        continue;
      }
      for (const Block& block : store.blocks()) {
        const Index first = block.first + store.own_first(block);
        const Index from = std::max(range.first, first), to = std::min(range.first + range.elems, first + store.own_elems(block));
        if (from < to && block.guest < 0) add(to - from, store.own_gradients(block) + (from - first));
      }
    }
  }

  bool sums_over_data() const { return state_.groups.has(GroupKind::data) && !plan_.strategy.updates_alone(); }
  bool overlaps() const {
    return plan_.strategy.overlap && !plan_.strategy.reproducible && plan_.strategy.sharding() == Shard::none && sums_over_data();
  }

  void start_bucket() {
    const Bucket& bucket = state_.stage().buckets[next_bucket_];
    requests_.push_back(state_.groups[GroupKind::data].start_all_reduce(state_.gradients() + bucket.first, bucket.elems, Reduction::sum,
                                                                        Index(next_bucket_)));
    ++next_bucket_;
  }
  // Gradients that are summands within the tensor group, or of neighbours in it: of a unit; of all that are not divided a micro-batch at a
  // time.
  void sum_over_tensor(Index u) {
    for (const Stretch& stretch : plan_.summed)
      if (stretch.frame == plan_.units[std::size_t(u)].frame)
        state_.groups.summing(stretch).all_reduce(state_.walker.unit_gradients(u) + stretch.first, stretch.elems, Reduction::sum, u + 1);
  }
  void sum_rest_over_tensor() {
    if (plan_.summed.empty()) return;
    for (int c : state_.stage().chunks)
      for (Index u = state_.chunk(c).first_unit; u < state_.chunk(c).end_unit; ++u)
        if (!plan_.strategy.shards_gradients() || plan_.is_shared(u)) sum_over_tensor(u);
  }

  // What this rank's part of the norm is made of, by place in the stage's arena as if it were whole: guests are counted by their owners;
  // of a tensor group, the first rank counts what all have.
  void find_counted() {
    state_.store.for_each_parameter([&](const Block& block, const ParameterSite& site, Index first) {
      if (block.guest >= 0 || (site.split.dimension < 0 && state_.place.tensor != 0)) return;
      if (site.split.slicing.has_copies(plan_.graph.tensor_ranks)) {  // of these, the first of the ranks that have them
        for_each_owned_stretch(site, plan_.graph.tensor_ranks, state_.place.tensor, [&](Index own, Index, Index count) {
          counted_.push_back({first + own, count});
        });
        return;
      }
      const Range range{first, round_up(site.facts.elems(), parameter_alignment_elems)};
      if (!counted_.empty() && counted_.back().first + counted_.back().elems == range.first)
        counted_.back().elems += range.elems;
      else
        counted_.push_back(range);
    });
  }

  State& state_;
  const PlanData& plan_;
  GradientFold<State> fold_;
  std::vector<Range> counted_;
  std::vector<decltype(std::declval<typename State::Comm&>().start_all_reduce(static_cast<Real*>(nullptr), Index(0), Reduction::sum,
                                                                              Index(0)))>
      requests_;
  std::size_t next_bucket_ = 0;
  static constexpr auto add_ = [](Index count, const Real* from, Real* to) {
    State::Kernels::add(count, from, static_cast<const Real*>(to), to);
  };
};

}  // namespace weft
