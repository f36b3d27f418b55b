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

namespace by_strategy {
// [mesh]
using weft::DataParallel, weft::Pipeline, weft::TensorParallel, weft::GroupKind;

// Eight ranks: two copies of the model, each in two stages, each stage over two tensor ranks, which are neighbours.
constexpr auto strategy = weft::mesh(DataParallel{.ranks = 2, .shard = weft::Shard::optimizer},
                                     Pipeline<weft::schedule::ZeroBubbleH1>{.stages = 2}, TensorParallel{.ranks = 2, .sequence = true});
using Train = weft::Plan<Model, strategy, weft::Batch{.global = 32, .micro = 2, .sequence = 64}>;

static_assert(Train::num_ranks == 8 && Train::bytes_per_rank() <= 16 * weft::MiB, "a rank has 16 MiB");
static_assert(Train::ledger(GroupKind::pipe).bytes_per_step() == 8 * (2 * 64 / 2) * 128 * 4,
              "the first stage sends its output, of 8 micro-batches of 2 x 64 rows divided by two, 128 floats each");
static_assert(Train::ledger(GroupKind::shard).bytes_per_step() == Train::facts().stages[0].memory.parameters,
              "of two data ranks, each gets half of the gradients' sums, and gives half of the parameters");
// [mesh]

// [open]
// Data ranks as many as there are, when the program starts. What does not depend on their number is checked now.
using Open = weft::Plan<Model, weft::mesh(DataParallel{.ranks = weft::rest_of_world}, TensorParallel{.ranks = 2}),
                        weft::Batch{.global = 32, .micro = 2, .sequence = 64}>;
static_assert(Open::bytes_per_rank({.data = 8}) <= 24 * weft::MiB, "of 16 ranks, one has 24 MiB");
// [open]

// [coordinates]
constexpr auto axes = weft::mesh(DataParallel{.ranks = 2}, Pipeline<>{.stages = 3}, TensorParallel{.ranks = 4});
static_assert(axes.num_ranks() == 24 && axes.rank({1, 2, 0}) == 20 && axes.coordinate(20)[1] == 2, "the last axis is the closest");
static_assert(axes.neighbour(1, 20, 1) == 12 && axes.color(2, 23) == 20, "the next stage; the first rank of a tensor group");
// [coordinates]
}  // namespace by_strategy

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
