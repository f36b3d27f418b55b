// SPDX-License-Identifier: Apache-2.0
// SiLU, x · sigmoid(x): the contract, and a plain implementation to test the others against.
// Source: S. Elfwing, E. Uchibe, K. Doya, arXiv 1702.03118.
#pragma once

#include <cmath>

#include "weft/base/config.hpp"

namespace weft::kernel {

// Shapes: x, y (n). x == y may alias.
template <class Real>
inline void silu_forward(Index n, const Real* x, Real* y) {
  for (Index i = 0; i < n; ++i) y[i] = x[i] / (Real(1) + std::exp(-x[i]));
}

// dx = dy · s (1 + x (1 - s)), s = sigmoid(x), from the *input* x. dy == dx may alias.
template <class Real>
inline void silu_backward(Index n, const Real* x, const Real* dy, Real* dx) {
  for (Index i = 0; i < n; ++i) {
    const Real s = Real(1) / (Real(1) + std::exp(-x[i]));
    dx[i] = dy[i] * s * (Real(1) + x[i] * (Real(1) - s));
  }
}

}  // namespace weft::kernel
