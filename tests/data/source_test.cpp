// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "data/numbers_source.hpp"

using namespace weft;
using namespace weft::data;

static_assert(ItemSource<testing::Numbers>, "the smallest source is one");
static_assert(!ItemSource<testing::NumbersWithoutRead>, "a source reads");
static_assert(!ItemSource<testing::NumbersWithoutLeading>, "leading extents are a Leading");
static_assert(!ItemSource<int>, "nothing is a source by accident");

TEST_CASE("read_micro_batch_reads_the_items_at_its_places") {
  const testing::Numbers numbers{.count = 10};
  Index items[4] = {-1, -1, -1, -1};
  std::int32_t inputs[3], targets[3];
  read_micro_batch(numbers, Order::sequential, {.seed = 1, .epoch = 0, .first = 6, .items = 3}, items, inputs, targets);
  CHECK(items[0] == 6);
  CHECK(items[3] == -1);
  CHECK(inputs[2] == 8);
  CHECK(targets[2] == -8);
}
