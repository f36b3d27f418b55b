// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/elementwise.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE("columns_copied_and_added_touch_nothing_else") {
  const double from[6] = {1, 2, 3, 4, 5, 6};
  Guarded<double> to(std::vector<double>{9, 9, 9, 9, 9, 9, 9, 9});
  kernel::copy_columns(2, from, 3, to.data(), 4, 2);
  CHECK(to.values() == std::vector<double>{1, 2, 9, 9, 4, 5, 9, 9});
  kernel::add_columns(2, from + 1, 3, to.data() + 1, 4, 2);
  CHECK(to.values() == std::vector<double>{1, 4, 12, 9, 4, 10, 15, 9});
  CHECK(to.guards_hold());
}

TEST_CASE_TEMPLATE("measures_of_ranges_see_every_element", Real, float, double) {
  std::vector<Real> x(9, Real(2));
  CHECK(kernel::square_sum(9, x.data()) == 36);
  CHECK(kernel::all_finite(9, x.data()));
  x[8] = std::numeric_limits<Real>::infinity();
  CHECK(std::isinf(kernel::square_sum(9, x.data())));
  CHECK(!kernel::all_finite(9, x.data()));
  CHECK(kernel::all_finite(8, x.data()));
}
