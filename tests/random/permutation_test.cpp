// SPDX-License-Identifier: Apache-2.0
#include <weft/random/permutation.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <vector>

using namespace weft;
using namespace weft::random;

namespace {
constexpr Stream epoch(std::uint64_t seed, std::uint64_t number) { return {.seed = seed, .purpose = Purpose::data_order, .step = number}; }
}  // namespace

TEST_CASE("permutation_any_count_holds_each_item_once") {
  for (Index count : {0, 1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 1000, 4097}) {
    const Permutation order(epoch(1, 2), count);
    CHECK(order.count() == count);
    std::vector<int> seen(std::size_t(count), 0);
    for (Index i = 0; i < count; ++i) {
      const Index at = order[i];
      REQUIRE(at >= 0);
      REQUIRE(at < count);
      ++seen[std::size_t(at)];
    }
    for (int times : seen) CHECK(times == 1);
  }
}

TEST_CASE("permutation_other_epochs_and_seeds_are_other_orders") {
  const Permutation first(epoch(1, 0), 1000), second(epoch(1, 1), 1000), third(epoch(2, 0), 1000), again(epoch(1, 0), 1000);
  int same[3] = {}, unmoved = 0;
  for (Index i = 0; i < 1000; ++i) {
    same[0] += first[i] == second[i];
    same[1] += first[i] == third[i];
    same[2] += first[i] == again[i];
    unmoved += first[i] == i;
  }
  CHECK(same[0] < 10);  // one is expected
  CHECK(same[1] < 10);
  CHECK(same[2] == 1000);
  CHECK(unmoved < 10);
}

TEST_CASE("permutation_over_epochs_sends_an_item_everywhere") {
  int counts[8] = {};
  for (std::uint64_t e = 0; e < 8000; ++e) ++counts[Permutation(epoch(7, e), 8)[3]];
  for (int count : counts) CHECK(std::abs(count - 1000) < 150);  // 5 deviations
}

TEST_CASE("permutation_of_more_than_2_to_32_items_stays_within") {
  const Index count = (Index(1) << 40) + 12345;
  const Permutation order(epoch(3, 4), count);
  for (Index i = 0; i < 100; ++i) {
    const Index at = order[i * 1'000'003];
    CHECK(at >= 0);
    CHECK(at < count);
  }
}

TEST_CASE("shuffle_orders_of_three_are_equally_likely_and_repeat") {
  int counts[27] = {};
  for (std::uint64_t e = 0; e < 6000; ++e) {
    int items[3] = {0, 1, 2}, again[3] = {0, 1, 2};
    shuffle(epoch(5, e), 3, items);
    shuffle(epoch(5, e), 3, again);
    CHECK((items[0] == again[0] && items[1] == again[1] && items[2] == again[2]));
    ++counts[items[0] * 9 + items[1] * 3 + items[2]];
  }
  int orders = 0;
  for (int count : counts) {
    if (count == 0) continue;
    ++orders;
    CHECK(std::abs(count - 1000) < 150);
  }
  CHECK(orders == 6);
}
