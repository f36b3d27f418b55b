// SPDX-License-Identifier: Apache-2.0
// BR-32, impossible layouts: said before anything is exchanged, on all ranks, with all numbers and what would fit.
#include "faults/pipeline_cases.hpp"

#include <weft/plan/fit_world.hpp>

#include <weft/graph/models.hpp>
#include <weft/run/trainer.hpp>

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
  CHECK_THROWS_WITH_AS(plan(4), doctest::Contains("6, tensor ranks 4, nearest: 3 or 6"), Error);
  CHECK_NOTHROW(plan(3));
}

TEST_CASE("br32_ranks_that_do_not_fit_an_open_axis_are_named_before_they_are_started") {
  const auto fit = [](const auto& strategy, Index world) { return fit_to_world(strategy, world).num_ranks(); };
  const auto open = mesh(DataParallel{.ranks = rest_of_world}, ModelParallel<>{.pipeline = 1, .tensor = 3});
  CHECK(fit(open, 9) == 9);
  CHECK_THROWS_WITH_AS(fit(open, 8),
                       doctest::Contains("(world 8, data open x pipe 1 x tensor 3, nearest: tensor 2 or 4, or a world of 6 or 9)"), Error);
  CHECK_THROWS_WITH_AS(fit(mesh(DataParallel{.ranks = 2}, TensorParallel{.ranks = 2}, Pipeline<>{.stages = 1}), 8),
                       doctest::Contains("weft[mesh.world]"), Error);
  CHECK_THROWS_WITH_AS(fit(mesh(DataParallel{.ranks = 2}, TensorParallel{.ranks = 2}, Pipeline<>{.stages = 1}), 8),
                       doctest::Contains("(world 8, data 2 x tensor 2 x pipe 1 = 4, nearest: data 4, tensor 4, pipe 2, or a world of 4)"),
                       Error);
  CHECK_THROWS_WITH_AS(fit(mesh(DataParallel{.ranks = rest_of_world}, Pipeline<>{.stages = 0}), 8), doctest::Contains("pipe 0"), Error);
}

// The degrees of a plan whose data axis is open come from the world; every rank that cannot be says the same.
TEST_CASE("br32_a_plan_with_an_open_axis_takes_any_world_that_fits") {
  using Model = Sequential<Linear<6, 12>, Gelu, Linear<12, 6>>;
  using Open = Plan<Model, mesh(DataParallel{.ranks = rest_of_world}, Pipeline<>{.stages = 2}), Batch{.global = 8, .micro = 1}, DeepRecipe>;
  static_assert(Open::bytes_per_rank({.data = 4}) == Open::At<MeshSizes{.data = 4}>::bytes_per_rank(), "bytes need sizes");
  static_assert(Open::At<MeshSizes{.data = 4}>::num_ranks == 8, "a plan like any other");
  for (const int world : {2, 4, 8}) CHECK(Open::data(world).strategy.data() == world / 2);
  CHECK(fingerprint(Open::data(8)) == Open::At<MeshSizes{.data = 4}>::fingerprint());
  CHECK_THROWS_WITH_AS(Open::data(3), doctest::Contains("world 3, data open x pipe 2, nearest: pipe 1 or 3, or a world of 2 or 4"), Error);
  CHECK_THROWS_WITH_AS(Open::data(6), doctest::Contains("global 8, ranks 3, micro 1, nearest global: 6 or 9"), Error);
  CHECK_THROWS_WITH_AS(Open::bytes_per_rank({.data = 3}), doctest::Contains("weft[batch.divides]"), Error);
  CHECK_THROWS_WITH_AS(Open::bytes_per_rank({}), doctest::Contains("weft[mesh.open]"), Error);
  std::vector<std::string> said(3);
  launch(3, [&](ThreadCommunicator& comm) {
    try {
      make_trainer<Open>(comm, Sgd{});
    } catch (const Error& error) { said[std::size_t(comm.rank())] = error.what(); }
  });
  for (const std::string& text : said) CHECK(text.find("weft[mesh.world]") == 0);
  launch(4, [](ThreadCommunicator& comm) { CHECK_NOTHROW(make_trainer<Open>(comm, Sgd{})); });
}

TEST_CASE("br32_numbers_that_divide_name_the_nearest_that_do") {
  const auto plan = [](const auto& strategy, Index global) {
    return plan_at_start<Deep, DeepRecipe>(strategy, {.global = global, .micro = 1});
  };
  CHECK_THROWS_WITH_AS(plan(mesh(DataParallel{.ranks = 8, .shard = Shard::optimizer, .shard_ranks = 3}), 8),
                       doctest::Contains("shard_ranks 3, data ranks 8, nearest: 2 or 4"), Error);
  CHECK_THROWS_WITH_AS(plan(mesh(Pipeline<schedule::Interleaved>{.stages = 16, .chunks = 2}), 16),
                       doctest::Contains("stages 16, chunks a stage 2, units 10, nearest: 5 stages"), Error);
  CHECK_THROWS_WITH_AS(plan(mesh(DataParallel{.ranks = 3}), 8), doctest::Contains("nearest global: 6 or 9"), Error);
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
