// SPDX-License-Identifier: Apache-2.0
// The schedules of the library through the suite that users' schedules go through; and schedules that must not get through it.
#include "contract/schedule_suite.hpp"

#include <weft/schedule/gpipe.hpp>
#include <weft/schedule/interleaved.hpp>
#include <weft/schedule/one_forward_one_backward.hpp>
#include <weft/schedule/zero_bubble.hpp>

using namespace weft;
using weft::contract::run_schedule_suite;
using weft::contract::ScheduleSuite;

namespace {

// The least that a schedule can be: an archetype of the concept.
struct Least {
  static constexpr const char* name = "least";
  static constexpr int version = 1;
  static constexpr ScheduleTable table(ScheduleShape shape) {
    ScheduleTable out = empty_table(shape);
    for (int s = 0; s < shape.stages; ++s)
      for (int m = 0; m < shape.micros; ++m) {
        out.rows[std::size_t(s)].push_back({ActionKind::forward, s, m});
        out.rows[std::size_t(s)].push_back({ActionKind::backward, s, m});
      }
    return out;
  }
};
static_assert(PipelineSchedule<Least>);
static_assert(!PipelineSchedule<int>);

// 1F1B with one fault from 4 micro-batches on.
template <int fault>
struct Broken {
  static constexpr const char* name = "broken";
  static constexpr int version = 1;
  static constexpr ScheduleTable table(ScheduleShape shape) {
    ScheduleTable out = schedule::OneForwardOneBackward::table(shape);
    if (shape.micros < 4 || shape.stages != 2) return out;
    ActionRow& row = out.rows[1];
    if (fault == 0) std::swap(row[0], row[1]);
    if (fault == 1) row.erase(4);
    if (fault == 2) out.stage_of_chunk = {0, 0};
    if (fault == 3) out.rows = {schedule::GPipe::table(shape).rows[0], schedule::GPipe::table(shape).rows[1]};
    if (fault == 4 && shape.micros >= 10) out = schedule::GPipe::table(shape);  // beyond what a window shows
    return out;
  }
};

int peak_of_1f1b(ScheduleShape shape, int stage) { return std::min(shape.micros, shape.stages - stage); }

}  // namespace

TEST_CASE("gpipe_conforms") { run_schedule_suite<schedule::GPipe>(); }
// [suite]
TEST_CASE("1f1b_conforms") { run_schedule_suite<schedule::OneForwardOneBackward>({.peak = peak_of_1f1b}); }
// [suite]
TEST_CASE("interleaved_conforms") {
  run_schedule_suite<schedule::Interleaved>({.peak = [](ScheduleShape shape, int stage) {
    const int p = shape.stages, v = shape.chunks_per_stage, most = (v - 1) * p + 2 * (p - 1 - stage) + 1, all = shape.micros * v;
    return shape.micros % p == 0 ? std::min(most, all) : all;  // without a multiple, groups are larger
  }});
}
TEST_CASE("zero_bubble_h1_conforms") { run_schedule_suite<schedule::ZeroBubbleH1>({.peak = peak_of_1f1b}); }
TEST_CASE("zero_bubble_h2_conforms") {
  run_schedule_suite<schedule::ZeroBubbleH2>(
      {.peak = [](ScheduleShape shape, int stage) { return std::min(shape.micros, 2 * (shape.stages - stage) - 1); }});
}
TEST_CASE("zero_bubble_v_conforms") {
  run_schedule_suite<schedule::ZeroBubbleV>({.peak = [](ScheduleShape shape, int) { return 2 * shape.stages; }});
}
TEST_CASE("the_archetype_conforms") {
  run_schedule_suite<Least>({.peak = [](ScheduleShape, int) { return 1; }});
}

TEST_CASE("the_suite_sees_faults") {
  const ScheduleSuite suite{.peak = peak_of_1f1b};
  CHECK_THROWS_WITH(contract::case_02_every_shape_is_proved<Broken<0>>(suite),
                    doctest::Contains("broken on 2 stages, 1 chunks a stage, 4 micro-batches: weft[schedule.order]"));
  CHECK_THROWS_WITH(contract::case_04_any_order_of_stages_ends<Broken<1>>(suite), doctest::Contains("not everything is computed"));
  CHECK_THROWS_WITH(contract::case_03_every_stage_holds_as_many_chunks<Broken<2>>({.max_stages = 0}), doctest::Contains("takes no shape"));
  CHECK_THROWS_WITH(contract::case_02_every_shape_is_proved<Broken<2>>(suite), doctest::Contains("weft[schedule.stage]"));
  CHECK_THROWS_WITH(contract::case_05_peaks_are_within_their_bound<Broken<3>>(suite), doctest::Contains("stage 0 holds 4"));
  CHECK_THROWS_WITH(contract::case_07_windows_tell_the_truth<Broken<4>>({}), doctest::Contains("a window of"));
}
