// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include <weft/data/labelled_images.hpp>
#include <weft/data/loader.hpp>
#include <weft/data/token_windows.hpp>

#include "data/numbers_source.hpp"
#include "data/temporary_folder.hpp"

using namespace weft;
using namespace weft::data;
using weft::testing::contains;
using weft::testing::idx_bytes;
using weft::testing::little_endian;
using weft::testing::message_of;
using weft::testing::Numbers;
using Items = std::vector<Index>;

namespace {
struct Step {
  Index epoch = 0;
  Items items;  // of all ranks, in rank order
  bool operator==(const Step&) const = default;
};

// One step of all ranks, gathered. Checks that every micro-batch knows its place.
template <class Source>
Step gather(std::vector<Loader<Source>>& ranks) {
  Step step;
  for (Loader<Source>& rank : ranks) {
    const Index micros = rank.begin_step();
    step.epoch = rank.batch().epoch;
    for (Index m = 0; m < micros; ++m) {
      std::vector<std::int32_t> inputs(std::size_t(rank.options().micro_batch)), targets(inputs.size());
      const MicroBatchItems micro = rank.read(inputs.data(), targets.data(), {rank.options().micro_batch, 1, 0});
      CHECK(micro.first_item == Index(step.items.size()));
      CHECK(micro.epoch == step.epoch);
      CHECK(micro.leading.batch == Index(micro.items.size()));
      for (std::size_t i = 0; i < micro.items.size(); ++i) {
        CHECK(inputs[i] == std::int32_t(micro.items[i]));
        CHECK(targets[i] == -std::int32_t(micro.items[i]));
      }
      step.items.insert(step.items.end(), micro.items.begin(), micro.items.end());
    }
    CHECK(Index(step.items.size()) <= rank.batch().items);
  }
  CHECK(Index(step.items.size()) == ranks[0].batch().items);
  return step;
}

std::vector<Loader<Numbers>> loaders(Index count, LoaderOptions options, Index ranks) {
  std::vector<Loader<Numbers>> all;
  options.ranks = ranks;
  for (options.rank = 0; options.rank < ranks; ++options.rank) all.emplace_back(Numbers{.count = count}, options);
  return all;
}

std::vector<Step> steps(Index count, const LoaderOptions& options, Index ranks, int number) {
  auto all = loaders(count, options, ranks);
  std::vector<Step> out;
  for (int i = 0; i < number; ++i) out.push_back(gather(all));
  return out;
}

Items sorted(Items items) {
  std::sort(items.begin(), items.end());
  return items;
}
Items counted(Index count) {
  Items items(static_cast<std::size_t>(count));
  std::iota(items.begin(), items.end(), Index(0));
  return items;
}
}  // namespace

TEST_CASE("loader_of_nine_items_and_batch_five_gathers_each_item_once_in_order") {
  for (Index ranks : {1, 2, 3})
    for (Index micro : {1, 2, 5}) {
      const LoaderOptions keep{.global_batch = 5, .micro_batch = micro, .order = Order::sequential};
      CHECK(steps(9, keep, ranks, 3) == std::vector<Step>{{0, {0, 1, 2, 3, 4}}, {0, {5, 6, 7, 8}}, {1, {0, 1, 2, 3, 4}}});
      LoaderOptions drop = keep;
      drop.last_batch = LastBatch::drop;
      CHECK(steps(9, drop, ranks, 2) == std::vector<Step>{{0, {0, 1, 2, 3, 4}}, {1, {0, 1, 2, 3, 4}}});
      LoaderOptions each = keep;  // five items on each rank
      each.global_batch = 5 * ranks;
      Items items;
      for (const Step& step : steps(9, each, ranks, ranks == 1 ? 2 : 1)) items.insert(items.end(), step.items.begin(), step.items.end());
      CHECK(items == counted(9));
    }
}

TEST_CASE("loader_of_512_items_and_batch_16_gives_all_512_on_two_ranks") {
  auto all = loaders(512, {.global_batch = 16, .micro_batch = 4, .epochs = 1}, 2);
  Items items;
  for (int step = 0; step < 32; ++step) {
    CHECK_FALSE(all[0].done());
    const Items got = gather(all).items;
    items.insert(items.end(), got.begin(), got.end());
  }
  CHECK(all[0].done());
  CHECK(all[1].done());
  CHECK(items != counted(512));
  CHECK(sorted(items) == counted(512));
  CHECK(all[1].begin_step() == 0);
}

TEST_CASE("loader_epochs_follow_each_other_with_another_order_and_the_same_set") {
  const auto both = steps(20, {.global_batch = 20, .micro_batch = 6}, 2, 2);
  CHECK(both[0].epoch == 0);
  CHECK(both[1].epoch == 1);
  CHECK(both[0].items != both[1].items);
  CHECK(sorted(both[0].items) == counted(20));
  CHECK(sorted(both[1].items) == counted(20));
}

TEST_CASE("loader_global_batches_do_not_depend_on_ranks_shares_micro_batches_or_read_ahead") {
  const LoaderOptions options{.global_batch = 16, .micro_batch = 16, .seed = 9};
  const auto reference = steps(50, options, 1, 9);
  for (Index ranks : {2, 4, 8})
    for (Index ahead : {0, 3}) {
      LoaderOptions other = options;
      other.micro_batch = 3, other.prefetch_micro_batches = ahead;
      CHECK(steps(50, other, ranks, 9) == reference);
    }
  LoaderOptions unequal = options;
  unequal.shares = {9, 0, 7}, unequal.micro_batch = 4;
  CHECK(steps(50, unequal, 3, 9) == reference);
  LoaderOptions seeded = options;
  seeded.seed = 10;
  CHECK(steps(50, seeded, 1, 9) != reference);
}

TEST_CASE("loader_resumed_anywhere_goes_on_as_without_a_break") {
  for (Order order : {Order::shuffled, Order::sequential, Order::with_replacement})
    for (LastBatch last : {LastBatch::keep, LastBatch::drop}) {
      const LoaderOptions options{.global_batch = 8, .micro_batch = 3, .seed = 4, .order = order, .last_batch = last};
      auto whole = loaders(27, options, 2);
      std::vector<Step> expected;
      std::vector<Position> positions;
      for (int i = 0; i < 12; ++i) positions.push_back(whole[0].position()), expected.push_back(gather(whole));
      for (std::size_t at = 0; at < positions.size(); ++at) {
        LoaderOptions other = options;
        other.seed = 77, other.prefetch_micro_batches = Index(at % 3);  // the seed comes from the position
        auto resumed = loaders(27, other, 1 + Index(at % 3));
        gather(resumed);
        for (auto& rank : resumed) rank.resume(positions[at]);
        for (std::size_t i = at; i < expected.size(); ++i) CHECK(gather(resumed) == expected[i]);
      }
    }
}

TEST_CASE("loader_resumes_with_another_global_batch_where_the_items_ended") {
  auto first = loaders(20, {.global_batch = 6, .micro_batch = 6}, 1);
  Items items = gather(first).items;
  auto second = loaders(20, {.global_batch = 7, .micro_batch = 7}, 1);
  second[0].resume(first[0].position());
  for (int i = 0; i < 2; ++i) {
    const Items got = gather(second).items;
    items.insert(items.end(), got.begin(), got.end());
  }
  CHECK(sorted(items) == counted(20));
}

TEST_CASE("loader_shares_change_between_steps_without_changing_the_batches") {
  for (Index ahead : {0, 2}) {
    const LoaderOptions options{.global_batch = 10, .micro_batch = 2, .prefetch_micro_batches = ahead};
    const auto reference = steps(33, options, 1, 8);
    auto all = loaders(33, options, 2);
    const std::vector<std::vector<Index>> shares{{5, 5}, {9, 1}, {0, 10}, {3, 7}};
    for (std::size_t i = 0; i < reference.size(); ++i) {
      for (auto& rank : all) rank.set_shares(shares[i % 4]);
      CHECK(gather(all) == reference[i]);
    }
  }
}

TEST_CASE("loader_for_evaluation_gives_every_item_once_at_any_number_of_ranks") {
  for (Index ranks : {1, 2, 4, 8}) {
    std::vector<Loader<Numbers>> all;
    for (Index r = 0; r < ranks; ++r) all.emplace_back(Numbers{.count = 13}, evaluation_options(8, 2, r, ranks));
    Items items;
    int calls = 0;
    for (; !all[0].done(); ++calls) {
      const Items got = gather(all).items;
      items.insert(items.end(), got.begin(), got.end());
    }
    CHECK(items == counted(13));
    CHECK(calls == 2);
    for (auto& rank : all) CHECK(rank.done());
  }
}

TEST_CASE("loader_with_replacement_draws_as_many_items_as_asked") {
  const auto drawn = steps(5, {.global_batch = 40, .micro_batch = 40, .order = Order::with_replacement, .epoch_items = 100}, 2, 4);
  CHECK(drawn[2].items.size() == 20);
  CHECK(drawn[3].epoch == 1);
  CHECK(drawn[3].items != drawn[0].items);
  for (Index item : drawn[0].items) CHECK((item >= 0 && item < 5));
  const auto some = steps(100, {.global_batch = 10, .micro_batch = 10, .epoch_items = 10}, 1, 2);
  CHECK(some[1].epoch == 1);
  CHECK(sorted(some[0].items) != sorted(some[1].items));
}

TEST_CASE("loader_options_that_make_no_sense_are_errors") {
  const auto fault = [](Index count, const LoaderOptions& options) {
    return message_of([&] { Loader<Numbers>(Numbers{.count = count}, options); });
  };
  CHECK(contains(fault(9, {.global_batch = 4, .micro_batch = 2}), "nothing was thrown"));
  CHECK(contains(fault(0, {.global_batch = 4, .micro_batch = 2}), "weft[data.options]"));
  CHECK(contains(fault(9, {.micro_batch = 2}), "LoaderOptions::global_batch"));
  CHECK(contains(fault(9, {.global_batch = 4}), "LoaderOptions::micro_batch"));
  CHECK(contains(fault(9, {.global_batch = 4, .micro_batch = 2, .rank = 2, .ranks = 2}), "LoaderOptions::rank"));
  CHECK(contains(fault(9, {.global_batch = 4, .micro_batch = 2, .ranks = 0}), "LoaderOptions::rank"));
  CHECK(contains(fault(9, {.global_batch = 4, .micro_batch = 2, .ranks = 2, .shares = {4}}), "1 shares for 2 ranks"));
  CHECK(contains(fault(9, {.global_batch = 4, .micro_batch = 2, .ranks = 2, .shares = {3, 2}}), "sum 5, global batch 4"));
  CHECK(contains(fault(9, {.global_batch = 4, .micro_batch = 2, .epochs = -1}), "LoaderOptions::epochs"));
  CHECK(contains(fault(9, {.global_batch = 4, .micro_batch = 2, .epoch_items = 10}), "Order::with_replacement"));
  CHECK(contains(fault(9, {.global_batch = 10, .micro_batch = 2, .last_batch = LastBatch::drop}), "LastBatch::drop"));
  CHECK(contains(fault(9, {.global_batch = 4, .micro_batch = 2, .prefetch_micro_batches = -1}), "prefetch_micro_batches"));
}

TEST_CASE("loader_used_out_of_step_is_an_error") {
  Loader<Numbers> loader(Numbers{.count = 9}, {.global_batch = 4, .micro_batch = 2});
  std::int32_t inputs[2], targets[2];
  CHECK(contains(message_of([&] { loader.read(inputs, targets, {2, 1, 0}); }), "weft[data.step]"));
  CHECK(loader.begin_step() == 2);
  CHECK(contains(message_of([&] { loader.begin_step(); }), "weft[data.step]"));
  CHECK(contains(message_of([&] { loader.set_shares({4}); }), "weft[data.step]"));
  CHECK(contains(message_of([&] { loader.read(inputs, targets, {1, 1, 0}); }), "weft[data.capacity]"));
  CHECK(contains(message_of([&] { loader.resume({1, 0, 10}); }), "weft[data.position]"));
  CHECK(contains(message_of([&] { loader.resume({1, -1, 0}); }), "weft[data.position]"));
  loader.resume({1, 0, 8});
  CHECK(loader.begin_step() == 1);
}

TEST_CASE("loader_brings_errors_of_its_source_with_and_without_read_ahead") {
  for (Index ahead : {0, 2}) {
    Loader<Numbers> loader(Numbers{.count = 9, .bad_item = 3},
                           {.global_batch = 4, .micro_batch = 2, .order = Order::sequential, .prefetch_micro_batches = ahead});
    std::int32_t inputs[2], targets[2];
    loader.begin_step();
    CHECK(loader.read(inputs, targets, {2, 1, 0}).items[1] == 1);
    CHECK(contains(message_of([&] { loader.read(inputs, targets, {2, 1, 0}); }), "weft[numbers.bad]"));
  }
}

TEST_CASE("loader_that_is_moved_goes_on_where_it_was") {
  for (Index ahead : {0, 2}) {
    std::vector<Loader<Numbers>> one;
    one.emplace_back(Numbers{.count = 9}, LoaderOptions{.global_batch = 4, .micro_batch = 2, .prefetch_micro_batches = ahead});
    const auto expected = steps(9, one[0].options(), 1, 2);
    CHECK(gather(one) == expected[0]);
    std::vector<Loader<Numbers>> other;
    other.push_back(std::move(one[0]));
    CHECK(gather(other) == expected[1]);
  }
}

namespace {
// What the engine hands out.
template <class Real>
struct EngineBuffers {
  std::vector<std::int32_t> token_memory = std::vector<std::int32_t>(64), target_memory = std::vector<std::int32_t>(64);
  std::vector<Real> value_memory = std::vector<Real>(64);
  Leading leading{};
  Index first_item = 0;
  std::int32_t* tokens() { return token_memory.data(); }
  Real* values() { return value_memory.data(); }
  std::int32_t* integer_targets() { return target_memory.data(); }
};
}  // namespace

TEST_CASE("loader_fills_the_engines_buffers_with_tokens") {
  std::vector<std::uint16_t> tokens(41);
  std::iota(tokens.begin(), tokens.end(), std::uint16_t(0));
  const TokenSequence sequence(bytes_in_memory(little_endian(tokens), "t.bin"), TokenType::u16, 41, 0, 41);
  for (Index ahead : {0, 2}) {
    Loader<TokenWindows> loader(
        TokenWindows(sequence, 8),
        {.global_batch = 4, .micro_batch = 2, .rank = 1, .ranks = 2, .order = Order::sequential, .prefetch_micro_batches = ahead});
    REQUIRE(loader.begin_step() == 1);
    EngineBuffers<float> micro{.leading = {2, 8, 0}};
    const MicroBatchItems got = loader.fill(micro);
    CHECK(micro.leading == Leading{2, 8, 0});
    CHECK(micro.first_item == 2);
    CHECK(got.items[0] == 2);
    CHECK(micro.token_memory[0] == 16);
    CHECK(micro.token_memory[15] == 31);
    CHECK(micro.target_memory[15] == 32);
    REQUIRE(loader.begin_step() == 1);  // the last item, shorter
    micro.leading = {2, 8, 0};
    loader.fill(micro);
    CHECK(micro.leading == Leading{1, 8, 0});
    micro.leading = {2, 4, 0};
    loader.begin_step();
    CHECK(contains(message_of([&] { loader.fill(micro); }), "given 2 x 8, capacity 2 x 4"));
  }
}

TEST_CASE_TEMPLATE("loader_fills_the_engines_buffers_with_pixels", Real, float, double) {
  const IdxArray images(bytes_in_memory(idx_bytes({3, 1, 2}, "\x01\x02\x03\x04\x05\x06"), "i"));
  const IdxArray labels(bytes_in_memory(idx_bytes({3}, std::string("\x00\x01\x02", 3)), "l"));
  Loader<LabelledImages<Real>> loader({images, labels, {.shape = {1, 1, 2}, .classes = 3}}, evaluation_options(3, 3));
  REQUIRE(loader.begin_step() == 1);
  EngineBuffers<Real> micro{.leading = {3, 1, 0}};
  loader.fill(micro);
  CHECK(micro.leading == Leading{3, 1, 0});
  CHECK(micro.value_memory[5] == Real(6 / 255.0));
  CHECK(micro.target_memory[2] == 2);
  CHECK(loader.done());
}
