// SPDX-License-Identifier: Apache-2.0
// What has been done of every (chunk, micro-batch) while a table is played.
#pragma once

#include "weft/schedule/table.hpp"

namespace weft {

class ScheduleState {
 public:
  // backward: the gradient of the chunk's input is there. arrived: what another stage sent is there.
  enum Mark : unsigned char { forward = 1, backward = 2, weight = 4, input_arrived = 8, gradient_arrived = 16 };

  constexpr explicit ScheduleState(const ScheduleShape& shape)
      : micros_(shape.micros), last_(shape.num_chunks() - 1), marks_(std::size_t(shape.num_chunks()) * std::size_t(shape.micros)) {}

  constexpr std::size_t cell(int chunk, int micro) const { return std::size_t(chunk) * std::size_t(micros_) + std::size_t(micro); }
  constexpr bool has(Mark mark, int chunk, int micro) const { return marks_[cell(chunk, micro)] & mark; }
  constexpr void set(Mark mark, int chunk, int micro) {
    unsigned char& marks = marks_[cell(chunk, micro)];
    marks = static_cast<unsigned char>(marks | mark);
  }
  constexpr int last_chunk() const { return last_; }

  // Whether what an action reads has been made, wherever.
  constexpr bool is_ready(const Action& action) const {
    const int c = action.chunk, m = action.micro;
    switch (action.kind) {
      case ActionKind::forward: return c == 0 || has(forward, c - 1, m);
      case ActionKind::backward:
      case ActionKind::backward_input: return has(forward, c, m) && (c == last_ || has(backward, c + 1, m));
      case ActionKind::backward_weight: return has(backward, c, m);
      default: return true;
    }
  }
  constexpr void finish(const Action& action) {
    switch (action.kind) {
      case ActionKind::forward: return set(forward, action.chunk, action.micro);
      case ActionKind::backward: return set(Mark(backward | weight), action.chunk, action.micro);
      case ActionKind::backward_input: return set(backward, action.chunk, action.micro);
      case ActionKind::backward_weight: return set(weight, action.chunk, action.micro);
      default: return;
    }
  }

 private:
  int micros_, last_;
  LeanVector<unsigned char> marks_;
};

}  // namespace weft
