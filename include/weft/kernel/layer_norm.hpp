// SPDX-License-Identifier: Apache-2.0
// Layer normalisation: the contract, and a plain implementation to test the others against.
// Source: J. Ba, J. Kiros, G. Hinton, arXiv 1607.06450.
#pragma once

#include <cmath>

#include "weft/base/config.hpp"

namespace weft::kernel {

// y = (x - mean) · rstd · gain + shift, with the biased variance: rstd = 1 / √(variance + epsilon).
// Shapes: x, y (rows, width); gain, shift (width); mean, rstd (rows), kept for backward. x == y may alias.
template <class Real>
inline void layer_norm_forward(Index rows, Index width, Real epsilon, const Real* x, const Real* gain, const Real* shift, Real* y,
                               Real* mean, Real* rstd) {
  for (Index r = 0; r < rows; ++r) {
    const Real* row = x + r * width;  // (width)
    double sum = 0, square_sum = 0;
    for (Index c = 0; c < width; ++c) sum += double(row[c]);
    const double average = sum / double(width);
    for (Index c = 0; c < width; ++c) square_sum += (double(row[c]) - average) * (double(row[c]) - average);
    mean[r] = Real(average);
    rstd[r] = Real(1 / std::sqrt(square_sum / double(width) + double(epsilon)));
    for (Index c = 0; c < width; ++c) y[r * width + c] = (row[c] - mean[r]) * rstd[r] * gain[c] + shift[c];
  }
}

// With x̂ = (x - mean) · rstd and g = dy · gain: dx = rstd · (g - average(g) - x̂ · average(g x̂)), dgain += Σ rows dy x̂, dshift += Σ rows dy.
// dx is added to if `accumulate`, else overwritten; it may be dy, and null where nobody needs it.
template <class Real>
inline void layer_norm_backward(Index rows, Index width, const Real* x, const Real* gain, const Real* mean, const Real* rstd,
                                const Real* dy, Real* dx, Real* dgain, Real* dshift, bool accumulate) {
  for (Index r = 0; r < rows; ++r) {
    double sum = 0, product_sum = 0;
    for (Index c = 0; c < width; ++c) {
      const Real normal = (x[r * width + c] - mean[r]) * rstd[r], g = dy[r * width + c] * gain[c];
      sum += double(g);
      product_sum += double(g * normal);
    }
    const Real average = Real(sum / double(width)), product_average = Real(product_sum / double(width));
    for (Index c = 0; c < width; ++c) {
      const Real gradient = dy[r * width + c], normal = (x[r * width + c] - mean[r]) * rstd[r];
      dgain[c] += gradient * normal;
      dshift[c] += gradient;
      if (dx) {
        const Real value = rstd[r] * (gradient * gain[c] - average - normal * product_average);
        dx[r * width + c] = accumulate ? dx[r * width + c] + value : value;
      }
    }
  }
}

}  // namespace weft::kernel
