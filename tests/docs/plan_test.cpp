// SPDX-License-Identifier: Apache-2.0
// The plan that README.md shows. Regions between marks such as [plan] stand in documents: check_documents.py compares them.
#include <doctest/doctest.h>

#include <weft/plan.hpp>

#include <fstream>
#include <sstream>
#include <string>

namespace {

// [plan]
using Model = weft::Gpt<weft::GptOptions{.vocabulary = 65, .sequence = 64, .width = 128, .heads = 4, .layers = 4}>;
using Train = weft::Plan<Model, weft::mesh(weft::DataParallel{.ranks = 2}), weft::Batch{.global = 12, .micro = 6, .sequence = 64}>;

static_assert(Train::bytes_per_rank() <= 32 * weft::MiB, "a rank has 32 MiB");
static_assert(Train::ledger().calls == 4 && Train::ledger().bytes <= 4 * weft::MiB, "four calls a step, of 4 MiB at most together");
// [plan]

// Without the blanks at the ends of lines, which editors remove from documents.
std::string trimmed(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("readme_shows_what_describe_prints") {
  // [describe]
  const std::string text = weft::describe(Train::data());
  // [describe]
  const std::string readme = read_file(WEFT_TEST_DATA "/../../README.md");
  REQUIRE_FALSE(readme.empty());
  INFO("put this into README.md, without blanks at the ends of lines:\n" << text);
  CHECK(trimmed(readme).find(trimmed(text)) != std::string::npos);
}
