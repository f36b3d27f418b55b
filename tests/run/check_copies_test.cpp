// SPDX-License-Identifier: Apache-2.0
// Copies are compared however the strategy keeps them: whole, whole beside shards of the optimizer, as shards of replicas, as guests of
// other stages. One element that one rank changes is found wherever somebody else has it too.
#include "run/engine_cases.hpp"

#include <weft/run/check_copies.hpp>

using namespace weft;
using namespace weft::test;

namespace {

using Text = Sequential<Named<"wte", Embedding<13, 8>>,
                        Named<"blocks", Repeat<4, Residual<Named<"norm", LayerNorm<8>>, Linear<8, 16>, Linear<16, 8>>>>,
                        Tied<"wte.table", Linear<8, 13, Bias::no>>>;
using TextRecipe = Recipe<Fp64, SoftmaxCrossEntropy<>, AdamW>;
using TheEngine = EngineOf<Text, SoftmaxCrossEntropy<>, double, AdamW, ThreadCommunicator>;

// What check_copies says after a step, and after rank `culprit` has then changed the last element that it has of the parameter.
struct Said {
  std::string before, after;
};
Said check(const StrategyData& strategy, int culprit, const std::string& path) {
  const PlanData plan = plan_at_start<Text, TextRecipe>(strategy, {.global = 8, .micro = 1, .sequence = 4});
  Said said;
  std::mutex mutex;
  launch(int(strategy.ranks), [&](ThreadCommunicator& comm) {
    const auto code = model_code_for<TheEngine::Kernels, double, Text, SoftmaxCrossEntropy<>, 2>(strategy.tensor(), strategy.sequence);
    TheEngine engine(plan, code, comm, AdamW{});
    engine.step(
        plan.micros,
        [&](auto& to) {
          to.first_item = engine.place().data * plan.micros + to.number;
          for (Index i = 0; i < 4; ++i) to.tokens()[i] = std::int32_t((to.first_item + i) % 13), to.integer_targets()[i] = std::int32_t(i);
        },
        0.01);
    const auto message = [&] {
      try {
        check_copies(engine);
      } catch (const Error& error) { return std::string(error.what()); }
      return std::string("alike");
    };
    const std::string before = message();
    double* last = nullptr;
    engine.state().for_each_held([&](int p, Index repetition, const ParameterSite&, const auto& held) {
      if (path_of(plan.graph, p, repetition) == path) last = held.data + held.elems - 1;
    });
    if (comm.rank() == culprit && last == nullptr) throw std::runtime_error("the culprit has no part of " + path);
    if (comm.rank() == culprit) *last += 1;
    const std::string after = message();
    const std::lock_guard lock(mutex);
    said = {before, after};
  });
  return said;
}

void must_find(const char* name, const StrategyData& strategy, int culprit, const std::string& path) {
  const Said said = check(strategy, culprit, path);
  CHECK_MESSAGE(said.before == "alike", name << ": " << said.before);
  CHECK_MESSAGE(said.after.find("weft[copies.differ]") == 0, name << ": " << said.after);
  CHECK_MESSAGE(said.after.find("(" + path) != std::string::npos, name << ": " << said.after);
}

}  // namespace

TEST_CASE("copies_are_compared_however_they_are_kept") {
  const std::string norm = "blocks.3.norm.gain", table = "wte.table";
  const auto sharded = [](Shard shard, Index shard_ranks) { return DataParallel{.ranks = 4, .shard = shard, .shard_ranks = shard_ranks}; };
  must_find("data4", lower_strategy(mesh(DataParallel{.ranks = 4})), 2, norm);
  for (const int culprit : {0, 3}) {
    must_find("data4 zero1", lower_strategy(mesh(sharded(Shard::optimizer, 0))), culprit, norm);
    must_find("data4 zero2", lower_strategy(mesh(sharded(Shard::gradients, 0))), culprit, norm);
    must_find("data4 zero3 hybrid", lower_strategy(mesh(sharded(Shard::parameters, 2))), culprit, table);
  }
  must_find("pipe2", lower_strategy(mesh(Pipeline<>{.stages = 2})), 1, table);
  const DataParallel zero3{.ranks = 2, .shard = Shard::parameters}, zero1{.ranks = 2, .shard = Shard::optimizer};
  must_find("zero1, pipe2", lower_strategy(mesh(zero1, Pipeline<>{.stages = 2})), 1, table);
  must_find("zero3, pipe2", lower_strategy(mesh(zero3, Pipeline<>{.stages = 2})), 3, table);
  must_find("zero3, tensor2", lower_strategy(mesh(zero3, TensorParallel{.ranks = 2})), 1, norm);
}

TEST_CASE("shards_that_nobody_else_has_are_nobody_s_copies") {
  const Said said = check(lower_strategy(mesh(DataParallel{.ranks = 4, .shard = Shard::parameters})), 2, "wte.table");
  CHECK(said.before == "alike");
  CHECK(said.after == "alike");
}
