// SPDX-License-Identifier: Apache-2.0
// The correctly rounded square root of every lane. By the instruction itself: with the compilers' default of setting errno, a loop of
// std::sqrt stays scalar, and <immintrin.h> costs every includer more than the rest of simd/ together.
#pragma once

#include <cmath>

#include "weft/simd/vector.hpp"

namespace weft::simd {

// NaN for negative lanes; -0 stays -0.
template <class Isa, class T>
WEFT_ALWAYS_INLINE inline Vector<Isa, T> sqrt(Vector<Isa, T> x) {
  Vector<Isa, T> root;
#if defined(__x86_64__) && defined(__AVX512VL__)  // with VL, registers of every width may be any of the 32
  if constexpr (sizeof(T) == 4)
    asm("vsqrtps %1, %0" : "=v"(root) : "v"(x));
  else
    asm("vsqrtpd %1, %0" : "=v"(root) : "v"(x));
#elif defined(__x86_64__) && defined(__AVX__)
  static_assert(Isa::register_bytes <= 32, "weft[simd.isa]: the file is compiled without AVX-512; use simd::Native");
  if constexpr (sizeof(T) == 4)
    asm("vsqrtps %1, %0" : "=x"(root) : "x"(x));
  else
    asm("vsqrtpd %1, %0" : "=x"(root) : "x"(x));
#elif defined(__x86_64__)
  static_assert(Isa::register_bytes <= 16, "weft[simd.isa]: the file is compiled without AVX; use simd::Native");
  if constexpr (sizeof(T) == 4)
    asm("sqrtps %1, %0" : "=x"(root) : "x"(x));
  else
    asm("sqrtpd %1, %0" : "=x"(root) : "x"(x));
#else
  for (Index i = 0; i < lanes<Isa, T>; ++i) root[i] = std::sqrt(x[i]);
#endif
  return root;
}

}  // namespace weft::simd
