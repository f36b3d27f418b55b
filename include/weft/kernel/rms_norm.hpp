// SPDX-License-Identifier: Apache-2.0
// Normalisation by the root of the mean square: the contract, and a plain implementation to test the others against.
// Source: B. Zhang, R. Sennrich, arXiv 1910.07467.
#pragma once

#include <cmath>

#include "weft/base/config.hpp"

namespace weft::kernel {

// y = x · rstd · gain, rstd = 1 / √(average(x²) + epsilon).
// Shapes: x, y (rows, width); gain (width); rstd (rows), kept for backward. x == y may alias.
template <class Real>
inline void rms_norm_forward(Index rows, Index width, Real epsilon, const Real* x, const Real* gain, Real* y, Real* rstd) {
  for (Index r = 0; r < rows; ++r) {
    double square_sum = 0;
    for (Index c = 0; c < width; ++c) square_sum += double(x[r * width + c]) * double(x[r * width + c]);
    rstd[r] = Real(1 / std::sqrt(square_sum / double(width) + double(epsilon)));
    for (Index c = 0; c < width; ++c) y[r * width + c] = x[r * width + c] * rstd[r] * gain[c];
  }
}

// With x̂ = x · rstd and g = dy · gain: dx = rstd · (g - x̂ · average(g x̂)), dgain += Σ rows dy x̂.
// dx is added to if `accumulate`, else overwritten; it may be dy, and null where nobody needs it.
template <class Real>
inline void rms_norm_backward(Index rows, Index width, const Real* x, const Real* gain, const Real* rstd, const Real* dy, Real* dx,
                              Real* dgain, bool accumulate) {
  for (Index r = 0; r < rows; ++r) {
    double product_sum = 0;
    for (Index c = 0; c < width; ++c) product_sum += double(dy[r * width + c] * gain[c] * (x[r * width + c] * rstd[r]));
    const Real product_average = Real(product_sum / double(width));
    for (Index c = 0; c < width; ++c) {
      const Real gradient = dy[r * width + c], normal = x[r * width + c] * rstd[r];
      dgain[c] += gradient * normal;
      if (dx) {
        const Real value = rstd[r] * (gradient * gain[c] - normal * product_average);
        dx[r * width + c] = accumulate ? dx[r * width + c] + value : value;
      }
    }
  }
}

}  // namespace weft::kernel
