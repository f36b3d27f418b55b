// SPDX-License-Identifier: Apache-2.0
#include <weft/run/balance.hpp>
#include <weft/run/launch.hpp>

#include <doctest/doctest.h>

#include <numeric>

using namespace weft;

TEST_CASE("shares_follow_speed_and_add_up") {
  CHECK(shares_by_speed(12, {1, 1, 1}) == std::vector<Index>{4, 4, 4});
  CHECK(shares_by_speed(12, {1, 2, 3}) == std::vector<Index>{2, 4, 6});
  CHECK(shares_by_speed(10, {1, 1, 1}) == std::vector<Index>{4, 3, 3});
  CHECK(shares_by_speed(0, {1, 5}) == std::vector<Index>{0, 0});
  for (Index items : {1, 7, 100, 1023}) {
    const auto shares = shares_by_speed(items, {0.3, 17.0, 2.5, 2.5});
    CHECK(std::accumulate(shares.begin(), shares.end(), Index(0)) == items);
    CHECK(shares[1] >= shares[2]);
  }
}

TEST_CASE("shares_refuse_a_speed_that_is_none") {
  CHECK_THROWS_WITH_AS(shares_by_speed(4, {1, 0}), doctest::Contains("weft[balance.speed]"), Error);
  CHECK_THROWS_WITH_AS(shares_by_speed(4, {1, -2}), doctest::Contains("rank 1"), Error);
}

TEST_CASE("balance_gives_every_rank_the_same_shares") {
  launch(3, [](auto& comm) {
    const auto shares = balance(comm, 18, comm.rank() + 1, 1.0);  // rank r does r + 1 items a second
    CHECK(shares == std::vector<Index>{3, 6, 9});
  });
}
