// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <weft/data/batches.hpp>

#include "data/temporary_folder.hpp"

using namespace weft;
using namespace weft::data;
using weft::testing::contains;
using weft::testing::message_of;

TEST_CASE("batch_rule_keeps_or_drops_the_last_batch") {
  const BatchRule keep{.epoch_items = 9, .global_items = 5};
  Position position{.seed = 3};
  CHECK(keep.next(position) == GlobalBatch{0, 0, 5});
  CHECK(position == Position{3, 0, 5});
  CHECK(keep.next(position) == GlobalBatch{0, 5, 4});
  CHECK(position == Position{3, 1, 0});
  CHECK(keep.next(position) == GlobalBatch{1, 0, 5});
  CHECK(keep.steps_per_epoch() == 2);
  const BatchRule drop{.epoch_items = 9, .global_items = 5, .last = LastBatch::drop};
  position = {};
  CHECK(drop.next(position) == GlobalBatch{0, 0, 5});
  CHECK(position == Position{1, 1, 0});
  CHECK(drop.next(position) == GlobalBatch{1, 0, 5});
  CHECK(drop.steps_per_epoch() == 1);
}

TEST_CASE("batch_rule_with_an_end_stops_there") {
  const BatchRule rule{.epoch_items = 4, .global_items = 2, .epochs = 2};
  Position position;
  for (int step = 0; step < 4; ++step) {
    CHECK_FALSE(rule.done(position));
    CHECK(rule.next(position).items == 2);
  }
  CHECK(rule.done(position));
  CHECK(rule.next(position).items == 0);
  CHECK(rule.next(position).items == 0);
  CHECK_FALSE(BatchRule{.epoch_items = 4, .global_items = 2}.done({1, 1000000, 4}));
  CHECK(BatchRule{.epoch_items = 9, .global_items = 5, .last = LastBatch::drop, .epochs = 1}.done({1, 0, 5}));
}

TEST_CASE("batch_rule_is_known_at_compile_time") {
  constexpr Index steps = [] {
    const BatchRule rule{.epoch_items = 512, .global_items = 16, .epochs = 1};
    Position position;
    Index count = 0;
    while (!rule.done(position)) rule.next(position), ++count;
    return count;
  }();
  static_assert(steps == 32, "512 / 16");
  CHECK(steps == 32);
}

TEST_CASE("shares_cover_every_batch_once_in_rank_order_and_exceed_no_rank") {
  const std::vector<std::vector<Index>> cases{{8}, {4, 4}, {2, 2, 2, 2}, {5, 0, 2, 1}, {1, 7}, {0, 0, 8}};
  for (const auto& counts : cases) {
    const Shares shares = Shares::of_ranks(counts);
    CHECK(shares.global_items() == 8);
    for (Index grain : {1, 2}) {
      if (grain > 1 && shares.grain(grain) == 1) continue;
      for (Index items = 0; items <= 8; ++items) {
        Index next = 0;
        for (Index r = 0; r < shares.ranks(); ++r) {
          const Slice slice = shares.of(r, items, grain);
          CHECK(slice.first == next);
          CHECK(slice.items >= 0);
          CHECK(slice.items <= counts[std::size_t(r)]);
          next += slice.items;
        }
        CHECK(next == items);
      }
    }
  }
  CHECK(Shares::equal(5, 2).of(0, 5) == Slice{0, 2});
  CHECK(Shares::equal(5, 2).of(1, 5) == Slice{2, 3});
  CHECK(Shares::equal(2, 4).of(0, 2).items + Shares::equal(2, 4).of(2, 2).items == 0);
}

TEST_CASE("shares_of_whole_micro_batches_cut_short_batches_at_micro_batches") {
  const Shares shares = Shares::equal(64, 4);
  CHECK(shares.grain(8) == 8);
  CHECK(Shares::equal(20, 4).grain(8) == 1);
  Index next = 0;
  for (Index r = 0; r < 4; ++r) {  // 36 items: micro-batches of 8, 8, 8, 8, 4 as on one rank
    const Slice slice = shares.of(r, 36, 8);
    CHECK(slice.first == next);
    CHECK(slice.first % 8 == 0);
    next += slice.items;
  }
  CHECK(next == 36);
}

TEST_CASE("shares_that_make_no_sense_are_errors") {
  CHECK(contains(message_of([] { Shares::of_ranks({3, -1}); }), "rank 1: -1"));
  CHECK(contains(message_of([] { Shares::of_ranks({0, 0}); }), "weft[data.shares]"));
  CHECK(contains(message_of([] { Shares::of_ranks({}); }), "weft[data.shares]"));
  CHECK(contains(message_of([] { Shares::equal(4, 0); }), "weft[data.shares]"));
  CHECK(contains(message_of([] { Shares::of_ranks({Index(1) << 31, 1}); }), "weft[data.shares]"));
}

TEST_CASE("rank_batches_of_all_ranks_make_up_the_global_batches") {
  const BatchRule rule{.epoch_items = 23, .global_items = 10};
  RankBatches alone(rule, Shares::equal(10, 1), 0, 3, {});
  std::vector<RankBatches> ranks;
  for (Index r = 0; r < 3; ++r) ranks.emplace_back(rule, Shares::of_ranks({6, 0, 4}), r, 3, Position{});
  for (int step = 0; step < 7; ++step) {
    Index next = 0;
    const Index alone_micros = alone.begin_step();
    CHECK(alone_micros == (alone.batch().items + 2) / 3);
    for (RankBatches& rank : ranks) {
      for (Index micros = rank.begin_step(); micros > 0; --micros) {
        const MicroBatchPlace micro = rank.next();
        CHECK(micro.first_item == next);
        CHECK(micro.first == alone.batch().first + next);
        CHECK(micro.epoch == alone.batch().epoch);
        CHECK((micro.items >= 1 && micro.items <= 3));
        next += micro.items;
      }
      CHECK(rank.position() == alone.position());
      CHECK(rank.batch() == alone.batch());
    }
    CHECK(next == alone.batch().items);
    while (alone.micro_batches_left() > 0) alone.next();
  }
}
