// SPDX-License-Identifier: Apache-2.0
// BR-18, both sides send first: exchanges of 1 B, 64 KiB and 64 MiB both ways at once; rings of 3, 4 and 5; a pipeline that goes from stage
// 0 to stage 2 and back to stage 1. All end.
#include "faults/pipeline_cases.hpp"

using namespace weft;
using namespace weft::test;

namespace {

// Every rank sends `count` bytes to the next and gets as many from the one before; on two ranks both are the same one.
void ring(int ranks, Index count) {
  launch(ranks, [&](ThreadCommunicator& comm) {
    const int next = (comm.rank() + 1) % ranks, before = (comm.rank() + ranks - 1) % ranks;
    const auto value = [](int rank, Index i) { return std::int8_t((i * 7 + rank * 31) % 127); };
    std::vector<std::int8_t> sent(std::size_t(count), 0), received(std::size_t(count), -1);
    for (Index i = 0; i < count; ++i) sent[std::size_t(i)] = value(comm.rank(), i);
    const Outgoing out = outgoing(sent.data(), count, next);
    const Incoming in = incoming(received.data(), count, before);
    comm.exchange({&out, 1}, {&in, 1});
    Index wrong = 0;
    for (Index i = 0; i < count; ++i) wrong += received[std::size_t(i)] != value(before, i);
    if (wrong > 0) throw Error("test.exchange", text_of(wrong, " bytes are wrong on rank ", comm.rank()));
  });
}

// 1F1B over stages that are visited out of order: 0, 2, 1, 3. Each chunk is run as if it were the stage of its number.
struct Skipping {
  static constexpr const char* name = "skipping";
  static constexpr int version = 1;
  static constexpr int order[] = {0, 2, 1, 3};
  static constexpr ScheduleTable table(ScheduleShape shape) {
    if (shape.stages != 4) return {};
    ScheduleTable out = schedule::OneForwardOneBackward::table(shape);
    std::vector<ActionRow> rows(4);
    for (int c = 0; c < 4; ++c) {
      out.stage_of_chunk[std::size_t(c)] = order[c];
      rows[std::size_t(order[c])] = out.rows[std::size_t(c)];
    }
    out.rows = rows;
    return out;
  }
};

}  // namespace

TEST_CASE("br18_exchanges_both_ways_at_once_end") {
  for (const Index count : {Index(1), 64 * KiB, 64 * MiB}) CHECK_NOTHROW(ring(2, count));
}

TEST_CASE("br18_rings_end") {
  for (int ranks : {3, 4, 5})
    for (const Index count : {Index(1), 64 * KiB, 4 * MiB}) CHECK_NOTHROW(ring(ranks, count));
}

TEST_CASE("br18_a_pipeline_with_links_over_a_stage_ends_and_is_right") {
  for (const Index micros : {1, 3, 8}) {
    const Batch batch{.global = micros, .micro = 1, .sequence = 2};
    const std::vector<Index> lengths(std::size_t(micros), 2);
    const PlanData plan = plan_at_start<Deep, DeepRecipe>(mesh(Pipeline<Skipping>{.stages = 4}), batch);
    CHECK(plan.chunks[1].stage == 2);  // what stage 0 sends goes to stage 2
    compare_gradients(gradients_of<Deep>(plan, lengths),
                      gradients_of<Deep>(plan_at_start<Deep, DeepRecipe>(mesh(DataParallel{}), batch), lengths), 1e-10,
                      std::to_string(micros) + " micro-batches");
  }
}
