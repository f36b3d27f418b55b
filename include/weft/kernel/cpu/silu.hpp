// SPDX-License-Identifier: Apache-2.0
// SiLU on vector registers; contracts in weft/kernel/silu.hpp.
#pragma once

#include "weft/kernel/cpu/lanes.hpp"
#include "weft/simd/math.hpp"

namespace weft::kernel::cpu {

template <class Isa, class Real>
inline void silu_forward(Index n, const Real* x, Real* y) {
  map<Isa>(n, x, y, [](auto v) WEFT_ALWAYS_INLINE { return v / (Real(1) + simd::exp<Isa, Real>(-v)); });
}

template <class Isa, class Real>
inline void silu_backward(Index n, const Real* x, const Real* dy, Real* dx) {
  map<Isa>(n, x, dy, dx, [](auto v, auto gradient) WEFT_ALWAYS_INLINE {
    const auto s = simd::sigmoid<Isa, Real>(v);
    return gradient * s * (Real(1) + v * (Real(1) - s));
  });
}

}  // namespace weft::kernel::cpu
