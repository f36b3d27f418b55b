// SPDX-License-Identifier: Apache-2.0
// Linear map y = x Wᵀ + b: the contract, and a plain implementation to test the others against.
#pragma once

#include "weft/kernel/gemm.hpp"

namespace weft::kernel {

// y = x Wᵀ + bias + residual.
// Shapes: x (rows, in), weight (out, in), bias (out) or null, residual (rows, out) or null, y (rows, out). residual may be y itself.
template <class Real>
inline void linear_forward(Index rows, Index in, Index out, const Real* x, const Real* weight, const Real* bias, const Real* residual,
                           Real* y) {
  for (Index r = 0; r < rows; ++r) {
    for (Index o = 0; o < out; ++o) {
      Real sum = 0;
      for (Index i = 0; i < in; ++i) sum += x[r * in + i] * weight[o * in + i];
      if (residual) sum += residual[r * out + o];
      if (bias) sum += bias[o];
      y[r * out + o] = sum;
    }
  }
}

// dx = dy W, or dx += dy W.
// Shapes: dy (rows, out), weight (out, in), dx (rows, in).
template <class Real>
inline void linear_backward_input(Index rows, Index in, Index out, const Real* dy, const Real* weight, Real* dx, bool accumulate) {
  gemm(Transpose::no, Transpose::no, rows, in, out, dy, out, weight, in, accumulate, dx, in);
}

// dweight += dyᵀ x; dbias += the sum of dy's rows. Both are added to.
// Shapes: x (rows, in), dy (rows, out), dweight (out, in), dbias (out) or null.
template <class Real>
inline void linear_backward_weight(Index rows, Index in, Index out, const Real* x, const Real* dy, Real* dweight, Real* dbias) {
  gemm(Transpose::yes, Transpose::no, out, in, rows, dy, out, x, in, true, dweight, in);
  if (!dbias) return;
  for (Index o = 0; o < out; ++o) {
    Real sum = 0;
    for (Index r = 0; r < rows; ++r) sum += dy[r * out + o];
    dbias[o] += sum;
  }
}

}  // namespace weft::kernel
