// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <atomic>

#include <weft/data/prefetch.hpp>

#include "data/numbers_source.hpp"
#include "data/temporary_folder.hpp"

using namespace weft;
using namespace weft::data;
using weft::testing::contains;
using weft::testing::message_of;
using weft::testing::Numbers;

namespace {
RankBatches endless(Index items) { return {{.epoch_items = items, .global_items = 4}, Shares::equal(4, 1), 0, 2, {}}; }

// Counts what has been read.
struct Counted : Numbers {
  std::shared_ptr<std::atomic<int>> reads = std::make_shared<std::atomic<int>>(0);
  void read(std::uint64_t seed, Index epoch, std::span<const Index> items, std::int32_t* inputs, std::int32_t* targets) const {
    Numbers::read(seed, epoch, items, inputs, targets);
    ++*reads;
  }
};
}  // namespace

TEST_CASE("prefetcher_gives_the_micro_batches_of_the_walk_in_order") {
  const Numbers numbers{.count = 7};
  for (Index depth : {1, 2, 5}) {
    Prefetcher<Numbers> ahead(numbers, Order::shuffled, endless(7), 2, depth);
    RankBatches walk = endless(7);
    for (int step = 0; step < 30; ++step)
      for (Index micros = walk.begin_step(); micros > 0; --micros) {
        const MicroBatchPlace place = walk.next();
        Index items[2];
        items_in_order(Order::shuffled, place.seed, place.epoch, 7, place.first, std::span(items).first(std::size_t(place.items)));
        ahead.take(place, [&](const MicroBatchData<std::int32_t>& data) {
          for (std::size_t i = 0; i < std::size_t(place.items); ++i) {
            CHECK(data.items[i] == items[i]);
            CHECK(data.inputs[i] == std::int32_t(items[i]));
            CHECK(data.targets[i] == -std::int32_t(items[i]));
          }
        });
      }
  }
}

TEST_CASE("prefetcher_reads_no_further_than_its_depth") {
  const Counted numbers{{.count = 100}};
  RankBatches walk = endless(100);
  Prefetcher<Counted> ahead(numbers, Order::sequential, walk, 2, 3);
  walk.begin_step();
  for (int taken = 0; taken < 2; ++taken) {
    ahead.take(walk.next(), [&](const auto&) {
      while (*numbers.reads < taken + 3) std::this_thread::yield();
      CHECK(*numbers.reads == taken + 3);
    });
  }
}

TEST_CASE("prefetcher_brings_an_error_to_the_micro_batch_that_failed") {
  const Numbers numbers{.count = 10, .bad_item = 5};
  RankBatches walk = endless(10);
  Prefetcher<Numbers> ahead(numbers, Order::sequential, walk, 2, 4);
  walk.begin_step();
  ahead.take(walk.next(), [](const auto& data) { CHECK(data.items[0] == 0); });
  ahead.take(walk.next(), [](const auto& data) { CHECK(data.items[0] == 2); });
  walk.begin_step();
  const MicroBatchPlace bad = walk.next();
  for (int again = 0; again < 2; ++again) CHECK(contains(message_of([&] { ahead.take(bad, [](const auto&) {}); }), "weft[numbers.bad]"));
}

TEST_CASE("prefetcher_asked_for_another_micro_batch_is_an_error") {
  RankBatches walk = endless(10);
  Prefetcher<Numbers> ahead(Numbers{.count = 10}, Order::sequential, walk, 2, 4);
  walk.begin_step();
  walk.next();
  CHECK(contains(message_of([&] { ahead.take(walk.next(), [](const auto&) {}); }), "weft[data.prefetch]"));
}

TEST_CASE("prefetcher_of_a_rank_without_items_ends") {
  RankBatches none({.epoch_items = 50, .global_items = 4}, Shares::of_ranks({4, 0}), 1, 2, {});
  Prefetcher<Numbers> idle(Numbers{.count = 50}, Order::shuffled, none, 2, 2);
  CHECK(none.begin_step() == 0);
}

TEST_CASE("prefetcher_of_a_rank_with_items_only_in_full_batches_finds_them_all") {
  RankBatches walk({.epoch_items = 5, .global_items = 4}, Shares::of_ranks({1, 3}), 0, 2, {});  // 1 item of 4, none of 1
  Prefetcher<Numbers> ahead(Numbers{.count = 5}, Order::sequential, walk, 2, 2);
  for (int step = 0; step < 20; ++step) {
    const Index micros = walk.begin_step();
    CHECK(micros == (step % 2 == 0));
    if (micros > 0) ahead.take(walk.next(), [](const auto& data) { CHECK(data.items[0] == 0); });
  }
}

TEST_CASE("prefetcher_ends_whatever_it_is_doing") {
  for (Index depth : {1, 8})
    for (int taken = 0; taken < 3; ++taken) {
      RankBatches walk = endless(50);
      Prefetcher<Numbers> ahead(Numbers{.count = 50}, Order::shuffled, walk, 2, depth);
      for (int i = 0; i < taken; ++i) {
        if (walk.micro_batches_left() == 0) walk.begin_step();
        ahead.take(walk.next(), [](const auto&) {});
      }
    }
  RankBatches finite({.epoch_items = 4, .global_items = 4, .epochs = 1}, Shares::equal(4, 1), 0, 4, {});
  Prefetcher<Numbers> done(Numbers{.count = 4}, Order::sequential, finite, 4, 2);
  finite.begin_step();
  done.take(finite.next(), [](const auto& data) { CHECK(data.items[3] == 3); });
}
