// SPDX-License-Identifier: Apache-2.0
// When every action of a schedule runs, for given times; bubble, makespan, and what is held meanwhile.
#pragma once

#include "weft/schedule/verify.hpp"

namespace weft {

// Seconds (or any unit) of one micro-batch through one chunk. A whole backward takes backward_input + backward_weight; a message arrives
// `communication` after it was sent, while its sender goes on.
struct ScheduleTimes {
  double forward = 1, backward_input = 1, backward_weight = 1, communication = 0;

  constexpr double of(ActionKind kind) const {
    switch (kind) {
      case ActionKind::forward: return forward;
      case ActionKind::backward: return backward_input + backward_weight;
      case ActionKind::backward_input: return backward_input;
      case ActionKind::backward_weight: return backward_weight;
      default: return 0;
    }
  }
};

struct TimedAction {
  Action action{};
  double begin = 0, end = 0;
};

struct Timeline {
  std::vector<std::vector<TimedAction>> rows{};  // compute actions
  double makespan = 0;                           // the last end
  double span = 0;                               // the longest of a stage from its first begin to its last end
  double busy = 0;                               // of one stage: what it computes
  std::vector<int> peak{};               // by stage: chunks of micro-batches between forward and the end of (the input part of) backward
  std::vector<int> peak_with_weights{};  // by stage: the same until the weight part

  constexpr double bubble() const { return span - busy; }
  constexpr double bubble_rate() const { return span > 0 ? bubble() / span : 0; }
};

// times(chunk) -> ScheduleTimes: chunks may differ. Actions run as soon as the stage is free and their inputs have arrived. Requires a
// table that verify accepts, with messages or without.
template <std::invocable<int> Times>
constexpr Timeline simulate_schedule(const ScheduleTable& table, Times&& times) {
  const std::size_t stages = table.rows.size();
  const auto stage_of = [&](int chunk) { return table.stage_of_chunk[std::size_t(chunk)]; };
  const Index cells = Index(table.shape.num_chunks()) * table.shape.micros;
  std::vector<double> forward_end = filled(cells, 0.0), backward_end = filled(cells, 0.0);
  ScheduleState state(table, false);
  Timeline out;
  out.rows = std::vector<std::vector<TimedAction>>(stages);
  out.peak = filled(Index(stages), 0), out.peak_with_weights = filled(Index(stages), 0);
  std::vector<int> held = filled(Index(stages), 0), held_with_weights = held;
  std::vector<std::size_t> next(stages, 0);
  std::vector<double> clock(stages, 0), busy(stages, 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < stages; ++s)
      while (next[s] < table.rows[s].size()) {
        const Action action = table.rows[s][next[s]];
        if (is_compute(action.kind)) {
          if (!state.is_ready(action)) break;
          const int c = action.chunk;
          const ScheduleTimes& time = times(c);
          double begin = clock[s];
          const auto arrives = [&](int from, double end) {
            const double at = end + (stage_of(from) == int(s) ? 0 : time.communication);
            begin = at > begin ? at : begin;
          };
          if (action.kind == ActionKind::forward && c > 0) arrives(c - 1, forward_end[std::size_t(state.cell(c - 1, action.micro))]);
          if ((action.kind == ActionKind::backward || action.kind == ActionKind::backward_input) && c < state.last_chunk())
            arrives(c + 1, backward_end[std::size_t(state.cell(c + 1, action.micro))]);
          const double end = begin + time.of(action.kind);
          if (action.kind == ActionKind::forward) forward_end[std::size_t(state.cell(c, action.micro))] = end;
          if (action.kind == ActionKind::backward || action.kind == ActionKind::backward_input)
            backward_end[std::size_t(state.cell(c, action.micro))] = end;
          state.finish(action);
          clock[s] = end, busy[s] += end - begin;
          out.rows[s].push_back({action, begin, end});
          if (action.kind == ActionKind::forward) ++held[s], ++held_with_weights[s];
          out.peak[s] = held[s] > out.peak[s] ? held[s] : out.peak[s];
          out.peak_with_weights[s] = held_with_weights[s] > out.peak_with_weights[s] ? held_with_weights[s] : out.peak_with_weights[s];
          if (action.kind == ActionKind::backward || action.kind == ActionKind::backward_input) --held[s];
          if (action.kind == ActionKind::backward || action.kind == ActionKind::backward_weight) --held_with_weights[s];
        }
        ++next[s], moved = true;
      }
  }
  for (std::size_t s = 0; s < stages; ++s) {
    if (out.rows[s].empty()) continue;
    const double span = clock[s] - out.rows[s].front().begin;
    if (span > out.span) out.span = span, out.busy = busy[s];
    out.makespan = clock[s] > out.makespan ? clock[s] : out.makespan;
  }
  return out;
}

// All chunks alike.
constexpr Timeline simulate_schedule(const ScheduleTable& table, const ScheduleTimes& times) {
  return simulate_schedule(table, [&](int) -> const ScheduleTimes& { return times; });
}

}  // namespace weft
