// SPDX-License-Identifier: Apache-2.0
// GELU in both forms: the contracts, and plain implementations to test the others against.
// Source: D. Hendrycks, K. Gimpel, Gaussian Error Linear Units, arXiv 1606.08415.
#pragma once

#include <cmath>

#include "weft/base/config.hpp"

namespace weft::kernel {

inline constexpr double root_2_over_pi = 0.79788456080286536, root_half = 0.70710678118654752, root_1_over_2pi = 0.39894228040143268;
inline constexpr double gelu_cubic = 0.044715;

// Shapes: x, y (n). y = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), GPT-2's form. x == y may alias.
template <class Real>
inline void gelu_tanh_forward(Index n, const Real* x, Real* y) {
  for (Index i = 0; i < n; ++i) {
    const Real u = Real(root_2_over_pi) * (x[i] + Real(gelu_cubic) * x[i] * x[i] * x[i]);
    y[i] = Real(0.5) * x[i] * (Real(1) + std::tanh(u));
  }
}

// dx = dy · dy/dx at the *input* x; 0 or 1 times dy where tanh has saturated, at ±infinity too. dy == dx may alias.
template <class Real>
inline void gelu_tanh_backward(Index n, const Real* x, const Real* dy, Real* dx) {
  for (Index i = 0; i < n; ++i) {
    const Real u = Real(root_2_over_pi) * (x[i] + Real(gelu_cubic) * x[i] * x[i] * x[i]);
    const Real du = Real(root_2_over_pi) * (Real(1) + Real(3 * gelu_cubic) * x[i] * x[i]);
    const Real t = std::tanh(u), slope = Real(1) - t * t;
    dx[i] = dy[i] * Real(0.5) * (Real(1) + t + (slope == Real(0) ? Real(0) : x[i] * slope * du));
  }
}

// Shapes: x, y (n). y = x · Φ(x) with the normal distribution Φ(x) = (1 + erf(x/√2)) / 2. x == y may alias.
template <class Real>
inline void gelu_erf_forward(Index n, const Real* x, Real* y) {
  for (Index i = 0; i < n; ++i) y[i] = Real(0.5) * x[i] * std::erfc(-x[i] * Real(root_half));
}

// dx = dy · (Φ(x) + x φ(x)) at the *input* x, φ the normal density. dy == dx may alias.
template <class Real>
inline void gelu_erf_backward(Index n, const Real* x, const Real* dy, Real* dx) {
  for (Index i = 0; i < n; ++i) {
    const Real cumulative = Real(0.5) * std::erfc(-x[i] * Real(root_half));
    const Real density = Real(root_1_over_2pi) * std::exp(Real(-0.5) * x[i] * x[i]);
    dx[i] = dy[i] * (cumulative + x[i] * density);
  }
}

}  // namespace weft::kernel
