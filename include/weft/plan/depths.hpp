// SPDX-License-Identifier: Apache-2.0
// How many micro-batches a stage holds at once: the smallest modulus by which slots can be reused without collision.
#pragma once

#include "weft/base/constexpr_vector.hpp"
#include "weft/schedule/table.hpp"

namespace weft {

// Lifetimes by micro-batch, as places in a row of actions. A micro-batch without one never begins.
struct Lifetimes {
  std::vector<int> begin{}, end{};

  constexpr explicit Lifetimes(int micros) : begin(filled(micros, -1)), end(filled(micros, -1)) {}

  constexpr void touch(int micro, int place) {
    int& first = begin[std::size_t(micro)];
    if (first < 0) first = place;
    end[std::size_t(micro)] = place;
  }

  // Micro-batches m and m + k · depth never live at the same time.
  constexpr bool fits(int depth) const {
    const int n = int(begin.size());
    for (int m = 0; m < n; ++m)
      for (int other = m + depth; other < n; other += depth) {
        if (begin[std::size_t(m)] < 0 || begin[std::size_t(other)] < 0) continue;
        if (end[std::size_t(m)] >= begin[std::size_t(other)] && end[std::size_t(other)] >= begin[std::size_t(m)]) return false;
        if (begin[std::size_t(other)] > end[std::size_t(m)]) break;  // in order: those behind begin later still
      }
    return true;
  }
  constexpr int depth() const {
    int depth = 1;
    while (!fits(depth)) ++depth;
    return depth;
  }
};

// The places of a row's actions in time: messages side by side are under way at once.
constexpr std::vector<int> places_in_time(const ActionRow& row) {
  std::vector<int> out;
  int place = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i > 0 && !(is_message(row[i].kind) && is_message(row[i - 1].kind))) ++place;
    out.push_back(place);
  }
  return out;
}

// What a stage holds of a chunk: activations from forward on, what came in from the chunk before, the gradient that comes back; all until
// backward has ended. weights: gradients that the weight part needs, from the input part (or from the loss) on.
struct ChunkLifetimes {
  Lifetimes activations, inputs, gradients, weights;

  constexpr ChunkLifetimes(const ActionRow& row, int chunk, bool has_loss, int micros) : activations(micros), inputs(micros), gradients(micros), weights(micros) {
    const std::vector<int> places = places_in_time(row);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto [kind, c, m] = row[i];
      const int place = places[i];
      const bool backward = is_compute(kind) && kind != ActionKind::forward;
      // What neighbours on the same stage hand over is there as soon as it is made.
      if (kind == ActionKind::forward && c == chunk - 1) inputs.touch(m, place);
      if (backward && kind != ActionKind::backward_weight && c == chunk + 1) gradients.touch(m, place);
      if (c != chunk || m < 0) continue;
      if (kind == ActionKind::forward || kind == ActionKind::send_forward || backward) activations.touch(m, place);
      if ((kind == ActionKind::forward && has_loss) || backward) weights.touch(m, place);
      if (kind == ActionKind::receive_forward || kind == ActionKind::forward || backward) inputs.touch(m, place);
      if (kind == ActionKind::receive_backward || kind == ActionKind::send_backward || backward) gradients.touch(m, place);
    }
  }
};

// Micro-batches whose inputs and targets a stage holds: they are read in order, when the first action on one needs them.
constexpr int input_depth(const ActionRow& row, int micros) {
  Lifetimes inputs(micros);
  int read = 0;
  for (int i = 0; i < int(row.size()); ++i) {
    if (row[std::size_t(i)].micro < 0) continue;
    for (; read <= row[std::size_t(i)].micro; ++read) inputs.touch(read, i);
    inputs.touch(row[std::size_t(i)].micro, i);
  }
  return inputs.depth();
}

}  // namespace weft
