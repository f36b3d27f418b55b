// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/position.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE("position_rows_after_past_ones_take_the_rows_that_follow") {
  const double x[6] = {1, 2, 3, 4, 5, 6}, table[8] = {0, 0, 10, 10, 20, 20, 30, 30};
  Guarded<double> y(6);
  kernel::position_forward(3, 1, 2, 2, x, table, y.data());
  CHECK(y.values() == std::vector<double>{21, 22, 23, 24, 25, 26});
  CHECK(y.guards_hold());
}

TEST_CASE("position_gradient_equals_finite_differences") {
  const auto x = Noise(1).values<double>(2 * 3 * 4), dy = Noise(2).values<double>(2 * 3 * 4);
  auto table = Noise(3).values<double>(3 * 4);
  std::vector<double> y(24), dtable(12);
  kernel::position_backward(2, 3, 4, dy.data(), dtable.data());
  CHECK(largest_gradient_error(table, dtable, [&] {
          kernel::position_forward(2, 3, 0, 4, x.data(), table.data(), y.data());
          return inner_product(dy, y);
        }) < 1e-8);
}
