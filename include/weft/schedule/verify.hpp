// SPDX-License-Identifier: Apache-2.0
// Proves a schedule: every action once and where its chunk is, every input there, no deadlock under the weakest semantics (a send ends only
// when its receive is posted; messages side by side are posted together).
#pragma once

#include "weft/schedule/add_communication.hpp"
#include "weft/schedule/fault.hpp"

namespace weft {

// The other end of a message.
constexpr Action other_end(const Action& message) {
  switch (message.kind) {
    case ActionKind::send_forward: return {ActionKind::receive_forward, message.chunk + 1, message.micro};
    case ActionKind::receive_forward: return {ActionKind::send_forward, message.chunk - 1, message.micro};
    case ActionKind::send_backward: return {ActionKind::receive_backward, message.chunk - 1, message.micro};
    default: return {ActionKind::send_backward, message.chunk + 1, message.micro};
  }
}

class ScheduleVerifier {
 public:
  constexpr explicit ScheduleVerifier(const ScheduleTable& table)
      : table_(table),
        stage_of_(table.stage_of_chunk.data()),
        has_messages_(table.has_messages()),
        last_(table.shape.num_chunks() - 1),
        state_(table, has_messages_) {}

  constexpr ScheduleFault run() {
    ScheduleFault fault = check_shape();
    if (fault.rule == ScheduleRule::none) fault = check_actions();
    if (fault.rule == ScheduleRule::none) fault = play();
    return fault;
  }

 private:
  using Seen = LeanVector<unsigned short>;  // by (chunk, micro-batch): a bit for each kind of action that was met

  constexpr ScheduleFault check_shape() const {
    const ScheduleShape& shape = table_.shape;
    if (int(table_.rows.size()) != shape.stages || int(table_.stage_of_chunk.size()) != shape.num_chunks())
      return {ScheduleRule::shape, int(table_.rows.size()), int(table_.stage_of_chunk.size()), {}, {}};
    for (int c = 0; c <= last_; ++c)
      if (stage_of_[c] < 0 || stage_of_[c] >= shape.stages) return {ScheduleRule::shape, stage_of_[c], c, {}, {}};
    return {};
  }

  // The stage at the other end of a message, or -1: there is no such message.
  constexpr int peer_of(const Action& message) const {
    const Action other = other_end(message);
    return other.chunk < 0 || other.chunk > last_ || stage_of_[other.chunk] == stage_of_[message.chunk] ? -1 : stage_of_[other.chunk];
  }

  constexpr ScheduleFault check_actions() const {
    const ScheduleShape& shape = table_.shape;
    Seen seen(std::size_t(shape.num_chunks()) * std::size_t(shape.micros));
    for (int s = 0; s < shape.stages; ++s) {
      const ActionRow& row = table_.rows[std::size_t(s)];
      const Action* const actions = row.data();
      for (int i = 0, n = int(row.size()); i < n; ++i) {
        const Action& action = actions[i];
        const int c = action.chunk, m = action.micro;
        if (c < 0 || c > last_ || m >= shape.micros || (m < 0 && action.kind < ActionKind::gather))
          return {ScheduleRule::action, s, i, action, {}};
        if (stage_of_[c] != s) return {ScheduleRule::stage, s, i, action, {}};
        if (m < 0) continue;
        if (is_message(action.kind) && peer_of(action) < 0) return {ScheduleRule::action, s, i, action, {}};
        unsigned short& bits = seen[std::size_t(c * shape.micros + m)];
        const unsigned own = action.kind == ActionKind::backward ? parts_of_backward : 1u << unsigned(action.kind);
        if (bits & own) return {ScheduleRule::twice, s, i, action, {}};
        bits = static_cast<unsigned short>(bits | own);
      }
    }
    for (int c = 0; c <= last_; ++c) {
      const bool receives = state_.arrives(c);
      for (int m = 0; m < shape.micros; ++m) {
        const unsigned bits = seen[std::size_t(c * shape.micros + m)];
        if ((bits & all_computed) != all_computed) return missing(bits, c, m);
        if (!receives) continue;
        const unsigned before = seen[std::size_t((c - 1) * shape.micros + m)];
        if (!has(before, ActionKind::send_forward) || !has(bits, ActionKind::receive_forward))
          return half_message({ActionKind::send_forward, c - 1, m}, before, bits);
        if (!has(bits, ActionKind::send_backward) || !has(before, ActionKind::receive_backward))
          return half_message({ActionKind::send_backward, c, m}, bits, before);
      }
    }
    return {};
  }
  static constexpr unsigned parts_of_backward = 1u << unsigned(ActionKind::backward_input) | 1u << unsigned(ActionKind::backward_weight);
  static constexpr unsigned all_computed = 1u << unsigned(ActionKind::forward) | parts_of_backward;
  static constexpr bool has(unsigned bits, ActionKind kind) { return bits & 1u << unsigned(kind); }

  constexpr ScheduleFault missing(unsigned bits, int c, int m) const {
    const int s = stage_of_[c];
    for (const ActionKind kind : {ActionKind::forward, ActionKind::backward_input, ActionKind::backward_weight})
      if (!has(bits, kind)) return {ScheduleRule::missing, s, int(table_.rows[std::size_t(s)].size()), {kind, c, m}, {}};
    return {};
  }
  // One end of a message, or both, are not there: where the one that is there stands, or the row that should begin with it.
  constexpr ScheduleFault half_message(const Action& send, unsigned sender, unsigned receiver) const {
    const Action receive = other_end(send);
    const bool sends = has(sender, send.kind), receives = has(receiver, receive.kind);
    const Action &there = sends || !receives ? send : receive, &absent = sends ? receive : send;
    const int s = stage_of_[there.chunk];
    const ActionRow& row = table_.rows[std::size_t(s)];
    std::size_t at = 0;
    while (at < row.size() && !(row[at] == there)) ++at;
    return {ScheduleRule::message, s, int(at), there, absent};
  }

  static constexpr Action nothing{ActionKind::gather, -1, -1};

  // What an action still waits for; `nothing` if it can begin.
  constexpr Action needed_by(const Action& action) const {
    using S = ScheduleState;
    const int c = action.chunk, m = action.micro;
    switch (action.kind) {
      case ActionKind::forward:
        if (c == 0) return nothing;
        if (state_.arrives(c)) return state_.has(S::input_arrived, c, m) ? nothing : Action{ActionKind::receive_forward, c, m};
        return state_.has(S::forward, c - 1, m) ? nothing : Action{ActionKind::forward, c - 1, m};
      case ActionKind::backward:
      case ActionKind::backward_input:
        if (!state_.has(S::forward, c, m)) return {ActionKind::forward, c, m};
        if (c == last_) return nothing;
        if (state_.arrives(c + 1)) return state_.has(S::gradient_arrived, c, m) ? nothing : Action{ActionKind::receive_backward, c, m};
        return state_.has(S::backward, c + 1, m) ? nothing : Action{ActionKind::backward, c + 1, m};
      case ActionKind::backward_weight: return state_.has(S::backward, c, m) ? nothing : Action{ActionKind::backward_input, c, m};
      case ActionKind::send_forward: return state_.has(S::forward, c, m) ? nothing : Action{ActionKind::forward, c, m};
      case ActionKind::send_backward: return state_.has(S::backward, c, m) ? nothing : Action{ActionKind::backward, c, m};
      default: return nothing;
    }
  }

  constexpr ScheduleFault play() {
    const std::size_t stages = table_.rows.size();
    next_ = LeanVector<std::size_t>(stages);
    for (const ActionRow& row : table_.rows) met_.push_back(LeanVector<char>(has_messages_ ? row.size() : 0));
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < stages; ++s)
        while (advance(s)) moved = true;
    }
    std::size_t s = 0;
    while (s < stages && next_[s] == table_.rows[s].size()) ++s;
    if (s == stages) return {};
    // Many may wait because of a few: from one that waits to the one that it waits for, until that is itself or has been seen.
    LeanVector<char> seen(stages);
    for (ScheduleFault fault = blocked(s);; fault = blocked(s)) {
      if (fault.rule == ScheduleRule::order || seen[s]) return fault;
      seen[s] = 1, s = std::size_t(stage_of_[fault.waiting_for.chunk]);
    }
  }
  // Of a stage that has not come to its end.
  constexpr ScheduleFault blocked(std::size_t s) const {
    const ActionRow& row = table_.rows[s];
    std::size_t at = next_[s];
    while (is_message(row[at].kind) && met_[s][at]) ++at;
    Action needed = needed_by(row[at]);
    if (is_message(row[at].kind) && needed == nothing) needed = other_end(row[at]);
    return {waits_for_itself(s, at, needed) ? ScheduleRule::order : ScheduleRule::deadlock, int(s), int(at), row[at], needed};
  }

  // Whether what an action needs stands behind it in its own row.
  constexpr bool waits_for_itself(std::size_t s, std::size_t at, const Action& needed) const {
    const ActionRow& row = table_.rows[s];
    const auto is_backward = [](ActionKind kind) { return kind == ActionKind::backward || kind == ActionKind::backward_input; };
    for (std::size_t i = at + 1; i < row.size(); ++i)
      if (row[i].chunk == needed.chunk && row[i].micro == needed.micro &&
          (row[i].kind == needed.kind || (is_backward(row[i].kind) && is_backward(needed.kind))))
        return true;
    return false;
  }

  // One step of a stage: computations, or messages of the exchange that it stands at which meet their other ends.
  constexpr bool advance(std::size_t s) {
    const ActionRow& row = table_.rows[s];
    const std::size_t at = next_[s], n = row.size();
    std::size_t i = at;
    for (const Action* action = row.data() + at; i < n && !is_message(action->kind); ++i, ++action) {
      if (action->micro < 0) continue;
      if (!state_.is_ready(*action)) break;
      state_.finish(*action);
    }
    next_[s] = i;
    if (i > at) return true;
    if (i == n || !is_message(row[i].kind)) return false;
    std::size_t end = at;
    bool moved = false, all = true;
    for (; end < row.size() && is_message(row[end].kind); ++end) {
      if (met_[s][end]) continue;
      if (needed_by(row[end]).chunk < 0 && meet(s, end))
        moved = true;
      else
        all = false;
    }
    if (all) next_[s] = end;
    return moved || all;
  }

  constexpr bool meet(std::size_t s, std::size_t i) {
    const Action& message = table_.rows[s][i];
    const Action other = other_end(message);
    const std::size_t t = std::size_t(stage_of_[other.chunk]);
    const ActionRow& row = table_.rows[t];
    for (std::size_t j = next_[t]; j < row.size() && is_message(row[j].kind); ++j) {
      if (row[j].micro != other.micro || row[j].kind != other.kind || row[j].chunk != other.chunk) continue;
      if (needed_by(other).chunk >= 0) return false;
      met_[s][i] = met_[t][j] = 1;
      const Action& receive = is_receive(message.kind) ? message : other;
      state_.set(receive.kind == ActionKind::receive_forward ? ScheduleState::input_arrived : ScheduleState::gradient_arrived,
                 receive.chunk, receive.micro);
      return true;
    }
    return false;
  }

  const ScheduleTable& table_;
  const int* stage_of_;
  bool has_messages_;
  int last_;
  ScheduleState state_;
  LeanVector<std::size_t> next_{};
  std::vector<LeanVector<char>> met_{};
};

// For a table with messages or without (then every input is there as soon as it is made).
constexpr ScheduleFault verify(const ScheduleTable& table) { return ScheduleVerifier(table).run(); }

}  // namespace weft
