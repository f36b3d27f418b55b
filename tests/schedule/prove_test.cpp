// SPDX-License-Identifier: Apache-2.0
// What the compiler proves of a window is what is true of all micro-batches: static plans have the bytes, ledgers and fingerprints of plans
// that are made at start-up from the whole table.
#include <doctest/doctest.h>

#include <weft/plan.hpp>

using namespace weft;

namespace {

using Model = Sequential<Repeat<8, Linear<8, 8>>, Linear<8, 3>>;

template <class Schedule, Index chunks, Index micros>
void agrees() {
  CAPTURE(Schedule::name);
  CAPTURE(micros);
  using Train = Plan<Model, mesh(DataParallel{.ranks = 2, .shard = Shard::gradients}, Pipeline<Schedule>{.stages = 4, .chunks = chunks}),
                     Batch{.global = 2 * micros, .micro = 1}>;
  constexpr Memory memory = Train::memory();
  constexpr std::uint64_t print = Train::fingerprint();
  constexpr LedgerTotals first = Train::ledger(0), messages = Train::ledger(GroupKind::pipe, 2);
  const PlanData plan = Train::data();  // all of it
  CHECK(plan.fault.rule == PlanRule::none);
  CHECK(plan.stages[0].actions.size() > std::size_t(2 * micros));
  CHECK(memory.total() == plan.memory.total());
  CHECK(print == fingerprint(plan));
  LedgerTotals counted, counted_messages;
  for_each_call(plan, 0, [&](const LedgerEntry& entry) { add_entry(counted, entry); });
  for_each_call(plan, 2, [&](const LedgerEntry& entry) {
    if (entry.group == GroupKind::pipe) add_entry(counted_messages, entry);
  });
  CHECK(first == counted);
  CHECK(messages == counted_messages);
}

// Up to a number of micro-batches 1F1B, beyond it GPipe: no window shows that.
struct Turns {
  static constexpr const char* name = "turns";
  static constexpr int version = 1;
  static constexpr ScheduleTable table(ScheduleShape shape) {
    if (shape.micros > 30) return schedule::GPipe::table(shape);
    return schedule::OneForwardOneBackward::table(shape);
  }
};

}  // namespace

static_assert(proof_window({4, 1, 8}).micros == 8);
static_assert(proof_window({4, 1, 64}).micros == 16);
static_assert(proof_window({4, 1, 65}).micros == 17);  // the same remainder by the stages

TEST_CASE("static_plans_of_few_micro_batches_are_those_made_at_start_up") {
  agrees<schedule::GPipe, 1, 3>();
  agrees<schedule::ZeroBubbleV, 1, 6>();
}

TEST_CASE("static_plans_of_many_micro_batches_are_those_made_at_start_up") {
  agrees<schedule::GPipe, 1, 50>();
  agrees<schedule::OneForwardOneBackward, 1, 50>();
  agrees<schedule::ZeroBubbleH1, 1, 50>();
  agrees<schedule::ZeroBubbleH2, 1, 50>();
  agrees<schedule::ZeroBubbleV, 1, 50>();
  agrees<schedule::Interleaved, 2, 51>();
}

TEST_CASE("a_window_that_does_not_tell_the_truth_is_found_at_start_up") {
  using Train = Plan<Model, mesh(Pipeline<Turns>{.stages = 4}), Batch{.global = 50, .micro = 1}>;
  static_assert(Train::bytes_per_rank() > 0);
  CHECK_THROWS_WITH_AS(require_valid(Train::data()), doctest::Contains("weft[schedule.window]"), Error);
  CHECK_NOTHROW(plan_at_start<Model>(mesh(Pipeline<Turns>{.stages = 4}), {.global = 50, .micro = 1}));
}

TEST_CASE("a_wrong_schedule_does_not_start") {
  ScheduleTable table = schedule::OneForwardOneBackward::table({2, 1, 200});
  CHECK_NOTHROW(plan_at_start<Model>(mesh(TablePipeline{.table = &table}), {.global = 200, .micro = 1}));
  std::swap(table.rows[1][300], table.rows[1][301]);  // behind any window
  CHECK_THROWS_WITH_AS(plan_at_start<Model>(mesh(TablePipeline{.table = &table}), {.global = 200, .micro = 1}),
                       doctest::Contains("weft[schedule.order]"), Error);
  CHECK_THROWS_WITH_AS(plan_at_start<Model>(mesh(TablePipeline{.table = &table}), {.global = 200, .micro = 1}),
                       doctest::Contains("(stage 1, position 300: 1B150 waits for 1F150, of 200 micro-batches)"), Error);
}
