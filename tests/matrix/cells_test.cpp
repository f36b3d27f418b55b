// SPDX-License-Identifier: Apache-2.0
#include "matrix/cells.hpp"

#include <doctest/doctest.h>

using namespace weft;
using namespace weft::test;

TEST_CASE("the_chosen_cells_hold_every_pair_of_choices_that_is_legal") {
  const std::vector<NumberedCell> all = numbered_cells(8);
  const std::vector<Cell> few = covering_cells(8);
  CHECK(few.size() < 200);
  std::set<int> wanted, held;
  const auto add = [](std::set<int>& to, const NumberedCell& cell) {
    for (int a = 0; a < num_factors; ++a)
      for (int b = a + 1; b < num_factors; ++b) to.insert(pair_number(cell.choice, a, b));
  };
  for (const NumberedCell& cell : all) {
    add(wanted, cell);
    for (const Cell& chosen : few)
      if (chosen == cell.cell) add(held, cell);
  }
  CHECK(wanted == held);
  MESSAGE("legal cells of up to 8 ranks: " << all.size() << ", chosen: " << few.size() << ", pairs: " << wanted.size());
}
