// SPDX-License-Identifier: Apache-2.0
// How an epoch falls into global batches, a global batch into ranks' parts, and a part into micro-batches. Arithmetic only: every rank
// computes all of it, so the global batches are the same whatever the number of ranks.
//
//   places of an epoch   0 1 2 3 4 | 5 6 7 8          9 items, global batch 5, kept
//   rank 0 of 2          0 1       | 5 6
//   rank 1 of 2              2 3 4 |     7 8
#pragma once

#include <utility>
#include <vector>

#include "weft/base/config.hpp"
#include "weft/base/error.hpp"
#include "weft/base/text.hpp"

namespace weft::data {

// Where a run is in its data; the same on all ranks. What a checkpoint keeps.
struct Position {
  std::uint64_t seed = 1;
  Index epoch = 0;
  Index consumed = 0;  // items of that epoch

  bool operator==(const Position&) const = default;
};

enum class LastBatch : char {
  keep,  // what is left at the end of an epoch is a shorter batch
  drop,  // it is left out
};

// The places first … first + items − 1 of an epoch's order; no items: the data is at its end.
struct GlobalBatch {
  Index epoch = 0, first = 0, items = 0;

  bool operator==(const GlobalBatch&) const = default;
};

struct BatchRule {
  Index epoch_items = 0;   // how many an epoch has
  Index global_items = 0;  // how many a global batch has
  LastBatch last = LastBatch::keep;
  Index epochs = 0;  // 0: without end

  constexpr Index steps_per_epoch() const {
    return last == LastBatch::keep ? (epoch_items + global_items - 1) / global_items : epoch_items / global_items;
  }

  // Whether another batch comes after this position.
  constexpr bool done(const Position& position) const { return epochs > 0 && start_of_next(position).epoch >= epochs; }

  // The next batch; `position` moves behind it. The epoch advances by itself.
  constexpr GlobalBatch next(Position& position) const {
    if (done(position)) return {epochs, 0, 0};
    position = start_of_next(position);
    const Index left = epoch_items - position.consumed;
    const GlobalBatch batch{position.epoch, position.consumed, left < global_items ? left : global_items};
    position.consumed += batch.items;
    position = start_of_next(position);
    return batch;
  }

 private:
  constexpr Position start_of_next(const Position& position) const {
    const Index left = epoch_items - position.consumed;
    const bool over = left <= 0 || (last == LastBatch::drop && left < global_items);
    return over ? Position{position.seed, position.epoch + 1, 0} : position;
  }
};

struct Slice {
  Index first = 0, items = 0;
  bool operator==(const Slice&) const = default;
};

// Of a global batch, and of ranks: their product fits an Index.
inline constexpr Index most_share_items = Index(1) << 31;

// Which part of a global batch each rank works on: contiguous, in rank order.
class Shares {
 public:
  // Equal parts; where the batch does not divide, they differ by one item.
  // Errors: weft[data.shares].
  static Shares equal(Index global_items, Index ranks) {
    if (ranks < 1 || ranks > most_share_items || global_items < 1 || global_items > most_share_items)
      throw Error("data.shares",
                  text_of("a global batch has 1 to 2^31 items, on as many ranks (items ", global_items, ", ranks ", ranks, ")"));
    Shares shares;
    for (Index r = 0; r <= ranks; ++r) shares.starts_.push_back(r * global_items / ranks);
    return shares;
  }
  // Rank r works on items[r] of a full batch; 0 for a rank that has none. Errors: weft[data.shares].
  static Shares of_ranks(const std::vector<Index>& items) {
    Shares shares;
    shares.starts_.push_back(0);
    for (std::size_t r = 0; r < items.size(); ++r) {
      if (items[r] < 0 || items[r] > most_share_items)
        throw Error("data.shares", text_of("a rank's share is not negative, and at most 2^31 items (rank ", r, ": ", items[r], ")"));
      shares.starts_.push_back(shares.starts_.back() + items[r]);
    }
    if (shares.starts_.back() < 1 || shares.starts_.back() > most_share_items)
      throw Error("data.shares", text_of("the shares of all ranks add up to 1 to 2^31 items (given ", shares.starts_.back(), ")"));
    return shares;
  }

  Index ranks() const { return Index(starts_.size()) - 1; }
  Index global_items() const { return starts_.back(); }

  // The most items by which all parts begin: `micro_items` if each share is a number of whole micro-batches, else 1.
  Index grain(Index micro_items) const {
    for (Index start : starts_)
      if (start % micro_items != 0) return 1;
    return micro_items;
  }

  // The part of a batch of `items`; a short batch is shared out in the same proportions, in whole grains, so that its micro-batches are the
  // same for every number of ranks. No part exceeds the rank's share.
  Slice of(Index rank, Index items, Index grain = 1) const {
    const Index grains = (items + grain - 1) / grain, all = global_items() / grain;
    const auto start = [&](Index r) {
      const Index at = starts_[std::size_t(r)] / grain * grains / all * grain;
      return at < items ? at : items;
    };
    return {start(rank), start(rank + 1) - start(rank)};
  }

 private:
  std::vector<Index> starts_;  // rank r's first item, and the end
};

// One micro-batch of one rank: places first … first + items − 1 of an epoch's order.
struct MicroBatchPlace {
  std::uint64_t seed = 0;
  Index epoch = 0, first = 0, items = 0;
  Index first_item = 0;  // its first item's place in the global batch

  bool operator==(const MicroBatchPlace&) const = default;
};

// One rank's walk through its micro-batches, step by step. A value: a copy walks on from the same place.
class RankBatches {
 public:
  RankBatches(BatchRule rule, Shares shares, Index rank, Index micro_items, Position start)
      : rule_(rule),
        shares_(std::move(shares)),
        rank_(rank),
        micro_items_(micro_items),
        grain_(shares_.grain(micro_items)),
        position_(start) {}

  // Goes to the next global batch and returns how many micro-batches of it are this rank's.
  Index begin_step() {
    const std::uint64_t seed = position_.seed;
    batch_ = rule_.next(position_);
    const Slice slice = shares_.of(rank_, batch_.items, grain_);
    rest_ = {seed, batch_.epoch, batch_.first + slice.first, slice.items, slice.first};
    return micro_batches_left();
  }

  // Requires micro_batches_left() > 0.
  MicroBatchPlace next() {
    MicroBatchPlace micro = rest_;
    if (micro.items > micro_items_) micro.items = micro_items_;
    rest_.first += micro.items, rest_.first_item += micro.items, rest_.items -= micro.items;
    return micro;
  }

  Index micro_batches_left() const { return (rest_.items + micro_items_ - 1) / micro_items_; }
  bool done() const { return rule_.done(position_); }
  const Position& position() const { return position_; }
  const GlobalBatch& batch() const { return batch_; }
  const BatchRule& rule() const { return rule_; }
  const Shares& shares() const { return shares_; }

  // From the next step on.
  void resume(const Position& position) { position_ = position, rest_ = {}, batch_ = {}; }
  void set_shares(Shares shares) { shares_ = std::move(shares), grain_ = shares_.grain(micro_items_); }

 private:
  BatchRule rule_;
  Shares shares_;
  Index rank_, micro_items_, grain_;
  Position position_;
  GlobalBatch batch_;
  MicroBatchPlace rest_;
};

}  // namespace weft::data
