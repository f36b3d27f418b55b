// SPDX-License-Identifier: Apache-2.0
// Squared error on vector registers; the contract is in weft/kernel/mean_squared_error.hpp.
#pragma once

#include "weft/kernel/cpu/elementwise.hpp"
#include "weft/kernel/loss_sum.hpp"

namespace weft::kernel::cpu {

// The loss is summed in double from the inputs as they are; the gradient, which may overwrite the prediction, follows.
template <class Isa, class Real>
inline LossSum mean_squared_error(Index rows, Index width, const Real* prediction, const Real* target, Real scale, Real* dprediction) {
  constexpr Index lanes = simd::lanes<Isa, double>;
  const Index n = rows * width;
  simd::Vector<Isa, double> first = {}, second = {};
  Index i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto a = load_doubles<Isa>(prediction + i) - load_doubles<Isa>(target + i);
    const auto b = load_doubles<Isa>(prediction + i + lanes) - load_doubles<Isa>(target + i + lanes);
    first += a * a;
    second += b * b;
  }
  LossSum sum{simd::folded_sum<Isa, double>(first + second), n};
  for (; i < n; ++i) {
    const double difference = double(prediction[i]) - double(target[i]);
    sum.loss += difference * difference;
  }
  if (dprediction) {
    const Real factor = Real(2) * scale;
    map<Isa>(n, prediction, target, dprediction, [=](auto p, auto t) WEFT_ALWAYS_INLINE { return factor * (p - t); });
  }
  return sum;
}

}  // namespace weft::kernel::cpu
