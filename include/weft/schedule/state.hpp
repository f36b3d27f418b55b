// SPDX-License-Identifier: Apache-2.0
// What has been done of every (chunk, micro-batch) while a table is played.
#pragma once

#include "weft/schedule/table.hpp"

namespace weft {

class ScheduleState {
 public:
  // backward: the gradient of the chunk's input is there. arrived: what another stage sent is there.
  enum Mark : unsigned char { forward = 1, backward = 2, weight = 4, input_arrived = 8, gradient_arrived = 16 };

  // through_messages: what another stage makes is there when its message has arrived, else as soon as it is made.
  constexpr ScheduleState(const ScheduleTable& table, bool through_messages)
      : micros_(table.shape.micros),
        last_(table.shape.num_chunks() - 1),
        arrives_(std::size_t(table.shape.num_chunks())),
        marks_(std::size_t(table.shape.num_chunks()) * std::size_t(table.shape.micros)) {
    for (int c = 1; c <= last_ && through_messages; ++c)
      arrives_[std::size_t(c)] = table.stage_of_chunk[std::size_t(c - 1)] != table.stage_of_chunk[std::size_t(c)];
  }
  ScheduleState(const ScheduleState&) = delete;
  ScheduleState& operator=(const ScheduleState&) = delete;

  constexpr int cell(int chunk, int micro) const { return chunk * micros_ + micro; }
  constexpr int last_chunk() const { return last_; }
  // Whether what goes from chunk - 1 to chunk, and back, comes by message.
  constexpr bool arrives(int chunk) const { return arrives_[std::size_t(chunk)]; }
  constexpr bool has(Mark mark, int chunk, int micro) const { return marks_[std::size_t(cell(chunk, micro))] & mark; }
  constexpr void set(Mark mark, int chunk, int micro) {
    unsigned char& marks = marks_[std::size_t(cell(chunk, micro))];
    marks = static_cast<unsigned char>(marks | mark);
  }

  // Of computations. Few statements: this is what the compiler does most.
  constexpr bool is_ready(const Action& action) const {
    const unsigned char* const marks = marks_.data() + cell(action.chunk, action.micro);
    if (action.kind == ActionKind::forward)
      return action.chunk == 0 || (arrives_.data()[action.chunk] ? *marks & input_arrived : marks[-micros_] & forward);
    if (action.kind == ActionKind::backward_weight) return *marks & backward;
    return (*marks & forward) &&
           (action.chunk == last_ || (arrives_.data()[action.chunk + 1] ? *marks & gradient_arrived : marks[micros_] & backward));
  }
  constexpr void finish(const Action& action) {
    unsigned char& marks = marks_.data()[cell(action.chunk, action.micro)];
    marks = static_cast<unsigned char>(marks | made[int(action.kind)]);
  }

 private:
  static constexpr unsigned char made[] = {forward, backward | weight, backward, weight};  // by kind

  int micros_, last_;
  LeanVector<bool> arrives_;
  LeanVector<unsigned char> marks_;  // by (chunk, micro-batch)
};

}  // namespace weft
