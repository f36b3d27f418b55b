// SPDX-License-Identifier: Apache-2.0
// Zero-bubble schedules (Qi et al., arXiv 2401.10241): backward in two parts. The gradient of the input is what the stage before waits for;
// that of the weights waits until there is nothing else to do.
#pragma once

#include "weft/schedule/table.hpp"

namespace weft::schedule {

// Stage s begins with `warm_up(s)` forwards; then, for each micro-batch: the input part of its backward, the weight part of the micro-batch
// `lag(s)` before it, and the next forward.
template <class WarmUp, class Lag>
constexpr ScheduleTable zero_bubble_table(ScheduleShape shape, WarmUp&& warm_up, Lag&& lag) {
  ScheduleTable out = empty_table(shape);
  const int m = shape.micros;
  for (int s = 0; s < shape.stages; ++s) {
    ActionRow& row = out.rows[std::size_t(s)];
    const int ahead = warm_up(s) < m ? warm_up(s) : m;
    for (int i = 0; i < ahead; ++i) row.push_back({ActionKind::forward, s, i});
    int weights = 0;
    for (int i = 0; i < m; ++i) {
      row.push_back({ActionKind::backward_input, s, i});
      if (i >= lag(s)) row.push_back({ActionKind::backward_weight, s, weights++});
      if (ahead + i < m) row.push_back({ActionKind::forward, s, ahead + i});
    }
    while (weights < m) row.push_back({ActionKind::backward_weight, s, weights++});
  }
  return out;
}

// As much memory as 1F1B on its first stage; the bubble is (p-1)·(T_F + T_B - T_W) instead of (p-1)·(T_F + T_B + T_W), for m >= p
// micro-batches.
//   2 stages, 3 micro-batches (I, W: the input and the weight part):
//   stage 0   0F0 0F1     0I0 0W0 0F2 0I1     0W1 0I2 0W2
//   stage 1       1F0 1I0 1F1     1I1 1W0 1F2 1I2 1W1 1W2
struct ZeroBubbleH1 {
  static constexpr const char* name = "zero_bubble_h1";
  static constexpr int version = 1;

  static constexpr ScheduleTable table(ScheduleShape shape) {
    const int p = shape.stages;
    return zero_bubble_table(
        shape, [p](int s) { return p - s; }, [](int s) { return s; });
  }
};

// Up to twice the memory: stage i holds 2p-2i-1 micro-batches between forward and the input part. The bubble is (p-1)·(T_F + T_B - 2·T_W),
// none if all are equal, for m >= 2p-1.
struct ZeroBubbleH2 {
  static constexpr const char* name = "zero_bubble_h2";
  static constexpr int version = 1;

  static constexpr ScheduleTable table(ScheduleShape shape) {
    const int p = shape.stages;
    return zero_bubble_table(
        shape, [p](int s) { return 2 * (p - s) - 1; }, [](int s) { return 2 * s; });
  }
};

// Two chunks a stage, laid out as a V: stage i holds chunks i and 2p-1-i, so that the loss is on stage 0 and the first stages know it
// soonest. No bubble if the three parts take equal time and m >= 2p-1, with the memory of 1F1B.
struct ZeroBubbleV {
  static constexpr const char* name = "zero_bubble_v";
  static constexpr int version = 1;
  static constexpr int chunks = 2;

  static constexpr ScheduleTable table(ScheduleShape shape) {
    ScheduleTable out{shape, {}, std::vector<ActionRow>(std::size_t(shape.stages))};
    if (shape.chunks_per_stage != 2) return {};
    const int p = shape.stages;
    for (int c = 0; c < 2 * p; ++c) out.stage_of_chunk.push_back(c < p ? c : 2 * p - 1 - c);
    for (int s = 0; s < p; ++s) out.rows[std::size_t(s)] = RowOf{shape.micros, s, 2 * p - 1 - s}.write(p);
    return out;
  }

 private:
  // A stage's row; down: its chunk on the way down the V, up: on the way up.
  struct RowOf {
    int micros, down, up;
    ActionRow row{};
    int num_forward[2]{}, num_input[2]{}, num_weight[2]{};  // down, up

    constexpr void add(ActionKind kind, int side, int& count, int limit) {
      if (count < limit) row.push_back({kind, side == 0 ? down : up, count++});
    }
    constexpr void forward(int side) { add(ActionKind::forward, side, num_forward[side], micros); }
    constexpr void input(int side) { add(ActionKind::backward_input, side, num_input[side], micros); }
    constexpr void weight(int side) { add(ActionKind::backward_weight, side, num_weight[side], num_input[side]); }
    constexpr void backward(int side) { input(side), weight(side); }

    constexpr ActionRow write(int p) {
      const int s = down;
      for (int i = 0; i < 2 * (p - s) - 1; ++i) forward(0);
      for (int i = 0; i < s; ++i) forward(1), forward(0);
      for (int i = 0; i < p - s; ++i) forward(1), backward(1);
      while (num_forward[1] < num_forward[0] || num_forward[0] < micros) forward(0), backward(0), forward(1), backward(1);
      for (int i = 0; i < s; ++i) input(0), input(1);
      for (int i = 0; i < p - s; ++i) backward(0);
      while (num_input[1] < micros) input(1);
      while (num_input[0] < micros) input(0);
      while (num_weight[1] < micros) weight(1);
      while (num_weight[0] < micros) weight(0);
      return row;
    }
  };
};

}  // namespace weft::schedule
