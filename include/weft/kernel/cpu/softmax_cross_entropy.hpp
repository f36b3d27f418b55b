// SPDX-License-Identifier: Apache-2.0
// Softmax and cross-entropy on vector registers; the contract is in weft/kernel/softmax_cross_entropy.hpp.
#pragma once

#include <algorithm>
#include <cmath>

#include "weft/kernel/cpu/lanes.hpp"
#include "weft/kernel/loss_sum.hpp"
#include "weft/simd/math.hpp"

namespace weft::kernel::cpu {

// Σ exp(x - most) over a row; the exponentials are kept in `weights` unless it is null. weights may be x.
template <class Isa, class Real>
inline Real exponential_sum(Index width, const Real* x, Real most, Real* weights) {
  constexpr Real least = -std::numeric_limits<Real>::infinity();
  const auto sums = weights ? row_sums<1, Isa, Real>(width,
                                                     [=](Index i, auto count, auto& total) WEFT_ALWAYS_INLINE {
                                                       const auto weight = simd::exp<Isa, Real>(get<Isa>(x + i, count, least) - most);
                                                       put<Isa>(weights + i, weight, count);
                                                       total[0] += weight;
                                                     })
                            : row_sums<1, Isa, Real>(width, [=](Index i, auto count, auto& total) WEFT_ALWAYS_INLINE {
                                total[0] += simd::exp<Isa, Real>(get<Isa>(x + i, count, least) - most);
                              });
  return sums.value[0];
}

// Three passes over a row: its largest, the exponentials and their sum, the gradient.
template <class Isa, class Real>
inline LossSum softmax_cross_entropy(Index rows, Index classes, const Real* logits, const std::int32_t* targets, std::int32_t ignored,
                                     Real smoothing, Real scale, Real* dlogits) {
  LossSum sum;
  for (Index r = 0; r < rows; ++r) {
    const Real* row = logits + r * classes;                 // (V)
    Real* out = dlogits ? dlogits + r * classes : nullptr;  // (V)
    if (targets[r] == ignored) {
      if (out) std::fill_n(out, classes, Real(0));
      continue;
    }
    const Index target = targets[r];
    const Real most = row_maximum<Isa>(classes, row);
    const double at_target = double(row[target]) - double(most);
    double uniform_part = 0;
    if (smoothing != Real(0)) {
      const auto sums = row_sums<1, Isa, Real>(
          classes, [=](Index i, auto count, auto& total) WEFT_ALWAYS_INLINE { total[0] += get<Isa>(row + i, count, most) - most; });
      uniform_part = double(smoothing) * double(sums.value[0]) / double(classes);
    }
    const Real total = exponential_sum<Isa>(classes, row, most, out);
    sum.loss += std::log(double(total)) - (1 - double(smoothing)) * at_target - uniform_part;
    ++sum.count;
    if (!out) continue;
    const Real factor = scale / total, offset = scale * smoothing / Real(classes);
    map<Isa>(classes, static_cast<const Real*>(out), out, [=](auto weight) WEFT_ALWAYS_INLINE { return weight * factor - offset; });
    out[target] -= scale * (Real(1) - smoothing);
  }
  return sum;
}

}  // namespace weft::kernel::cpu
