// SPDX-License-Identifier: Apache-2.0
// Rotary positions: the contract, and a plain implementation to test the others against.
#pragma once

#include <cmath>
#include <string>

#include "weft/base/config.hpp"
#include "weft/base/error.hpp"

namespace weft::kernel {

inline void check_rotary(Index head_size) {
  if (head_size % 2 != 0) {
    throw Error("rotary.head_size",
                "rotary positions turn pairs of features; the head size must be even, but is " + std::to_string(head_size));
  }
}

// The angle of pair i at position 1, θ^(−2i/D); at position t it is t times that.
inline double rotary_frequency(Index i, Index head_size, double theta) { return std::pow(theta, -2.0 * double(i) / double(head_size)); }

// Turns the pairs (i, i + D/2) of the row's leading `heads` heads by direction · t · θ^(−2i/D), t = past + s for row s of a sequence.
template <class Real>
inline void rotate_pairs(Index batch, Index sequence, Index past, Index heads, Index head_size, Index row_stride, double theta,
                         double direction, Real* x) {
  check_rotary(head_size);
  const Index half = head_size / 2;
  for (Index b = 0; b < batch; ++b) {
    for (Index s = 0; s < sequence; ++s) {
      for (Index h = 0; h < heads; ++h) {
        Real* const head = x + (b * sequence + s) * row_stride + h * head_size;  // (D)
        for (Index i = 0; i < half; ++i) {
          const double angle = double(past + s) * rotary_frequency(i, head_size, theta);
          const Real cosine = Real(std::cos(angle)), sine = Real(direction * std::sin(angle)), first = head[i], second = head[i + half];
          head[i] = first * cosine - second * sine;
          head[i + half] = second * cosine + first * sine;
        }
      }
    }
  }
}

// Shapes: x (B·S, row_stride) in place; the leading heads · D features of a row are turned, the others left alone. Row s of a sequence has
// position past + s. Angles are computed in double; the convention of pairs is Llama's rotate-half.
// Errors: rotary.head_size.
// Cost: 6 flops a pair; cosines and sines once a position and pair.
// Source: J. Su et al., RoFormer, arXiv 2104.09864.
template <class Real>
inline void rotary_forward(Index batch, Index sequence, Index past, Index heads, Index head_size, Index row_stride, double theta, Real* x) {
  rotate_pairs(batch, sequence, past, heads, head_size, row_stride, theta, 1.0, x);
}

// dx from dy in place: the inverse rotation.
template <class Real>
inline void rotary_backward(Index batch, Index sequence, Index past, Index heads, Index head_size, Index row_stride, double theta,
                            Real* dx) {
  rotate_pairs(batch, sequence, past, heads, head_size, row_stride, theta, -1.0, dx);
}

}  // namespace weft::kernel
