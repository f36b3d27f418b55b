// SPDX-License-Identifier: Apache-2.0
// Squared error: the contract, and a plain implementation to test the others against.
#pragma once

#include "weft/base/config.hpp"
#include "weft/kernel/loss_sum.hpp"

namespace weft::kernel {

// The loss is Σ (prediction - target)² over all elements, count = rows · width; dprediction = scale · 2 (prediction - target).
// Shapes: prediction, target, dprediction (rows, width). dprediction may be prediction, and null where only the loss is wanted.
template <class Real>
inline LossSum mean_squared_error(Index rows, Index width, const Real* prediction, const Real* target, Real scale, Real* dprediction) {
  LossSum sum{0, rows * width};
  for (Index i = 0; i < rows * width; ++i) {
    const Real difference = prediction[i] - target[i];
    sum.loss += double(difference) * double(difference);
    if (dprediction) dprediction[i] = Real(2) * scale * difference;
  }
  return sum;
}

}  // namespace weft::kernel
