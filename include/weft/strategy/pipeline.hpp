// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "weft/base/fixed_vector.hpp"
#include "weft/layout/mesh.hpp"
#include "weft/schedule/one_forward_one_backward.hpp"

namespace weft {

// Chunks whose first units a user may fix.
inline constexpr int max_fixed_chunks = 64;

// The first unit (top-level node, or repetition of a Repeat) of every chunk, from 0 on.
using ChunkStarts = FixedVector<Index, max_fixed_chunks>;

// chunk_starts(2, 5): of three chunks; the first begins with unit 0.
template <class... Starts>
constexpr ChunkStarts chunk_starts(Starts... starts) {
  ChunkStarts out;
  out.push(0);
  (out.push(Index(starts)), ...);
  return out;
}

// The model's units are divided, in order, among the ranks; micro-batches follow each other through them.
// Communication of a micro-batch: at each border the activations of one tensor forward, its gradient backward.
// Requires: a unit for every chunk (weft[pipeline.stages]), a schedule that is proved (weft[schedule.…]), no layer that joins micro-batches
// (weft[batch_norm.schedule]).
template <class ScheduleType = schedule::OneForwardOneBackward>
struct Pipeline {
  static constexpr const char* name = "pipe";
  static constexpr Role role = Role::layers;
  static_assert(explain_schedule<ScheduleType>(), "weft[schedule]: said by the function itself");
  using Schedule = std::conditional_t<PipelineSchedule<ScheduleType>, ScheduleType, schedule::OneForwardOneBackward>;

  Index stages = 1;
  Index chunks = 1;            // of a stage, for schedules that interleave; others refuse more than 1
  ChunkStarts chunk_starts{};  // empty: chosen so that the most expensive chunk is as cheap as can be

  constexpr Index size() const { return stages; }
  constexpr Pipeline with_size(Index extent) const {
    Pipeline out = *this;
    out.stages = extent;
    return out;
  }
  bool operator==(const Pipeline&) const = default;
};

// A pipeline whose schedule is known at start-up only, such as one from a file (schedule/csv.hpp). For plan_at_start. The table is read
// while the plan is made, and may go after that. Requires: a table for as many micro-batches as Batch gives a rank.
struct TablePipeline {
  static constexpr const char* name = "pipe";
  static constexpr Role role = Role::layers;

  const ScheduleTable* table = nullptr;
  ChunkStarts chunk_starts{};

  constexpr Index size() const { return table ? table->shape.stages : 0; }  // without a table: refused
  bool operator==(const TablePipeline&) const = default;
};

}  // namespace weft
