// SPDX-License-Identifier: Apache-2.0
// ReLU: the contract, and a plain implementation to test the others against.
#pragma once

#include "weft/base/config.hpp"

namespace weft::kernel {

// Shapes: x, y (n). y = max(x, 0); NaN stays NaN. x == y may alias.
template <class Real>
inline void relu_forward(Index n, const Real* x, Real* y) {
  for (Index i = 0; i < n; ++i) y[i] = x[i] < Real(0) ? Real(0) : x[i];
}

// dx = dy where the *output* y was positive, else 0. dy == dx may alias.
template <class Real>
inline void relu_backward(Index n, const Real* y, const Real* dy, Real* dx) {
  for (Index i = 0; i < n; ++i) dx[i] = y[i] > Real(0) ? dy[i] : Real(0);
}

}  // namespace weft::kernel
