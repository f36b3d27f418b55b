// SPDX-License-Identifier: Apache-2.0
// A schedule as a table: one row of actions a stage. And what a type of schedule is.
//
//   struct MySchedule {
//     static constexpr const char* name = "mine";
//     static constexpr int version = 1;
//     static constexpr weft::ScheduleTable table(weft::ScheduleShape shape);   // compute actions only: messages are added
//     static constexpr bool interleaves = true;   // optional: takes Pipeline::chunks; without it a stage has one chunk
//     static constexpr int chunks = 2;            // optional: always so many
//   };
#pragma once

#include <concepts>
#include <vector>

#include "weft/base/constexpr_vector.hpp"
#include "weft/schedule/action.hpp"

namespace weft {

struct ScheduleShape {
  int stages = 1;            // ranks along the pipeline
  int chunks_per_stage = 1;  // parts of the model that a stage holds
  int micros = 1;            // micro-batches a step
  constexpr int num_chunks() const { return stages * chunks_per_stage; }
  bool operator==(const ScheduleShape&) const = default;
};

struct ScheduleTable {
  ScheduleShape shape{};
  std::vector<int> stage_of_chunk{};
  std::vector<ActionRow> rows{};

  constexpr bool has_messages() const {
    for (const ActionRow& row : rows)
      for (const Action& action : row)
        if (is_message(action.kind)) return true;
    return false;
  }
};

// Chunk c on stage c mod p: the next pass begins where the last one ended.
constexpr ScheduleTable empty_table(ScheduleShape shape) {
  ScheduleTable table{shape, {}, std::vector<ActionRow>(std::size_t(shape.stages))};
  for (int c = 0; c < shape.num_chunks(); ++c) table.stage_of_chunk.push_back(c % shape.stages);
  return table;
}

template <class S>
concept PipelineSchedule = requires(ScheduleShape shape) {
  { S::name } -> std::convertible_to<const char*>;
  { S::version } -> std::convertible_to<int>;
  { S::table(shape) } -> std::same_as<ScheduleTable>;
};

// What a type lacks to be a schedule, as one error.
template <class S>
constexpr bool explain_schedule() {
  if constexpr (!requires {
                  { S::name } -> std::convertible_to<const char*>;
                })
    static_assert(
        sizeof(S) == 0,
        "weft[schedule.name]: a schedule has `static constexpr const char* name`, for reports and the plan's fingerprint; add it");
  else if constexpr (!requires {
                       { S::version } -> std::convertible_to<int>;
                     })
    static_assert(sizeof(S) == 0,
                  "weft[schedule.version]: a schedule has `static constexpr int version`, changed when its tables change; add it");
  else if constexpr (!requires(ScheduleShape shape) { S::table(shape); })
    static_assert(
        sizeof(S) == 0,
        "weft[schedule.function]: a schedule has `static constexpr ScheduleTable table(ScheduleShape)`; add it, or give it this argument");
  else if constexpr (!PipelineSchedule<S>)
    static_assert(sizeof(S) == 0, "weft[schedule.result]: a schedule's table(ScheduleShape) returns a ScheduleTable; change its result");
  return true;
}

template <PipelineSchedule Schedule>
constexpr Index chunks_per_stage(Index wanted) {
  if constexpr (requires { Schedule::chunks; })
    return Schedule::chunks;
  else if constexpr (requires { Schedule::interleaves; })
    return Schedule::interleaves ? wanted : 1;
  else
    return 1;
}

template <PipelineSchedule Schedule>
constexpr ScheduleTable schedule_table(ScheduleShape shape) {
  return Schedule::table(shape);
}

}  // namespace weft
