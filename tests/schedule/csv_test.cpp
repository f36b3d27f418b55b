// SPDX-License-Identifier: Apache-2.0
// Schedules through PyTorch's csv syntax and back; what is wrong with a cell is said with its place.
#include <doctest/doctest.h>

#include <weft/schedule/csv.hpp>
#include <weft/schedule/gpipe.hpp>
#include <weft/schedule/interleaved.hpp>
#include <weft/schedule/one_forward_one_backward.hpp>
#include <weft/schedule/verify.hpp>
#include <weft/schedule/zero_bubble.hpp>

using namespace weft;

namespace {

void goes_round(const ScheduleTable& table) {
  const ScheduleTable with_messages = add_communication(table);
  for (const ScheduleTable& each : {table, with_messages})
    for (const IdleCells idle : {IdleCells::no, IdleCells::yes}) {
      const std::string text = schedule_to_csv(each, idle);
      const ScheduleTable back = schedule_from_csv(text);
      CHECK_MESSAGE((back.shape == each.shape && back.stage_of_chunk == each.stage_of_chunk && back.rows == each.rows), text);
      CHECK(verify(back).rule == ScheduleRule::none);
    }
}

}  // namespace

TEST_CASE("every_schedule_comes_back_as_it_was") {
  for (int p : {1, 2, 3, 4, 8})
    for (int m : {1, 2, 3, p, 2 * p + 1, 4 * p}) {
      goes_round(schedule::GPipe::table({p, 1, m}));
      goes_round(schedule::OneForwardOneBackward::table({p, 1, m}));
      goes_round(schedule::ZeroBubbleH1::table({p, 1, m}));
      goes_round(schedule::ZeroBubbleH2::table({p, 1, m}));
      goes_round(schedule::ZeroBubbleV::table({p, 2, m}));
      for (int v : {1, 2, 3}) goes_round(schedule::Interleaved::table({p, v, m}));
    }
}

TEST_CASE("text_is_that_of_pytorch") {
  CHECK(schedule_to_csv(schedule::OneForwardOneBackward::table({2, 1, 2})) == "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  // Rank 1 waits for 0F0, rank 0 for 1B0.
  CHECK(schedule_to_csv(schedule::OneForwardOneBackward::table({2, 1, 2}), IdleCells::yes) == "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1\n");
  CHECK(schedule_to_csv(add_communication(schedule::OneForwardOneBackward::table({2, 1, 1}))) ==
        "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
  // Written by csv.writer: carriage returns; with what concerns sharded parameters, two actions in a cell, idle cells, blanks.
  const ScheduleTable table =
      schedule_from_csv("0UNSHARD,0F0,, 0F1 ,(0F2;0B0)OVERLAP_F_B,0B1,0I2,0W2,0REDUCE_GRAD,0RESHARD\r\n1F0,1B0,1F1,1B1,1F2,1B2\r\n");
  CHECK(table.shape == ScheduleShape{2, 1, 3});
  CHECK(schedule_to_csv(table) == "0UNSHARD,0F0,0F1,0F2,0B0,0B1,0I2,0W2,0REDUCE_GRAD,0RESHARD\n1F0,1B0,1F1,1B1,1F2,1B2\n");
  CHECK(verify(table).rule == ScheduleRule::none);
}

TEST_CASE("chunks_lie_where_they_go_forward") {
  const ScheduleTable v = schedule_from_csv("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n");
  CHECK(v.shape == ScheduleShape{2, 2, 1});
  CHECK(v.stage_of_chunk == std::vector<int>{0, 1, 1, 0});
}

TEST_CASE("what_is_wrong_is_named_with_its_place") {
  const auto refused = [](const char* text, const char* id, const char* why) {
    CHECK_THROWS_WITH_AS(schedule_from_csv(text), doctest::Contains(id), Error);
    CHECK_THROWS_WITH_AS(schedule_from_csv(text), doctest::Contains(why), Error);
  };
  refused("0F0,0B0\n1F0,1X0\n", "weft[schedule.csv]", "(line 2, cell 2: \"1X0\"; expected one of F, B, I, W");
  refused("0F0,F1\n", "weft[schedule.csv]", "(line 1, cell 2: \"F1\"; expected the number of a chunk");
  refused("0F0,0B\n", "weft[schedule.csv]", "(line 1, cell 2: \"0B\"; expected the number of a micro-batch");
  refused("0F0,0B0x\n", "weft[schedule.csv]", "(line 1, cell 2: \"0B0x\"; expected nothing behind the micro-batch");
  refused("0F0,0UNSHARD1\n", "weft[schedule.csv]", "expected nothing behind the kind");
  refused("0F0,(0F1;0B0)\n", "weft[schedule.csv]", "expected OVERLAP_F_B");
  refused("0F0,0B1234567\n", "weft[schedule.csv]", "at most six digits");
  refused("", "weft[schedule.csv]", "empty");
  refused("\n\n", "weft[schedule.csv]", "empty");
  refused("0F0,0B0\n1F0,2F0,1B0,2B0\n", "weft[schedule.csv_chunks]", "(ranks 2, chunks 3)");
  refused("0F0,0B0,1B0\n,\n", "weft[schedule.csv_chunks]", "(chunk 1 of 2)");
}

TEST_CASE("files_that_cannot_be_used_are_named") {
  CHECK_THROWS_WITH_AS(read_schedule_csv("no/such/file.csv"), doctest::Contains("weft[schedule.file]"), Error);
  CHECK_THROWS_WITH_AS(write_schedule_file("no/such/file.csv", "0F0"), doctest::Contains("no/such/file.csv"), Error);
}
