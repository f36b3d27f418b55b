// SPDX-License-Identifier: Apache-2.0
// SwiGLU on vector registers; contracts in weft/kernel/swiglu.hpp.
#pragma once

#include "weft/kernel/cpu/lanes.hpp"
#include "weft/simd/math.hpp"

namespace weft::kernel::cpu {

template <class Isa, class Real>
inline void swiglu_forward(Index rows, Index width, const Real* x, Real* y) {
  for (Index r = 0; r < rows; ++r) {
    const Real* gate = x + r * 2 * width;
    map<Isa>(width, gate, gate + width, y + r * width,
             [](auto g, auto up) WEFT_ALWAYS_INLINE { return g / (Real(1) + simd::exp<Isa, Real>(-g)) * up; });
  }
}

template <class Isa, class Real>
inline void swiglu_backward(Index rows, Index width, const Real* x, const Real* dy, Real* dx) {
  for (Index r = 0; r < rows; ++r) {
    const Real *gate = x + r * 2 * width, *up = gate + width, *gradient = dy + r * width;  // (width)
    Real *dgate = dx + r * 2 * width, *dup = dgate + width;                                // (width)
    for_lanes<Isa, Real>(width, [=](Index i, auto count) WEFT_ALWAYS_INLINE {
      const auto g = get<Isa>(gate + i, count), u = get<Isa>(up + i, count), d = get<Isa>(gradient + i, count);
      const auto s = simd::sigmoid<Isa, Real>(g);
      put<Isa>(dgate + i, d * u * s * (Real(1) + g * (Real(1) - s)), count);
      put<Isa>(dup + i, d * g * s, count);
    });
  }
}

}  // namespace weft::kernel::cpu
