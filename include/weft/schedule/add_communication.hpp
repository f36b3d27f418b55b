// SPDX-License-Identifier: Apache-2.0
// Puts messages into a table of compute actions.
#pragma once

#include "weft/schedule/table.hpp"

namespace weft {

// What has been done of every (chunk, micro-batch).
class ScheduleState {
 public:
  constexpr explicit ScheduleState(const ScheduleTable& table) : table_(&table) {
    const Index cells = Index(table.shape.num_chunks()) * table.shape.micros;
    forward_ = filled(cells, char(0)), backward_ = forward_, weight_ = forward_;
  }

  constexpr std::size_t cell(int chunk, int micro) const { return std::size_t(chunk) * std::size_t(table_->shape.micros) + std::size_t(micro); }
  constexpr char& forward(int chunk, int micro) { return forward_[cell(chunk, micro)]; }
  constexpr char& backward(int chunk, int micro) { return backward_[cell(chunk, micro)]; }
  constexpr char& weight(int chunk, int micro) { return weight_[cell(chunk, micro)]; }
  constexpr int last_chunk() const { return table_->shape.num_chunks() - 1; }

  // Whether what an action reads has been made, wherever.
  constexpr bool is_ready(const Action& action) {
    const int c = action.chunk, m = action.micro;
    switch (action.kind) {
      case ActionKind::forward: return c == 0 || forward(c - 1, m);
      case ActionKind::backward:
      case ActionKind::backward_input: return forward(c, m) && (c == last_chunk() || backward(c + 1, m));
      case ActionKind::backward_weight: return backward(c, m);
      default: return true;
    }
  }
  constexpr void finish(const Action& action) {
    if (action.kind == ActionKind::forward) forward(action.chunk, action.micro) = 1;
    if (action.kind == ActionKind::backward || action.kind == ActionKind::backward_input) backward(action.chunk, action.micro) = 1;
    if (action.kind == ActionKind::backward || action.kind == ActionKind::backward_weight) weight(action.chunk, action.micro) = 1;
  }

 private:
  const ScheduleTable* table_;
  std::vector<char> forward_, backward_, weight_;
};

// Plays the table in rounds: in each, every stage does its next action if its inputs were there before the round; then what was made is sent,
// and received at the other end. So there is one order of all messages in which each meets its other end, and no stage waits for ever.
// Messages between two actions are one exchange: posted together. Requires a table that verify accepts; the rest of a table that cannot
// go on is left out.
constexpr ScheduleTable add_communication(const ScheduleTable& table) {
  ScheduleTable out{table.shape, table.stage_of_chunk, std::vector<std::vector<Action>>(table.rows.size())};
  ScheduleState state(table);
  const std::size_t stages = table.rows.size();
  std::vector<std::size_t> next(stages, 0);
  std::vector<Action> done(stages);
  const auto stage_of = [&](int chunk) { return std::size_t(table.stage_of_chunk[std::size_t(chunk)]); };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < stages; ++s) {
      done[s].micro = -1;
      if (next[s] == table.rows[s].size() || !state.is_ready(table.rows[s][next[s]])) continue;
      done[s] = table.rows[s][next[s]++];
      out.rows[s].push_back(done[s]);
      moved = true;
    }
    for (std::size_t s = 0; s < stages; ++s) {
      const Action& action = done[s];
      if (action.micro < 0) continue;
      state.finish(action);
      const int c = action.chunk;
      if (action.kind == ActionKind::forward && c < state.last_chunk() && stage_of(c + 1) != s) {
        out.rows[s].push_back({ActionKind::send_forward, c, action.micro});
        out.rows[stage_of(c + 1)].push_back({ActionKind::receive_forward, c + 1, action.micro});
      }
      if ((action.kind == ActionKind::backward || action.kind == ActionKind::backward_input) && c > 0 && stage_of(c - 1) != s) {
        out.rows[s].push_back({ActionKind::send_backward, c, action.micro});
        out.rows[stage_of(c - 1)].push_back({ActionKind::receive_backward, c - 1, action.micro});
      }
    }
  }
  return out;
}

}  // namespace weft
