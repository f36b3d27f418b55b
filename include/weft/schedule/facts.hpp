// SPDX-License-Identifier: Apache-2.0
// What a plan needs to know of a schedule besides the order: how many micro-batches are held at once, and what is split.
#pragma once

#include "weft/schedule/table.hpp"

namespace weft {

// Of a chunk on its stage. The smallest moduli by which slots can be reused without collision: of activations (from forward on), of what
// came in from the chunk before, of the gradient that comes back, all until backward has ended; and of gradients that the weight part
// needs, from the input part (or from the loss) on.
struct ChunkFacts {
  int stage = 0;
  int depth = 1, input_depth = 1, gradient_depth = 1, weight_depth = 1;
  int whole_backwards = 0;     // micro-batches whose backward is one action
  int completed = 0;           // how many chunks of the stage have their last backward before this one
  bool loss_in_place = false;  // of the last chunk: every forward is followed by its backward at once
  bool operator==(const ChunkFacts&) const = default;
};

struct StageFacts {
  int input_depth = 1;  // micro-batches whose inputs and targets are held: they are read in order, when the first action on one needs them
  bool operator==(const StageFacts&) const = default;
};

// Lifetimes by micro-batch, as places in a row of actions from 1 on; 0: none.
struct Lifetimes {
  LeanVector<int> begin, end;

  constexpr explicit Lifetimes(int micros) : begin(std::size_t(micros)), end(std::size_t(micros)) {}

  constexpr int depth() const {
    const int n = int(begin.size());
    const int *first = begin.data(), *last = end.data();
    // Where lives begin and end in order, those that overlap are neighbours: one more than the furthest that overlap.
    int furthest = 0;
    for (int m = 0, other = 0; m < n; ++m) {
      if (first[m] == 0 || (m > 0 && (first[m] <= first[m - 1] || last[m] <= last[m - 1]))) return depth_of_any_order();
      while (other + 1 < n && first[other + 1] <= last[m]) ++other;
      if (other - m > furthest) furthest = other - m;
    }
    return furthest + 1;
  }

 private:
  constexpr int depth_of_any_order() const {
    int depth = 1;
    while (!fits(depth)) ++depth;
    return depth;
  }
  // Micro-batches m and m + k · depth never live at the same time.
  constexpr bool fits(int depth) const {
    const int n = int(begin.size());
    const int *first = begin.data(), *last = end.data();
    for (int m = 0; m < n; ++m)
      for (int other = m + depth; other < n; other += depth)
        if (first[m] > 0 && first[other] > 0 && last[m] >= first[other] && last[other] >= first[m]) return false;
    return true;
  }
};

// Calls visit(action, place) for a row, in order; place: in time, from 1 on. Messages side by side are under way at once.
template <class Visit>
constexpr void for_each_in_time(const ActionRow& row, Visit&& visit) {
  const Action* const actions = row.data();
  int place = 0;
  bool after_message = false;
  for (std::size_t i = 0, n = row.size(); i < n; ++i) {
    const bool message = is_message(actions[i].kind);
    if (!message || !after_message) ++place;
    after_message = message;
    visit(actions[i], place);
  }
}

// Requires a proved table with messages.
constexpr ChunkFacts chunk_facts(const ScheduleTable& table, int chunk) {
  using enum ActionKind;
  const int micros = table.shape.micros, stage = table.stage_of_chunk[std::size_t(chunk)];
  const bool last = chunk + 1 == table.shape.num_chunks();
  // Where each of the four lives begins, and where they end: with the last part of backward, the gradient's not before it was sent on.
  Lifetimes activations(micros), inputs(micros), gradients(micros), weights(micros);
  int *const forwarded_at = activations.begin.data(), *const input_at = inputs.begin.data(), *const gradient_at = gradients.begin.data();
  int *const weight_at = weights.begin.data(), *const ended_at = activations.end.data(), *const sent_at = gradients.end.data();
  ChunkFacts out{.stage = stage, .loss_in_place = last};
  Action before{gather, -1, -1};  // the loss is in place if its chunk's backward comes right after forward
  for_each_in_time(table.rows[std::size_t(stage)], [&](const Action& action, int place) {
    const int m = action.micro;
    if (last) {
      if (before.kind == forward && before.chunk == chunk && (action.kind > backward_input || action.chunk != chunk || m != before.micro))
        out.loss_in_place = false;
      before = action;
    }
    if (action.chunk == chunk) {
      if (action.kind == forward) {
        forwarded_at[m] = place;
        if (input_at[m] == 0) input_at[m] = place;
        if (last) weight_at[m] = place;
      } else if (action.kind <= backward_weight) {
        ended_at[m] = sent_at[m] = place;
        if (gradient_at[m] == 0) gradient_at[m] = place;
        if (weight_at[m] == 0) weight_at[m] = place;
        if (action.kind == backward) ++out.whole_backwards;
      } else if (action.kind == receive_forward) {
        input_at[m] = place;
      } else if (action.kind == receive_backward) {
        gradient_at[m] = place;
      } else if (action.kind == send_backward && sent_at[m] < place) {
        sent_at[m] = place;
      }
    } else if (action.kind == forward) {  // what neighbours on the same stage hand over is there as soon as it is made
      if (action.chunk == chunk - 1) input_at[m] = place;
    } else if (action.kind <= backward_input && action.chunk == chunk + 1) {
      gradient_at[m] = place;
    }
  });
  out.depth = activations.depth();
  inputs.end = activations.end, weights.end = activations.end;
  out.input_depth = inputs.depth(), out.gradient_depth = gradients.depth(), out.weight_depth = weights.depth();
  return out;
}

constexpr StageFacts stage_facts(const ScheduleTable& table, int stage) {
  Lifetimes inputs(table.shape.micros);
  int *const begin = inputs.begin.data(), *const end = inputs.end.data(), read = 0, place = 0;
  for (const Action& action : table.rows[std::size_t(stage)]) {
    for (++place; read <= action.micro; ++read) begin[read] = place;
    end[action.micro] = place;
  }
  return {inputs.depth()};
}

// How many chunks of a stage have their last backward before a chunk of it.
constexpr int num_completed_before(const ScheduleTable& table, int stage, int chunk) {
  const ActionRow& row = table.rows[std::size_t(stage)];
  int before = -1;  // without itself
  for (const int each : table.stage_of_chunk) before += each == stage;
  LeanVector<char> known(std::size_t(table.shape.num_chunks()));
  for (std::size_t i = row.size(); i-- > 0 && before > 0;) {  // from the back: those that come after it
    const Action& action = row[i];
    if (action.kind != ActionKind::backward && action.kind != ActionKind::backward_weight) continue;
    if (action.chunk == chunk) break;
    if (!known[std::size_t(action.chunk)]) known[std::size_t(action.chunk)] = 1, --before;
  }
  return before;
}

struct ScheduleFacts {
  ScheduleShape shape{};
  std::vector<ChunkFacts> chunks{};
  std::vector<StageFacts> stages{};
};

constexpr ScheduleFacts schedule_facts(const ScheduleTable& table) {
  ScheduleFacts out{table.shape, {}, {}};
  for (int s = 0; s < table.shape.stages; ++s) out.stages.push_back(stage_facts(table, s));
  for (int c = 0; c < table.shape.num_chunks(); ++c) {
    out.chunks.push_back(chunk_facts(table, c));
    out.chunks.back().completed = num_completed_before(table, out.chunks.back().stage, c);
  }
  return out;
}

}  // namespace weft
