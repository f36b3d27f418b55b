// SPDX-License-Identifier: Apache-2.0
// What the compiler proves of a schedule: a window of micro-batches that has warm-up, steady state and cool-down in it. Compilers evaluate
// only so much; the whole table is proved when a plan is made at start-up.
#pragma once

#include <utility>

#include "weft/schedule/facts.hpp"
#include "weft/schedule/verify.hpp"

namespace weft {

// As many micro-batches as the compiler looks at. Windows keep the remainder by the stages, on which a schedule of several chunks may
// depend; of very many stages with one chunk each there is no room for more than the warm-up and two micro-batches.
constexpr ScheduleShape proof_window(ScheduleShape shape) {
  const Index p = shape.stages, rest = shape.micros % p;
  const bool narrow = shape.chunks_per_stage == 1 && p > 16;
  const Index fewest = p > 8 ? 3 : 4, groups = rest + 2 > fewest ? rest + 2 : fewest;
  const Index window = narrow ? p + 2 : p * groups + rest;
  if (window < shape.micros) shape.micros = int(window);
  return shape;
}

// The most actions (of computation) in a window that all compilers take.
inline constexpr Index max_proved_actions = 9000;

constexpr Index num_forward_and_backward(ScheduleShape shape) { return 2 * Index(shape.stages) * shape.chunks_per_stage * shape.micros; }

// A table with messages, those that it brings or those that are added, and without what concerns sharded parameters: the plan knows that.
constexpr ScheduleTable with_communication(const ScheduleTable& table) {
  if (!table.has_messages()) return add_communication(table);
  ScheduleTable out{table.shape, table.stage_of_chunk, {}};
  for (const ActionRow& row : table.rows) {
    out.rows.push_back({});
    for (const Action& action : row)
      if (action.micro >= 0) out.rows.back().push_back(action);
  }
  return out;
}

enum class Provable : char { yes, refused, too_large };  // refused: the schedule has no table for the shape

// What is known at compile time of a schedule in a shape: facts of all micro-batches, from a window of them.
struct ProvedSchedule {
  ScheduleShape shape{}, window{};
  Provable provable = Provable::yes;
  ScheduleFault fault{};
  const ChunkFacts* chunks = nullptr;
  const StageFacts* stages = nullptr;
};

struct WindowVerdict {
  ScheduleShape window{};
  Provable provable = Provable::yes;
  ScheduleFault fault{};
};

template <class Schedule>
constexpr WindowVerdict prove_window(ScheduleShape shape) {
  WindowVerdict out{proof_window(shape)};
  if (num_forward_and_backward(out.window) > max_proved_actions) {
    out.provable = Provable::too_large;
    return out;
  }
  ScheduleTable table = Schedule::table(out.window);
  if (table.rows.empty() && out.window.micros != shape.micros && num_forward_and_backward(shape) <= max_proved_actions)
    out.window = shape, table = Schedule::table(shape);
  if (table.rows.empty())
    out.provable = Provable::refused;
  else
    out.fault = verify(table);
  return out;
}

// Each of these is an evaluation of its own: compilers limit each, and plans share them.
template <class Schedule, ScheduleShape shape>
inline constexpr WindowVerdict window_verdict = prove_window<Schedule>(shape);

template <int num_chunks, int num_stages>
struct FactsOfWindow {
  ChunkFacts chunks[num_chunks];
  StageFacts stages[num_stages];
  bool fills = false;  // something is held for as many micro-batches as the window has
};

// Large windows are looked at in parts, a range of chunks each.
constexpr int num_parts(ScheduleShape window) { return int(num_forward_and_backward(window) / 5000) + 1; }
constexpr int part_begin(ScheduleShape window, int part) { return part * window.num_chunks() / num_parts(window); }

template <class Schedule, ScheduleShape window, int part>
constexpr auto facts_of_part() {
  constexpr int first = part_begin(window, part), last = part_begin(window, part + 1), p = window.stages;
  FactsOfWindow<last - first, p> out{};
  const ScheduleTable table = with_communication(Schedule::table(window));
  for (int c = first; c < last; ++c) out.chunks[c - first] = chunk_facts(table, c);
  for (int c = 0; c < last - first; ++c) {
    const int stage = out.chunks[c].stage;
    out.stages[stage] = stage_facts(table, stage);
    out.chunks[c].completed = num_completed_before(table, stage, first + c);
  }
  return out;
}
template <class Schedule, ScheduleShape window, int part>
inline constexpr auto part_facts = facts_of_part<Schedule, window, part>();

// From the facts of a window to those of all micro-batches: who holds all of a window holds all there are; else the window says how many
// are ever held. Returns whether something fills the window.
constexpr bool extend_facts(int window, int micros, ChunkFacts* chunks, int num_chunks, StageFacts* stages, int num_stages) {
  bool fills = false;
  const auto extend = [&](int& depth) {
    if (depth < window) return;
    depth = micros, fills = true;
  };
  for (int c = 0; c < num_chunks; ++c) {
    ChunkFacts& chunk = chunks[c];
    extend(chunk.depth), extend(chunk.input_depth), extend(chunk.gradient_depth), extend(chunk.weight_depth);
    if (2 * chunk.whole_backwards > window) chunk.whole_backwards += micros - window;
  }
  for (int s = 0; s < num_stages; ++s) extend(stages[s].input_depth);
  return fills;
}
constexpr ScheduleFacts facts_of_all(ScheduleFacts window, int micros) {
  extend_facts(window.shape.micros, micros, window.chunks.data(), int(window.chunks.size()), window.stages.data(),
               int(window.stages.size()));
  window.shape.micros = micros;
  return window;
}

template <class Schedule, ScheduleShape shape, int... parts>
constexpr auto facts_from_window(std::integer_sequence<int, parts...>) {
  constexpr ScheduleShape window = window_verdict<Schedule, shape>.window;
  FactsOfWindow<shape.num_chunks(), shape.stages> out{};
  const auto take = [&](const auto& part, int first, int last) {
    for (int c = first; c < last; ++c) {
      out.chunks[c] = part.chunks[c - first];
      out.stages[out.chunks[c].stage] = part.stages[out.chunks[c].stage];
    }
  };
  (take(part_facts<Schedule, window, parts>, part_begin(window, parts), part_begin(window, parts + 1)), ...);
  out.fills = extend_facts(window.micros, shape.micros, out.chunks, shape.num_chunks(), out.stages, shape.stages);
  return out;
}
template <class Schedule, ScheduleShape shape>
inline constexpr auto window_facts =
    facts_from_window<Schedule, shape>(std::make_integer_sequence<int, num_parts(window_verdict<Schedule, shape>.window)>());

template <class Schedule, ScheduleShape shape>
constexpr ProvedSchedule prove() {
  constexpr const WindowVerdict& verdict = window_verdict<Schedule, shape>;
  ProvedSchedule out{shape, verdict.window, verdict.provable, verdict.fault};
  if constexpr (verdict.provable == Provable::yes && verdict.fault.rule == ScheduleRule::none) {
    constexpr const auto& facts = window_facts<Schedule, shape>;
    out.chunks = facts.chunks, out.stages = facts.stages;
    // A narrow window that is filled does not say whether more would be held.
    if (facts.fills && verdict.window.micros < shape.micros && verdict.window.micros < 3 * shape.stages) out.provable = Provable::too_large;
  }
  return out;
}

template <class Schedule, ScheduleShape shape>
inline constexpr ProvedSchedule proved_schedule = prove<Schedule, shape>();

}  // namespace weft
