// SPDX-License-Identifier: Apache-2.0
// README's table of what composes: every pair of features is planned, and what is refused is said by the rule that refuses it. The test
// fails when the table is out of date; with WEFT_WRITE_DOCUMENTS=1 in the environment it writes the table instead.
#include <doctest/doctest.h>

#include <weft/plan.hpp>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

using namespace weft;

namespace {

struct LocalSgd {
  static constexpr const char* name = "local_sgd";
  static constexpr int version = 1;
  static constexpr bool sums_gradients = false;
  static constexpr void synchronise(SyncStep& step) {
    if (step.number() % step.every() == 0) step.average(Shared::parameters);
  }
};

enum class Schedule { none, gpipe, one_forward_one_backward, interleaved, zero_bubble_h1, zero_bubble_h2, zero_bubble_v };

// Everything that can be chosen, in numbers that divide each other.
struct Choice {
  Index data = 1, shard_ranks = 0, replicas = 1, tensor = 1;
  Shard shard = Shard::none;
  Schedule schedule = Schedule::none;
  bool fixed_chunks = false, sequence = false, reproducible = false, tied = false, dropout = false, batch_norm = false;
  Recompute recompute = Recompute::none;
};

// Features of the same kind (not empty) exclude each other.
struct Feature {
  std::string name, kind;
  std::function<void(Choice&)> choose;
};

std::vector<Feature> features() {
  const auto shard = [](Shard stage) { return [=](Choice& c) { c.data = 4, c.shard = stage; }; };
  const auto pipe = [](Schedule schedule) { return [=](Choice& c) { c.schedule = schedule; }; };
  return {
      {"data ranks", "", [](Choice& c) { c.data = 4; }},
      {"sharded optimizer states", "shard", shard(Shard::optimizer)},
      {"sharded gradients", "shard", shard(Shard::gradients)},
      {"sharded parameters", "shard", shard(Shard::parameters)},
      {"sharded parameters, replicated", "shard", [](Choice& c) { c.data = 4, c.shard = Shard::parameters, c.shard_ranks = 2; }},
      {"replicas that train alone (local SGD)", "", [](Choice& c) { c.replicas = 2; }},
      {"pipeline: GPipe", "pipe", pipe(Schedule::gpipe)},
      {"pipeline: 1F1B", "pipe", pipe(Schedule::one_forward_one_backward)},
      {"pipeline: interleaved 1F1B", "pipe", pipe(Schedule::interleaved)},
      {"pipeline: zero bubble H1", "pipe", pipe(Schedule::zero_bubble_h1)},
      {"pipeline: zero bubble H2", "pipe", pipe(Schedule::zero_bubble_h2)},
      {"pipeline: zero bubble V", "pipe", pipe(Schedule::zero_bubble_v)},
      {"tensor ranks", "tensor", [](Choice& c) { c.tensor = 2; }},
      {"tensor ranks with divided sequences", "tensor", [](Choice& c) { c.tensor = 2, c.sequence = true; }},
      {"recompute: selective", "recompute", [](Choice& c) { c.recompute = Recompute::selective; }},
      {"recompute: full", "recompute", [](Choice& c) { c.recompute = Recompute::full; }},
      {"the same bits for every layout", "", [](Choice& c) { c.reproducible = true; }},
      {"tied weights", "tied", [](Choice& c) { c.tied = true; }},
      {"dropout", "", [](Choice& c) { c.dropout = true; }},
      {"batch norm over the global batch", "tied", [](Choice& c) { c.batch_norm = true; }},
  };
}

template <bool tied, bool dropout>
using Text =
    Gpt<GptOptions{.vocabulary = 64, .sequence = 16, .width = 48, .heads = 6, .layers = 8, .tied = tied, .dropout = dropout ? 0.1 : 0.0}>;
using Block = Residual<Conv2d<4, 4, Conv2dOptions{.kernel = 3, .padding = 1}>, BatchNorm2d<4>, Relu>;
using Images = Sequential<Input<1, 6, 6>, Conv2d<1, 4>, Repeat<8, Block>, Flatten, Linear<64, 10>>;
using DroppedImages = Sequential<Input<1, 6, 6>, Conv2d<1, 4>, Repeat<8, Block>, Dropout<0.1>, Flatten, Linear<64, 10>>;

template <class Pipe>
StrategyData strategy_of(const Choice& c, Pipe pipe) {
  pipe.stages = c.schedule == Schedule::none ? 1 : 2;
  return lower_strategy(mesh(Replicas<LocalSgd>{.ranks = c.replicas},
                             DataParallel{.ranks = c.data, .shard = c.shard, .shard_ranks = c.shard_ranks}, pipe,
                             TensorParallel{.ranks = c.tensor, .sequence = c.sequence}, Activations{.recompute = c.recompute},
                             Reproducible{.reproducible = c.reproducible}));
}
StrategyData strategy_of(const Choice& c) {
  switch (c.schedule) {
    case Schedule::gpipe: return strategy_of(c, Pipeline<schedule::GPipe>{});
    case Schedule::interleaved: return strategy_of(c, Pipeline<schedule::Interleaved>{.chunks = 2});
    case Schedule::zero_bubble_h1: return strategy_of(c, Pipeline<schedule::ZeroBubbleH1>{});
    case Schedule::zero_bubble_h2: return strategy_of(c, Pipeline<schedule::ZeroBubbleH2>{});
    case Schedule::zero_bubble_v: return strategy_of(c, Pipeline<schedule::ZeroBubbleV>{});
    default: return strategy_of(c, Pipeline<>{});
  }
}

PlanRule refused(const Choice& c) {
  const StrategyData strategy = strategy_of(c);
  const Batch text{.global = 64, .micro = 2, .sequence = 16}, images{.global = 64, .micro = 2};
  if (c.batch_norm) return (c.dropout ? plan_data<DroppedImages>(strategy, images) : plan_data<Images>(strategy, images)).fault.rule;
  if (c.tied) return (c.dropout ? plan_data<Text<true, true>>(strategy, text) : plan_data<Text<true, false>>(strategy, text)).fault.rule;
  return (c.dropout ? plan_data<Text<false, true>>(strategy, text) : plan_data<Text<false, false>>(strategy, text)).fault.rule;
}

// "id", "the rule; what to change"
std::pair<std::string, std::string> split_text(PlanRule rule) {
  const std::string text = rule_text(rule);
  const std::size_t end = text.find("]: ");
  return {text.substr(5, end - 5), text.substr(end + 3)};
}

// Rows and columns are the features, numbered; a letter leads to the rule.
std::string table() {
  const std::vector<Feature> all = features();
  std::vector<PlanRule> rules;
  std::string head = "| | |", line = "| --- | --- |", rows;
  for (std::size_t b = 0; b + 1 < all.size(); ++b) head += " " + std::to_string(b + 1) + " |", line += " :-: |";
  for (std::size_t a = 0; a < all.size(); ++a) {
    rows += "| " + std::to_string(a + 1) + " | " + all[a].name + " |";
    for (std::size_t b = 0; b + 1 < all.size(); ++b) {
      std::string cell;
      if (b < a && (all[a].kind.empty() || all[a].kind != all[b].kind)) {
        Choice choice;
        all[b].choose(choice), all[a].choose(choice);
        const PlanRule rule = refused(choice);
        if (rule == PlanRule::none) {
          cell = "+";
        } else {
          std::size_t number = 0;
          while (number < rules.size() && rules[number] != rule) ++number;
          if (number == rules.size()) rules.push_back(rule);
          cell = std::string(1, char('a' + number));
        }
      }
      rows += cell.empty() ? " |" : " " + cell + " |";
    }
    rows += "\n";
  }
  std::string text = head + "\n" + line + "\n" + rows + "\n";
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const auto [id, sentence] = split_text(rules[i]);
    text += "- " + std::string(1, char('a' + i)) + ": `weft[" + id + "]`: " + sentence + "\n";
  }
  return text;
}

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("every_feature_is_possible_alone") {
  for (const Feature& feature : features()) {
    Choice choice;
    feature.choose(choice);
    CHECK_MESSAGE(refused(choice) == PlanRule::none, feature.name);
  }
}

TEST_CASE("readme_table_of_what_composes_is_what_plans_refuse") {
  const std::string path = WEFT_TEST_DATA "/../../README.md", begin = "<!-- composes:begin -->\n", end = "<!-- composes:end -->";
  std::string readme = read_file(path);
  const std::size_t first = readme.find(begin), last = readme.find(end);
  REQUIRE(first != std::string::npos);
  REQUIRE(last != std::string::npos);
  const std::size_t from = first + begin.size();
  const std::string now = table();
  const char* write = std::getenv("WEFT_WRITE_DOCUMENTS");
  if (write && *write == '1') {
    readme.replace(from, last - from, now);
    std::ofstream(path) << readme;
    return;
  }
  CHECK_MESSAGE(readme.substr(from, last - from) == now, "the table is out of date; run this test with WEFT_WRITE_DOCUMENTS=1");
}
