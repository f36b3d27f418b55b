// SPDX-License-Identifier: Apache-2.0
#include <weft/checkpoint/layout.hpp>

#include <doctest/doctest.h>

using namespace weft::checkpoint;

TEST_CASE("layout_pattern_matches_any_number_and_nothing_else") {
  std::string number;
  CHECK((matches("blocks.{i}.up.weight", "blocks.12.up.weight", number) && number == "12"));
  CHECK((matches("{i}", "0", number) && number == "0"));
  CHECK((matches("norm.gain", "norm.gain", number) && number.empty()));
  for (const char* text : {"blocks..up.weight", "blocks.1", "blocks.x.up.weight", "blocks.1.2.up.weight", "blocks.-1.up.weight",
                           "locks.1.up.weight", "blocks.1.up.weights", "blocks.up.weight", ""})
    CHECK_FALSE(matches("blocks.{i}.up.weight", text, number));
  CHECK_FALSE(matches("ab{i}ba", "aba", number));  // beginning and end must not share characters
}

TEST_CASE("layout_name_with_a_number_and_alternatives_stands_for_several") {
  CHECK(with_number("h.{i}.attn", "3") == "h.3.attn");
  CHECK(with_number("wte", "3") == "wte");
  CHECK(alternatives("wte.weight") == std::vector<std::string>{"wte.weight"});
  CHECK(alternatives("a.{q,k,v}_proj") == std::vector<std::string>{"a.q_proj", "a.k_proj", "a.v_proj"});
  CHECK(alternatives("{gate}") == std::vector<std::string>{"gate"});
}
