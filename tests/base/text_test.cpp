// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdint>

#include <weft/base/text.hpp>

TEST_CASE("text_of_strings_and_integers_joins_them_in_order") {
  const std::string name = "b";
  CHECK(weft::text_of("a", name, std::string_view("c"), -1, 2UL, std::int64_t(3)) == "abc-123");
  CHECK(weft::text_of().empty());
}
