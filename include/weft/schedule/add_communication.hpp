// SPDX-License-Identifier: Apache-2.0
// Puts messages into a table of compute actions.
#pragma once

#include "weft/schedule/state.hpp"

namespace weft {

// Plays the table in rounds: in each, every stage does its next action if its inputs were there before the round; then what was made is
// sent, and received at the other end. So there is one order of all messages in which each meets its other end, and no stage waits for
// ever. Messages between two actions are one exchange: posted together. Requires a table that verify accepts; the rest of a table that
// cannot go on is left out, and so is what concerns sharded parameters.
constexpr ScheduleTable add_communication(const ScheduleTable& table) {
  ScheduleTable out{table.shape, table.stage_of_chunk, std::vector<ActionRow>(table.rows.size())};
  ScheduleState state(table, false);
  const std::size_t stages = table.rows.size();
  const int* const stage_of = table.stage_of_chunk.data();
  ActionRow* const rows = out.rows.data();
  LeanVector<const Action*> rest(2 * stages);  // what each stage has still to do: from, to
  LeanVector<std::size_t> all_ran(stages);     // stages that did something in this round
  const Action** const next = rest.data();
  const Action** const end = next + stages;
  std::size_t* const ran = all_ran.data();
  for (std::size_t s = 0; s < stages; ++s) {
    next[s] = table.rows[s].begin(), end[s] = table.rows[s].end();
    rows[s].reserve(3 * table.rows[s].size());
  }
  for (std::size_t num_ran = 1; num_ran > 0;) {
    num_ran = 0;
    for (std::size_t s = 0; s < stages; ++s) {
      while (next[s] != end[s] && next[s]->micro < 0) ++next[s];
      if (next[s] != end[s] && state.is_ready(*next[s])) ran[num_ran++] = s;
    }
    for (std::size_t r = 0; r < num_ran; ++r) {
      const std::size_t s = ran[r];
      rows[s].push_back(*next[s]);
      state.finish(*next[s]);
    }
    for (std::size_t r = 0; r < num_ran; ++r) {
      const std::size_t s = ran[r];
      const Action& action = *next[s]++;
      const bool forward = action.kind == ActionKind::forward;
      const int c = action.chunk, m = action.micro, to = forward ? c + 1 : c - 1;
      if (to < 0 || to > state.last_chunk() || action.kind == ActionKind::backward_weight || stage_of[to] == int(s)) continue;
      rows[s].push_back({forward ? ActionKind::send_forward : ActionKind::send_backward, c, m});
      rows[std::size_t(stage_of[to])].push_back({forward ? ActionKind::receive_forward : ActionKind::receive_backward, to, m});
    }
  }
  return out;
}

}  // namespace weft
