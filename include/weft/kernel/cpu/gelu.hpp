// SPDX-License-Identifier: Apache-2.0
// GELU on vector registers; contracts in weft/kernel/gelu.hpp.
//
// (1 + tanh u) / 2 is sigmoid(2u): one exp and one division, and no cancellation in the negative tail.
#pragma once

#include "weft/kernel/cpu/lanes.hpp"
#include "weft/kernel/gelu.hpp"
#include "weft/simd/math.hpp"

namespace weft::kernel::cpu {

// -2u = x (linear + cubic x²)
template <class Real>
inline constexpr Real gelu_linear_factor = Real(-2 * root_2_over_pi);
template <class Real>
inline constexpr Real gelu_cubic_factor = Real(-2 * root_2_over_pi * gelu_cubic);

template <class Isa, class Real>
inline void gelu_tanh_forward(Index n, const Real* x, Real* y) {
  map<Isa>(n, x, y, [](auto v) WEFT_ALWAYS_INLINE {
    return v / (Real(1) + simd::exp<Isa, Real>(v * (gelu_linear_factor<Real> + gelu_cubic_factor<Real> * v * v)));
  });
}

template <class Isa, class Real>
inline void gelu_tanh_backward(Index n, const Real* x, const Real* dy, Real* dx) {
  map<Isa>(n, x, dy, dx, [](auto v, auto gradient) WEFT_ALWAYS_INLINE {
    // Beyond ±10 the slope is 0 or 1 in either type, and exp(-2u) would leave float's range.
    v = simd::at_most<Isa, Real>(Real(10), simd::at_least<Isa, Real>(Real(-10), v));
    const auto square = v * v, decay = simd::exp<Isa, Real>(v * (gelu_linear_factor<Real> + gelu_cubic_factor<Real> * square));
    const auto s = Real(1) / (Real(1) + decay);  // 1 - s = decay · s, without cancellation
    return gradient * (s - v * (decay * s) * s * (gelu_linear_factor<Real> + Real(3) * gelu_cubic_factor<Real> * square));
  });
}

template <class Isa, class Real>
inline void gelu_erf_forward(Index n, const Real* x, Real* y) {
  map<Isa>(n, x, y, [](auto v) WEFT_ALWAYS_INLINE { return v * simd::normal<Isa, Real>(v).cumulative; });
}

template <class Isa, class Real>
inline void gelu_erf_backward(Index n, const Real* x, const Real* dy, Real* dx) {
  map<Isa>(n, x, dy, dx, [](auto v, auto gradient) WEFT_ALWAYS_INLINE {
    const auto [cumulative, density] = simd::normal<Isa, Real>(v);
    return gradient * (cumulative + v * density);
  });
}

}  // namespace weft::kernel::cpu
