// SPDX-License-Identifier: Apache-2.0
// SwiGLU without its projections, silu(gate) · up: the contract, and a plain implementation to test the others against.
// Source: N. Shazeer, GLU Variants Improve Transformer, arXiv 2002.05202.
#pragma once

#include <cmath>

#include "weft/base/config.hpp"

namespace weft::kernel {

// Shapes: x (rows, 2 · width): a row is gate | up; y (rows, width).
template <class Real>
inline void swiglu_forward(Index rows, Index width, const Real* x, Real* y) {
  for (Index r = 0; r < rows; ++r) {
    const Real *gate = x + r * 2 * width, *up = gate + width;  // (width)
    for (Index c = 0; c < width; ++c) y[r * width + c] = gate[c] / (Real(1) + std::exp(-gate[c])) * up[c];
  }
}

// dx (rows, 2 · width) is overwritten; x and dx do not alias dy (rows, width), dx may be x.
template <class Real>
inline void swiglu_backward(Index rows, Index width, const Real* x, const Real* dy, Real* dx) {
  for (Index r = 0; r < rows; ++r) {
    for (Index c = 0; c < width; ++c) {
      const Real gate = x[r * 2 * width + c], up = x[r * 2 * width + width + c], gradient = dy[r * width + c];
      const Real s = Real(1) / (Real(1) + std::exp(-gate));
      dx[r * 2 * width + c] = gradient * up * s * (Real(1) + gate * (Real(1) - s));
      dx[r * 2 * width + width + c] = gradient * gate * s;
    }
  }
}

}  // namespace weft::kernel
