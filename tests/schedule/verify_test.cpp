// SPDX-License-Identifier: Apache-2.0
// Each rule of a schedule, broken once: where it is said to be broken, and what a stage waits for.
#include <doctest/doctest.h>

#include <weft/schedule/gpipe.hpp>
#include <weft/schedule/interleaved.hpp>
#include <weft/schedule/one_forward_one_backward.hpp>
#include <weft/schedule/text.hpp>
#include <weft/schedule/verify.hpp>

using namespace weft;

namespace {

// Rows: 0F0 0F1 0B0 0F2 0B1 0B2 · 1F0 1B0 1F1 1B1 1F2 1B2.
ScheduleTable plain() { return schedule::OneForwardOneBackward::table({2, 1, 3}); }

void is(const ScheduleTable& table, ScheduleRule rule, const char* text) {
  const ScheduleFault fault = verify(table);
  CHECK(rule_text(fault.rule) == std::string(rule_text(rule)));
  CHECK(fault_text(fault) == text);
}

std::size_t place_of(const ActionRow& row, const Action& action) {
  std::size_t at = 0;
  while (at < row.size() && !(row[at] == action)) ++at;
  return at;
}

}  // namespace

TEST_CASE("a_fault_is_named_with_its_place") {
  CHECK(verify(plain()).rule == ScheduleRule::none);
  ScheduleTable table = plain();
  table.rows.pop_back();
  is(table, ScheduleRule::shape, "rows or stage 1, chunks or chunk 2");
  table = plain(), table.stage_of_chunk[1] = 2;
  is(table, ScheduleRule::shape, "rows or stage 2, chunks or chunk 1");
  table = plain(), table.rows[0][3].micro = 3;
  is(table, ScheduleRule::action, "stage 0, position 3: 0F3");
  table = plain(), table.rows[0][3].chunk = 1;
  is(table, ScheduleRule::stage, "stage 0, position 3: 1F2");
  table = plain(), table.rows[0][3].micro = 1;
  is(table, ScheduleRule::twice, "stage 0, position 3: 0F1");
  table = plain(), table.rows[0].push_back({ActionKind::backward_weight, 0, 1});  // a backward has both parts in it
  is(table, ScheduleRule::twice, "stage 0, position 6: 0W1");
  table = plain(), table.rows[1].erase(5);
  is(table, ScheduleRule::missing, "stage 1, position 5: 1I2");
  table = plain(), std::swap(table.rows[1][2], table.rows[1][3]);
  is(table, ScheduleRule::order, "stage 1, position 2: 1B1 waits for 1F1");
}

TEST_CASE("a_deadlock_names_a_stage_of_the_circle_and_what_it_waits_for") {
  // Stage 1 wants micro-batch 1 first, which stage 0 begins only after the backward of micro-batch 0 has come back.
  ScheduleTable table = plain();
  std::swap(table.rows[0][1], table.rows[0][2]);  // 0F0 0B0 0F1
  const ActionRow row = {{ActionKind::forward, 1, 1},  {ActionKind::forward, 1, 0}, {ActionKind::backward, 1, 0},
                         {ActionKind::backward, 1, 1}, {ActionKind::forward, 1, 2}, {ActionKind::backward, 1, 2}};
  table.rows[1] = row;
  is(table, ScheduleRule::deadlock, "stage 0, position 1: 0B0 waits for 1B0");

  // On four stages the last one is at fault; the others wait because of it.
  ScheduleTable four = schedule::GPipe::table({4, 1, 2});
  std::swap(four.rows[3][1], four.rows[3][2]);
  CHECK(verify(four).rule == ScheduleRule::none);
  std::swap(four.rows[3][0], four.rows[3][1]);
  is(four, ScheduleRule::order, "stage 3, position 0: 3B0 waits for 3F0");
}

TEST_CASE("messages_have_two_ends") {
  const ScheduleTable good = add_communication(plain());
  CHECK(verify(good).rule == ScheduleRule::none);
  ScheduleTable table = good;
  table.rows[1].erase(place_of(table.rows[1], {ActionKind::receive_forward, 1, 1}));
  const std::size_t sent = place_of(table.rows[0], {ActionKind::send_forward, 0, 1});
  is(table, ScheduleRule::message, ("stage 0, position " + std::to_string(sent) + ": 0SEND_F1 waits for 1RECV_F1").c_str());
  table = good;
  table.rows[1].erase(place_of(table.rows[1], {ActionKind::send_backward, 1, 2}));
  const std::size_t received = place_of(table.rows[0], {ActionKind::receive_backward, 0, 2});
  is(table, ScheduleRule::message, ("stage 0, position " + std::to_string(received) + ": 0RECV_B2 waits for 1SEND_B2").c_str());
  table = good, table.rows[1].push_back({ActionKind::send_forward, 1, 0});  // the last chunk sends to nobody
  is(table, ScheduleRule::action, ("stage 1, position " + std::to_string(table.rows[1].size() - 1) + ": 1SEND_F0").c_str());
}

// Stage 0 sends micro-batch 1 after the gradient of micro-batch 0 has come; stage 1 sends that gradient after micro-batch 1 has come. Each
// end of a message is there, computations alone would run, and both wait for ever.
TEST_CASE("messages_can_wait_for_each_other") {
  using enum ActionKind;
  ScheduleTable table = schedule::OneForwardOneBackward::table({2, 1, 2});
  table.rows[0] = {{forward, 0, 0},  {send_forward, 0, 0}, {forward, 0, 1},          {receive_backward, 0, 0},
                   {backward, 0, 0}, {send_forward, 0, 1}, {receive_backward, 0, 1}, {backward, 0, 1}};
  table.rows[1] = {{receive_forward, 1, 0}, {forward, 1, 0},       {backward, 1, 0}, {receive_forward, 1, 1},
                   {forward, 1, 1},         {send_backward, 1, 0}, {backward, 1, 1}, {send_backward, 1, 1}};
  is(table, ScheduleRule::deadlock, "stage 0, position 3: 0RECV_B0 waits for 1SEND_B0");
  // Posted together with the receive, the gradient goes out.
  table.rows[1] = {{receive_forward, 1, 0}, {forward, 1, 0}, {backward, 1, 0}, {receive_forward, 1, 1},
                   {send_backward, 1, 0},   {forward, 1, 1}, {backward, 1, 1}, {send_backward, 1, 1}};
  CHECK(verify(table).rule == ScheduleRule::none);
}
