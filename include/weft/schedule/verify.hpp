// SPDX-License-Identifier: Apache-2.0
// Proves a schedule: every action once and where its chunk is, every input there, no deadlock under the weakest semantics (a send ends only
// when its receive is posted; messages side by side are posted together).
#pragma once

#include "weft/schedule/add_communication.hpp"

namespace weft {

enum class ScheduleRule : char { none, shape, action, stage, twice, missing, order, deadlock };

constexpr const char* rule_text(ScheduleRule rule) {
  switch (rule) {
    case ScheduleRule::none: return "";
    case ScheduleRule::shape: return "weft[schedule.shape]: a schedule has one row a stage and says the stage of every chunk; fix its table";
    case ScheduleRule::action: return "weft[schedule.action]: an action names a chunk and a micro-batch of the shape; fix the entry";
    case ScheduleRule::stage: return "weft[schedule.stage]: an action stands in the row of the stage that holds its chunk; move it";
    case ScheduleRule::twice: return "weft[schedule.twice]: every action stands in a schedule once; remove the second";
    case ScheduleRule::missing:
      return "weft[schedule.missing]: every micro-batch goes forward and backward through every chunk; add what is missing";
    case ScheduleRule::order: return "weft[schedule.order]: an action comes after what it needs on its own stage; swap them";
    case ScheduleRule::deadlock:
      return "weft[schedule.deadlock]: stages wait for each other for ever; move the action before which the stage waits, or what it waits for";
  }
  return "";
}

// Where a schedule breaks a rule first. action: the one at fault, or the one that cannot begin; waiting_for: what it needs.
struct ScheduleFault {
  ScheduleRule rule = ScheduleRule::none;
  int stage = 0, position = 0;
  Action action{}, waiting_for{};
};

class ScheduleVerifier {
 public:
  constexpr explicit ScheduleVerifier(const ScheduleTable& table) : table_(table), state_(table), arrived_(table) {}

  constexpr ScheduleFault run() {
    ScheduleFault fault = check_actions();
    if (fault.rule == ScheduleRule::none) fault = play();
    return fault;
  }

 private:
  constexpr int stage_of(int chunk) const { return table_.stage_of_chunk[std::size_t(chunk)]; }

  constexpr ScheduleFault check_actions() const {
    const ScheduleShape& shape = table_.shape;
    if (int(table_.rows.size()) != shape.stages || int(table_.stage_of_chunk.size()) != shape.num_chunks())
      return {ScheduleRule::shape, int(table_.rows.size()), int(table_.stage_of_chunk.size()), {}, {}};
    for (int stage : table_.stage_of_chunk)
      if (stage < 0 || stage >= shape.stages) return {ScheduleRule::shape, stage, 0, {}, {}};
    const Index cells = Index(shape.num_chunks()) * shape.micros;
    std::vector<unsigned> seen = filled(cells, 0u);
    for (int s = 0; s < shape.stages; ++s) {
      const std::vector<Action>& row = table_.rows[std::size_t(s)];
      for (int i = 0; i < int(row.size()); ++i) {
        const Action& action = row[std::size_t(i)];
        if (action.chunk < 0 || action.chunk >= shape.num_chunks() || action.micro >= shape.micros || (action.micro < 0 && action.kind < ActionKind::gather))
          return {ScheduleRule::action, s, i, action, {}};
        if (stage_of(action.chunk) != s) return {ScheduleRule::stage, s, i, action, {}};
        if (action.micro < 0) continue;
        unsigned& bits = seen[std::size_t(action.chunk * shape.micros + action.micro)];
        unsigned own = 1u << unsigned(action.kind);
        if (action.kind == ActionKind::backward) own = parts_of_backward;
        if (bits & own) return {ScheduleRule::twice, s, i, action, {}};
        bits |= own;
      }
    }
    for (int c = 0; c < shape.num_chunks(); ++c)
      for (int m = 0; m < shape.micros; ++m) {
        const unsigned bits = seen[std::size_t(c * shape.micros + m)];
        for (const ActionKind kind : {ActionKind::forward, ActionKind::backward_input, ActionKind::backward_weight})
          if (!(bits & 1u << unsigned(kind)))
            return {ScheduleRule::missing, stage_of(c), int(table_.rows[std::size_t(stage_of(c))].size()), {kind, c, m}, {}};
      }
    return {};
  }
  static constexpr unsigned parts_of_backward = 1u << unsigned(ActionKind::backward_input) | 1u << unsigned(ActionKind::backward_weight);

  // What an action still waits for: a chunk and direction, or nothing (kind gather).
  constexpr Action needed_by(const Action& action) {
    const int c = action.chunk, m = action.micro;
    const Action nothing{ActionKind::gather, -1, -1};
    const auto elsewhere = [&](int other) { return has_messages_ && stage_of(other) != stage_of(c); };
    switch (action.kind) {
      case ActionKind::forward:
        if (c == 0 || (elsewhere(c - 1) ? arrived_.forward(c, m) : state_.forward(c - 1, m))) return nothing;
        return elsewhere(c - 1) ? Action{ActionKind::receive_forward, c, m} : Action{ActionKind::forward, c - 1, m};
      case ActionKind::backward:
      case ActionKind::backward_input:
        if (!state_.forward(c, m)) return {ActionKind::forward, c, m};
        if (c == state_.last_chunk() || (elsewhere(c + 1) ? arrived_.backward(c, m) : state_.backward(c + 1, m))) return nothing;
        return elsewhere(c + 1) ? Action{ActionKind::receive_backward, c, m} : Action{ActionKind::backward, c + 1, m};
      case ActionKind::backward_weight: return state_.backward(c, m) ? nothing : Action{ActionKind::backward_input, c, m};
      case ActionKind::send_forward: return state_.forward(c, m) ? nothing : Action{ActionKind::forward, c, m};
      case ActionKind::send_backward: return state_.backward(c, m) ? nothing : Action{ActionKind::backward, c, m};
      default: return nothing;
    }
  }

  static constexpr Action other_end(const Action& message) {
    switch (message.kind) {
      case ActionKind::send_forward: return {ActionKind::receive_forward, message.chunk + 1, message.micro};
      case ActionKind::receive_forward: return {ActionKind::send_forward, message.chunk - 1, message.micro};
      case ActionKind::send_backward: return {ActionKind::receive_backward, message.chunk - 1, message.micro};
      default: return {ActionKind::send_backward, message.chunk + 1, message.micro};
    }
  }

  constexpr ScheduleFault play() {
    has_messages_ = table_.has_messages();
    const std::size_t stages = table_.rows.size();
    next_ = std::vector<std::size_t>(stages, 0);
    for (const std::vector<Action>& row : table_.rows) met_.push_back(filled(Index(row.size()), char(0)));
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < stages; ++s)
        while (advance(s)) moved = true;
    }
    for (std::size_t s = 0; s < stages; ++s) {
      const std::vector<Action>& row = table_.rows[s];
      std::size_t at = next_[s];
      while (at < row.size() && is_message(row[at].kind) && met_[s][at]) ++at;
      if (at == row.size()) continue;
      const Action needed = is_message(row[at].kind) && needed_by(row[at]).chunk < 0 ? other_end(row[at]) : needed_by(row[at]);
      return {waits_for_itself(s, at, needed) ? ScheduleRule::order : ScheduleRule::deadlock, int(s), int(at), row[at], needed};
    }
    return {};
  }

  // Whether what an action needs stands behind it in its own row.
  constexpr bool waits_for_itself(std::size_t s, std::size_t at, const Action& needed) const {
    const std::vector<Action>& row = table_.rows[s];
    const auto is_backward = [](ActionKind kind) { return kind == ActionKind::backward || kind == ActionKind::backward_input; };
    for (std::size_t i = at + 1; i < row.size(); ++i)
      if (row[i].chunk == needed.chunk && row[i].micro == needed.micro &&
          (row[i].kind == needed.kind || (is_backward(row[i].kind) && is_backward(needed.kind))))
        return true;
    return false;
  }

  // One step of a stage: a computation, or messages of the exchange that it stands at which meet their other ends.
  constexpr bool advance(std::size_t s) {
    const std::vector<Action>& row = table_.rows[s];
    std::size_t& at = next_[s];
    if (at == row.size()) return false;
    if (!is_message(row[at].kind)) {
      if (row[at].micro >= 0 && needed_by(row[at]).chunk >= 0) return false;
      if (row[at].micro >= 0) state_.finish(row[at]);
      ++at;
      return true;
    }
    std::size_t end = at;
    bool moved = false, all = true;
    for (; end < row.size() && is_message(row[end].kind); ++end) {
      if (!met_[s][end] && needed_by(row[end]).chunk < 0) moved |= meet(s, end);
      all = all && met_[s][end];
    }
    if (all) at = end;
    return moved || all;
  }

  constexpr bool meet(std::size_t s, std::size_t i) {
    const Action& message = table_.rows[s][i];
    const Action other = other_end(message);
    if (other.chunk < 0 || other.chunk > state_.last_chunk()) return false;
    const std::size_t t = std::size_t(stage_of(other.chunk));
    const std::vector<Action>& row = table_.rows[t];
    for (std::size_t j = next_[t]; j < row.size() && is_message(row[j].kind); ++j)
      if (row[j] == other && !met_[t][j] && needed_by(other).chunk < 0) {
        met_[s][i] = met_[t][j] = 1;
        for (const Action& end : {message, other}) {
          if (end.kind == ActionKind::receive_forward) arrived_.forward(end.chunk, end.micro) = 1;
          if (end.kind == ActionKind::receive_backward) arrived_.backward(end.chunk, end.micro) = 1;
        }
        return true;
      }
    return false;
  }

  const ScheduleTable& table_;
  ScheduleState state_, arrived_;
  bool has_messages_ = false;
  std::vector<std::size_t> next_{};
  std::vector<std::vector<char>> met_{};
};

// For a table with messages or without (then every input is there as soon as it is made).
constexpr ScheduleFault verify(const ScheduleTable& table) { return ScheduleVerifier(table).run(); }

}  // namespace weft
