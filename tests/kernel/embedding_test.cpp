// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/embedding.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE("embedding_rows_are_rows_of_the_table") {
  const auto table = Noise(1).values<double>(5 * 3);
  const std::int32_t tokens[4] = {4, 0, 4, 2};
  Guarded<double> y(12);
  CHECK(kernel::embedding_forward(4, 5, 3, tokens, table.data(), y.data()) == -1);
  for (Index r = 0; r < 4; ++r) {
    for (Index c = 0; c < 3; ++c) CHECK(y[r * 3 + c] == table[std::size_t(tokens[r] * 3 + c)]);
  }
  CHECK(y.guards_hold());
}

TEST_CASE("embedding_token_outside_the_table_is_named") {
  const auto table = Noise(1).values<double>(5 * 3);
  for (std::int32_t bad : {-1, 5, std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::min()}) {
    const std::int32_t tokens[4] = {4, 0, bad, bad};
    Guarded<double> y(12);
    CHECK(kernel::embedding_forward(4, 5, 3, tokens, table.data(), y.data()) == 2);
    CHECK(std::isnan(y[6]));  // untouched
  }
}

TEST_CASE("embedding_gradient_adds_up_over_equal_tokens") {
  const std::int32_t tokens[4] = {1, 0, 1, 7};
  const double dy[8] = {1, 2, 10, 20, 100, 200, 1000, 2000};
  Guarded<double> dtable(std::vector<double>{0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  kernel::embedding_backward(4, 3, 2, tokens, dy, dtable.data());
  CHECK(dtable.values() == std::vector<double>{10.5, 20.5, 101.5, 202.5, 0.5, 0.5});
  CHECK(dtable.guards_hold());
}
