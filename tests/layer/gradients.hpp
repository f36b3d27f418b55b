// SPDX-License-Identifier: Apache-2.0
// Small data for gradient checks of layers.
#pragma once

#include <weft/plan.hpp>
#include <weft/run/check_gradients.hpp>

#include <doctest/doctest.h>

namespace weft::test {

inline double wave(Index i) { return std::sin(0.37 * double(i * i % 97) + 0.1 * double(i)); }

// Rows of numbers (features), classes or numbers as targets.
template <class Model>
auto rows_of(Index batch, Index sequence) {
  return [=](auto& micro) {
    const GraphData graph = lower<Model>();
    micro.leading = {batch, sequence, 0};
    micro.first_item = micro.number * batch;
    const Index first = micro.first_item * sequence;
    const Index in = graph.input.elems(), out = graph.output.elems(), rows = batch * sequence;
    for (Index i = 0; i < rows * in; ++i) {
      if (graph.input.element == Element::token)
        micro.tokens()[i] = std::int32_t((first + i) * 5 % 7);
      else
        micro.values()[i] = wave(first * in + i);
    }
    for (Index i = 0; i < rows; ++i) micro.integer_targets()[i] = (first + i) % 5 == 4 ? -100 : std::int32_t((first + i) * 3 % out);
  };
}

// Gradients of the cross-entropy of a model; dropout and statistics included.
template <class Model, class Loss = SoftmaxCrossEntropy<>>
void check(const char* what, Index batch = 3, Index sequence = 1, Index num_micros = 1, double tolerance = 2e-6) {
  const GradientCheck found = check_gradients<Model, Loss>({.global = batch * num_micros, .micro = batch, .sequence = sequence},
                                                           rows_of<Model>(batch, sequence), {.num_micros = num_micros});
  CHECK(found.num_checked > 0);
  CHECK_MESSAGE(found.worst < tolerance, what << ": " << found.worst << " at " << found.where);
}

}  // namespace weft::test
