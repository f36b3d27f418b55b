// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include <weft/data/order.hpp>

using namespace weft;
using namespace weft::data;
using Items = std::vector<Index>;

namespace {
Items epoch_of(Order order, std::uint64_t seed, Index epoch, Index num_items) {
  Items items(static_cast<std::size_t>(num_items));
  items_in_order(order, seed, epoch, num_items, 0, items);
  return items;
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

TEST_CASE("order_shuffled_has_each_item_once") {
  for (Index n = 1; n <= 300; ++n) {
    const Items items = epoch_of(Order::shuffled, 7, n % 5, n);
    CHECK(sorted(items) == counted(n));
    if (n > 9) CHECK(items != counted(n));
  }
  CHECK(sorted(epoch_of(Order::shuffled, 1, 0, 65537)) == counted(65537));
}

TEST_CASE("order_shuffled_of_many_items_stays_within_them_and_repeats_none") {
  const Index many = (Index(1) << 40) + 12345;
  Items sample(5000);
  items_in_order(Order::shuffled, 3, 2, many, many - 5000, sample);
  for (Index item : sample) CHECK((item >= 0 && item < many));
  const Items in_order = sorted(sample);
  CHECK(std::adjacent_find(in_order.begin(), in_order.end()) == in_order.end());
  const double mean = std::accumulate(sample.begin(), sample.end(), 0.0) / 5000;
  CHECK(mean / double(many) == doctest::Approx(0.5).epsilon(0.05));
}

TEST_CASE("order_depends_on_seed_and_epoch_and_repeats_exactly") {
  CHECK(epoch_of(Order::shuffled, 1, 0, 100) == epoch_of(Order::shuffled, 1, 0, 100));
  CHECK(epoch_of(Order::shuffled, 1, 0, 100) != epoch_of(Order::shuffled, 1, 1, 100));
  CHECK(epoch_of(Order::shuffled, 1, 0, 100) != epoch_of(Order::shuffled, 2, 0, 100));
  CHECK(epoch_of(Order::with_replacement, 1, 0, 100) != epoch_of(Order::with_replacement, 1, 1, 100));
  CHECK(epoch_of(Order::sequential, 1, 5, 100) == counted(100));
}

TEST_CASE("order_of_a_part_is_that_part_of_the_whole") {
  for (Order order : {Order::sequential, Order::shuffled, Order::with_replacement}) {
    const Items whole = epoch_of(order, 11, 4, 57);
    Items part(10);
    items_in_order(order, 11, 4, 57, 20, part);
    CHECK(part == Items(whole.begin() + 20, whole.begin() + 30));
  }
}

TEST_CASE("order_shuffled_makes_all_orders_equally_likely") {
  std::map<Items, int> counts;
  for (Index epoch = 0; epoch < 12000; ++epoch) ++counts[epoch_of(Order::shuffled, 5, epoch, 5)];
  CHECK(counts.size() == 120);
  double chi_square = 0;
  for (const auto& [items, count] : counts) chi_square += (count - 100.0) * (count - 100.0) / 100.0;
  CHECK(chi_square < 200);  // 119 degrees of freedom: mean 119, deviation 15.4
}

TEST_CASE("order_shuffled_puts_every_item_everywhere_equally_often") {
  const Index n = 23;
  std::vector<int> counts(std::size_t(n * n));
  for (Index epoch = 0; epoch < 4600; ++epoch) {
    const Items items = epoch_of(Order::shuffled, 9, epoch, n);
    for (Index place = 0; place < n; ++place) ++counts[std::size_t(place * n + items[std::size_t(place)])];
  }
  double chi_square = 0;
  for (int count : counts) chi_square += (count - 200.0) * (count - 200.0) / 200.0;
  CHECK(chi_square == doctest::Approx(484).epsilon(0.3));  // (n - 1)^2 degrees of freedom, deviation 31
}

TEST_CASE("order_with_replacement_draws_every_item_equally_often") {
  Items draws(50000);
  items_in_order(Order::with_replacement, 2, 0, 10, 0, draws);
  std::vector<int> counts(10);
  for (Index item : draws) ++counts[std::size_t(item)];
  for (int count : counts) CHECK(count == doctest::Approx(5000).epsilon(0.06));
}

TEST_CASE("order_is_known_at_compile_time") {
  constexpr Index item = [] {
    Index items[3] = {};
    items_in_order(Order::shuffled, 1, 0, 3, 0, items);
    return items[0] + items[1] + items[2];
  }();
  static_assert(item == 3, "0 + 1 + 2");
  CHECK(item == 3);
}
