// SPDX-License-Identifier: Apache-2.0
// The compiler's sentences and the run-time's are the same: a static_assert takes a literal only, so they stand twice in the header.
#include <weft/plan/refuse.hpp>

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

TEST_CASE("refusals_at_compile_time_and_at_start_have_the_same_text") {
  std::stringstream all;
  for (const char* path : {"/../../include/weft/schedule/fault.hpp", "/../../include/weft/plan/refuse.hpp"})
    all << std::ifstream(WEFT_TEST_DATA + std::string(path)).rdbuf();
  const std::string text = all.str();
  REQUIRE(text.size() > 1000);
  for (int rule = 1; rule <= int(weft::PlanRule::over_budget); ++rule) {
    const std::string sentence = std::string("\"") + weft::rule_text(weft::PlanRule(rule)) + "\"";
    REQUIRE(sentence.size() > 20);
    const std::size_t first = text.find(sentence);
    REQUIRE(first != std::string::npos);
    CHECK_MESSAGE(text.find("static_assert", first) < text.find(sentence, first + 1), sentence);
    CHECK_MESSAGE(text.find(sentence, first + 1) != std::string::npos, sentence);
  }
}
