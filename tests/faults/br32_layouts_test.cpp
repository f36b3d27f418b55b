// SPDX-License-Identifier: Apache-2.0
// BR-32, impossible layouts: said before anything is exchanged, on all ranks, with all numbers and what would fit.
#include "faults/pipeline_cases.hpp"

#include <weft/plan/fit_world.hpp>

#include <weft/graph/models.hpp>

using namespace weft;
using namespace weft::test;

namespace {

// What each rank of a world of another size than the plan's is told.
template <Index tensor, class Strategy>
std::vector<std::string> told(const Strategy& strategy, int world) {
  using Model = Sequential<Linear<6, 12>, Gelu, Linear<12, 6>>;
  const PlanData plan = plan_at_start<Model, DeepRecipe>(strategy, {.global = 8, .micro = 1});
  std::vector<std::string> out(std::size_t(world), "");
  launch(world, [&](ThreadCommunicator& comm) {
    using TheEngine = EngineOf<Model, SoftmaxCrossEntropy<>, double, Sgd, ThreadCommunicator>;
    try {
      TheEngine engine(plan, model_code<typename TheEngine::Kernels, double, Model, SoftmaxCrossEntropy<>, tensor>(), comm, Sgd{});
    } catch (const Error& error) { out[std::size_t(comm.rank())] = error.what(); }
  });
  return out;
}

}  // namespace

TEST_CASE("br32_a_world_of_8_with_3_tensor_ranks_is_refused_on_all_ranks") {
  const auto strategy = mesh(DataParallel{.ranks = 8 / 3}, TensorParallel{.ranks = 3});
  for (const std::string& text : told<3>(strategy, 8)) {
    CHECK(text.find("weft[engine.ranks]") == 0);
    CHECK(text.find("plan 6 = 2 data x 1 pipe x 3 tensor, world 8; the nearest that fits: 4 data x 1 pipe x 2 tensor") !=
          std::string::npos);
  }
}

TEST_CASE("br32_a_product_that_is_not_the_world_is_refused_on_all_ranks") {
  const auto strategy = mesh(DataParallel{.ranks = 2}, Pipeline<>{.stages = 1}, TensorParallel{.ranks = 2});
  for (const int world : {2, 6, 8})
    for (const std::string& text : told<2>(strategy, world)) {
      CHECK(text.find("weft[engine.ranks]") == 0);
      CHECK(text.find("plan 4 = 2 data x 1 pipe x 2 tensor, world " + std::to_string(world)) != std::string::npos);
    }
  CHECK_THROWS_WITH_AS(require_world(lower_strategy(strategy), 6),
                       doctest::Contains("weft[mesh.world]: the product of a mesh's degrees is the number of ranks that there are"), Error);
  CHECK_THROWS_WITH_AS(
      require_world(lower_strategy(strategy), 6),
      doctest::Contains("(plan 4 = 2 data x 1 pipe x 2 tensor, world 6; the nearest that fits: 3 data x 1 pipe x 2 tensor)"), Error);
  CHECK_NOTHROW(require_world(lower_strategy(strategy), 4));
}

TEST_CASE("br32_heads_that_the_tensor_ranks_do_not_divide_are_named") {
  using Text = Gpt<GptOptions{.vocabulary = 12, .sequence = 4, .width = 12, .heads = 6, .layers = 1}>;
  const auto plan = [](Index tensor) {
    return plan_at_start<Text, DeepRecipe>(mesh(TensorParallel{.ranks = tensor}), {.global = 2, .micro = 1, .sequence = 4});
  };
  CHECK_THROWS_WITH_AS(plan(4), doctest::Contains("weft[tensor.divides]"), Error);
  CHECK_THROWS_WITH_AS(plan(4), doctest::Contains("6, tensor ranks 4, possible: 1, 2, 3, 6"), Error);
  CHECK_NOTHROW(plan(3));
}

TEST_CASE("br32_degrees_of_one_everywhere_work") {
  const auto strategy = mesh(DataParallel{.ranks = 1}, Pipeline<>{.stages = 1}, TensorParallel{.ranks = 1});
  CHECK(told<1>(strategy, 1) == std::vector<std::string>{""});
  CHECK_NOTHROW(require_world(lower_strategy(strategy), 1));
}

TEST_CASE("br32_the_nearest_degrees_fill_the_world") {
  for (Index data = 1; data <= 5; ++data)
    for (Index stages = 1; stages <= 5; ++stages)
      for (Index tensor = 1; tensor <= 5; ++tensor) {
        const StrategyData strategy =
            lower_strategy(mesh(DataParallel{.ranks = data}, Pipeline<>{.stages = stages}, TensorParallel{.ranks = tensor}));
        for (Index world = 1; world <= 24; ++world) {
          const WorldDegrees near = nearest_degrees(strategy, world);
          CHECK(near.data * near.stages * near.tensor == world);
          if (world == data * stages * tensor) CHECK(near == WorldDegrees{data, stages, tensor});
        }
      }
}
