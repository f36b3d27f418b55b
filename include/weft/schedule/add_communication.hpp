// SPDX-License-Identifier: Apache-2.0
// Puts messages into a table of compute actions.
#pragma once

#include "weft/schedule/state.hpp"

namespace weft {

// Plays the table in rounds: in each, every stage does its next action if its inputs were there before the round; then what was made is sent,
// and received at the other end. So there is one order of all messages in which each meets its other end, and no stage waits for ever.
// Messages between two actions are one exchange: posted together. Requires a table that verify accepts; the rest of a table that cannot
// go on is left out.
constexpr ScheduleTable add_communication(const ScheduleTable& table) {
  ScheduleTable out{table.shape, table.stage_of_chunk, std::vector<ActionRow>(table.rows.size())};
  ScheduleState state(table.shape);
  const std::size_t stages = table.rows.size();
  const int* const stage_of = table.stage_of_chunk.data();
  LeanVector<std::size_t> next(stages);
  ActionRow done(stages);
  ActionRow* const rows = out.rows.data();
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < stages; ++s) {
      const ActionRow& row = table.rows[s];
      done[s].micro = -1;
      if (next[s] == row.size()) continue;
      const Action& action = row[next[s]];
      if (!state.is_ready(action)) continue;
      done[s] = action, ++next[s];
      rows[s].push_back(action);
      moved = true;
    }
    for (std::size_t s = 0; s < stages; ++s) {
      if (done[s].micro < 0) continue;
      const Action action = done[s];
      state.finish(action);
      const int c = action.chunk, m = action.micro;
      if (action.kind == ActionKind::forward) {
        if (c == state.last_chunk()) continue;
        const std::size_t to = std::size_t(stage_of[c + 1]);
        if (to == s) continue;
        rows[s].push_back({ActionKind::send_forward, c, m});
        rows[to].push_back({ActionKind::receive_forward, c + 1, m});
      } else if (c > 0 && action.kind <= ActionKind::backward_input) {
        const std::size_t to = std::size_t(stage_of[c - 1]);
        if (to == s) continue;
        rows[s].push_back({ActionKind::send_backward, c, m});
        rows[to].push_back({ActionKind::receive_backward, c - 1, m});
      }
    }
  }
  return out;
}

}  // namespace weft
