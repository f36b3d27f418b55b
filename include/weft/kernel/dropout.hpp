// SPDX-License-Identifier: Apache-2.0
// Dropout: the contract, and a plain implementation to test the others against.
// Source: N. Srivastava et al., JMLR 15, 2014.
#pragma once

#include "weft/random/stream.hpp"

namespace weft::kernel {

// An element is dropped if its word is below this: probability · 2^32.
constexpr std::uint32_t dropout_threshold(double probability) {
  const double words = probability * 0x1p32;
  return words >= 0x1p32 ? 0xffffffffu : std::uint32_t(words);
}

// y = kept ? x / (1 - probability) : 0. Whether element (r, c) is kept depends on the stream and on its place in the global batch,
// (first_row + r) · width + c: on nothing else, so every split of the batch draws the same mask.
// Shapes: x, y (rows, width). Requires 0 <= probability < 1. x == y may alias.
template <class Real>
inline void dropout_forward(Index rows, Index width, Index first_row, double probability, const random::Stream& stream, const Real* x,
                            Real* y) {
  const random::Words words(stream);
  const std::uint32_t threshold = dropout_threshold(probability);
  const Real scale = Real(1 / (1 - probability));
  for (Index i = 0; i < rows * width; ++i) {
    const bool kept = words[std::uint64_t(first_row * width + i)] >= threshold;
    y[i] = kept ? x[i] * scale : Real(0);
  }
}

// The same map: dx = kept ? dy / (1 - probability) : 0, with the mask of the forward pass drawn again. dy == dx may alias.
template <class Real>
inline void dropout_backward(Index rows, Index width, Index first_row, double probability, const random::Stream& stream, const Real* dy,
                             Real* dx) {
  dropout_forward(rows, width, first_row, probability, stream, dy, dx);
}

}  // namespace weft::kernel
