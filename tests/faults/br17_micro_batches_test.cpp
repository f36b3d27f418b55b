// SPDX-License-Identifier: Apache-2.0
// BR-17, fewer micro-batches than stages: 4 stages, 1, 2, 3, 4, 5 and 9 micro-batches, every schedule, and one that refuses.
#include "faults/pipeline_cases.hpp"

#include <weft/schedule/csv.hpp>

using namespace weft;
using namespace weft::test;

namespace {

constexpr Index counts[] = {1, 2, 3, 4, 5, 9};

template <class Strategy>
void equals_one_rank(const Strategy& strategy, Index micros, const std::string& what) {
  const Batch batch{.global = micros, .micro = 1, .sequence = 2};
  const std::vector<Index> lengths(std::size_t(micros), 2);
  const GradientsOf one = gradients_of<Deep>(plan_at_start<Deep, DeepRecipe>(mesh(DataParallel{}), batch), lengths, 2);
  const GradientsOf found = gradients_of<Deep>(plan_at_start<Deep, DeepRecipe>(strategy, batch), lengths, 2);
  compare_gradients(found, one, 1e-10, what + ", " + std::to_string(micros) + " micro-batches");
}

template <class Schedule>
void works_for_every_count(Index chunks = 1) {
  for (const Index micros : counts) equals_one_rank(mesh(Pipeline<Schedule>{.stages = 4, .chunks = chunks}), micros, Schedule::name);
}

// Takes multiples of its stages only, and is the only one that does.
struct Strict : schedule::Interleaved {
  static constexpr const char* name = "strict";
  static constexpr ScheduleTable table(ScheduleShape shape) {
    if (shape.micros % shape.stages != 0) return {};
    return schedule::Interleaved::table(shape);
  }
};

}  // namespace

TEST_CASE("br17_gpipe_takes_any_number_of_micro_batches") { works_for_every_count<schedule::GPipe>(); }
TEST_CASE("br17_1f1b_takes_any_number_of_micro_batches") { works_for_every_count<schedule::OneForwardOneBackward>(); }
TEST_CASE("br17_interleaved_takes_any_number_of_micro_batches") { works_for_every_count<schedule::Interleaved>(2); }
TEST_CASE("br17_zero_bubble_h1_takes_any_number_of_micro_batches") { works_for_every_count<schedule::ZeroBubbleH1>(); }
TEST_CASE("br17_zero_bubble_h2_takes_any_number_of_micro_batches") { works_for_every_count<schedule::ZeroBubbleH2>(); }
TEST_CASE("br17_zero_bubble_v_takes_any_number_of_micro_batches") { works_for_every_count<schedule::ZeroBubbleV>(); }

// Where a chunk ends with a layer whose weight part needs the gradient that the next chunk sends.
TEST_CASE("br17_zero_bubble_keeps_the_gradients_that_were_received") {
  using Plain = Sequential<Linear<5, 8>, Repeat<8, Residual<Linear<8, 8>>>, Linear<8, 3>>;
  for (const Index micros : counts) {
    const Batch batch{.global = micros, .micro = 1, .sequence = 2};
    const std::vector<Index> lengths(std::size_t(micros), 2);
    const GradientsOf one = gradients_of<Plain>(plan_at_start<Plain, DeepRecipe>(mesh(DataParallel{}), batch), lengths);
    compare_gradients(
        gradients_of<Plain>(plan_at_start<Plain, DeepRecipe>(mesh(Pipeline<schedule::ZeroBubbleH2>{.stages = 4}), batch), lengths), one,
        1e-10, "H2");
    compare_gradients(
        gradients_of<Plain>(plan_at_start<Plain, DeepRecipe>(mesh(Pipeline<schedule::ZeroBubbleV>{.stages = 4}), batch), lengths), one,
        1e-10, "V");
  }
}

TEST_CASE("br17_a_schedule_that_needs_a_multiple_refuses_with_both_numbers") {
  for (const Index micros : counts) {
    const auto plan = [&] {
      return plan_at_start<Deep, DeepRecipe>(mesh(Pipeline<Strict>{.stages = 4, .chunks = 2}),
                                             {.global = micros, .micro = 1, .sequence = 2});
    };
    if (micros % 4 == 0) {
      CHECK_NOTHROW(plan());
      continue;
    }
    CHECK_THROWS_WITH_AS(plan(), doctest::Contains("weft[schedule.shape_refused]"), Error);
    CHECK_THROWS_WITH_AS(plan(), doctest::Contains(("stages 4, micro-batches " + std::to_string(micros)).c_str()), Error);
  }
}

// A table from text runs like any other, and is refused with both numbers if it does not fit the batch.
TEST_CASE("br17_tables_from_text_run") {
  for (const Index micros : counts) {
    const ScheduleTable table = schedule_from_csv(schedule_to_csv(schedule::ZeroBubbleV::table({4, 2, int(micros)})));
    equals_one_rank(mesh(TablePipeline{.table = &table}), micros, "table");
    const ScheduleTable with_messages =
        schedule_from_csv(schedule_to_csv(add_communication(schedule::OneForwardOneBackward::table({4, 1, int(micros)}))));
    equals_one_rank(mesh(TablePipeline{.table = &with_messages}), micros, "table with messages");
    CHECK_THROWS_WITH_AS((plan_at_start<Deep, DeepRecipe>(mesh(TablePipeline{.table = &table}), {.global = 7, .micro = 1, .sequence = 2})),
                         doctest::Contains(("(table " + std::to_string(micros) + ", rank 7)").c_str()), Error);
  }
}
