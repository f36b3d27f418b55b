// SPDX-License-Identifier: Apache-2.0
// ReLU on vector registers; contracts in weft/kernel/relu.hpp.
#pragma once

#include "weft/kernel/cpu/lanes.hpp"

namespace weft::kernel::cpu {

template <class Isa, class Real>
inline void relu_forward(Index n, const Real* x, Real* y) {
  map<Isa>(n, x, y, [](auto v) WEFT_ALWAYS_INLINE { return v < Real(0) ? decltype(v){} : v; });
}

template <class Isa, class Real>
inline void relu_backward(Index n, const Real* y, const Real* dy, Real* dx) {
  map<Isa>(n, y, dy, dx, [](auto v, auto gradient) WEFT_ALWAYS_INLINE { return v > Real(0) ? gradient : decltype(v){}; });
}

}  // namespace weft::kernel::cpu
