// SPDX-License-Identifier: Apache-2.0
// BR-23, a pipeline with changing shapes: lengths 8, 5, 8, 3 through 2 and 4 stages, also with two data and two tensor ranks, within a step
// and from step to step; a length that the plan has no room for is an error that names it.
#include "faults/pipeline_cases.hpp"

#include <weft/graph/models.hpp>

using namespace weft;
using namespace weft::test;

namespace {

using Text = Gpt<GptOptions{.vocabulary = 12, .sequence = 8, .width = 8, .heads = 2, .layers = 3}>;
constexpr Batch batch{.global = 4, .micro = 1, .sequence = 8};
const std::vector<Index> lengths{8, 5, 8, 3};

template <class Strategy>
PlanData plan_of(const Strategy& strategy, const Batch& with = batch) {
  return plan_at_start<Text, DeepRecipe>(strategy, with);
}

const GradientsOf& one_rank() {
  static const GradientsOf one = gradients_of<Text>(plan_of(mesh(DataParallel{})), lengths, 2);
  return one;
}

}  // namespace

TEST_CASE("br23_lengths_change_within_a_step") {
  for (const Index stages : {2, 4}) {
    const std::string what = std::to_string(stages) + " stages";
    compare_gradients(gradients_of<Text>(plan_of(mesh(Pipeline<>{.stages = stages})), lengths, 2), one_rank(), 1e-10, what);
    compare_gradients(gradients_of<Text>(plan_of(mesh(Pipeline<schedule::ZeroBubbleH2>{.stages = stages})), lengths, 2), one_rank(), 1e-10,
                      what + ", zero bubble");
    compare_gradients(gradients_of<Text>(plan_of(mesh(DataParallel{.ranks = 2}, Pipeline<>{.stages = stages})), lengths, 2), one_rank(),
                      1e-10, what + ", 2 data ranks");
  }
}

TEST_CASE("br23_lengths_change_with_tensor_ranks") {
  for (const Index stages : {2, 4})
    compare_gradients(gradients_of<Text, 2>(plan_of(mesh(Pipeline<>{.stages = stages}, TensorParallel{.ranks = 2})), lengths, 2),
                      one_rank(), 1e-10, std::to_string(stages) + " stages, 2 tensor ranks");
  compare_gradients(
      gradients_of<Text, 2>(plan_of(mesh(DataParallel{.ranks = 2}, Pipeline<>{.stages = 2}, TensorParallel{.ranks = 2})), lengths, 2),
      one_rank(), 1e-10, "2 data, 2 stages, 2 tensor ranks");
}

// Eight after three, three after eight: nothing of the step before is left.
TEST_CASE("br23_lengths_change_from_step_to_step") {
  const Batch single{.global = 1, .micro = 1, .sequence = 8};
  for (const Index length : lengths)
    for (const Index stages : {2, 4})
      compare_gradients(gradients_of<Text>(plan_of(mesh(Pipeline<>{.stages = stages}), single), {length}),
                        gradients_of<Text>(plan_of(mesh(DataParallel{}), single), {length}), 1e-10, std::to_string(length));
}

TEST_CASE("br23_a_length_beyond_the_plan_is_an_error") {
  CHECK_THROWS_WITH_AS(gradients_of<Text>(plan_of(mesh(Pipeline<>{.stages = 2}), {.global = 4, .micro = 1, .sequence = 5}), lengths),
                       doctest::Contains("8"), Error);
}
