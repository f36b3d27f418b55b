// SPDX-License-Identifier: Apache-2.0
// Neighbouring lanes taken apart, and single precision read as double.
#pragma once

#include "weft/simd/vector.hpp"

namespace weft::simd {

// Of the 2 · lanes elements at `from`: those at even (Odd = 0) or odd (Odd = 1) places, in order.
template <class Isa, int Odd, class T>
inline Vector<Isa, T> load_every_second(const T* from) {
  const Vector<Isa, T> a = load<Isa>(from), b = load<Isa>(from + lanes<Isa, T>);
  constexpr int o = Odd;  // the indices are spelled out: nvcc's front end does not keep a pack of them
  if constexpr (lanes<Isa, T> == 2) {
    return __builtin_shufflevector(a, b, o, o + 2);
  } else if constexpr (lanes<Isa, T> == 4) {
    return __builtin_shufflevector(a, b, o, o + 2, o + 4, o + 6);
  } else if constexpr (lanes<Isa, T> == 8) {
    return __builtin_shufflevector(a, b, o, o + 2, o + 4, o + 6, o + 8, o + 10, o + 12, o + 14);
  } else {
    static_assert(lanes<Isa, T> == 16, "load_every_second knows registers of 2, 4, 8 and 16 lanes");
    return __builtin_shufflevector(a, b, o, o + 2, o + 4, o + 6, o + 8, o + 10, o + 12, o + 14, o + 16, o + 18, o + 20, o + 22, o + 24,
                                   o + 26, o + 28, o + 30);
  }
}

// lanes<Isa, double> elements, each as double.
template <class Isa, class T>
inline Vector<Isa, double> load_as_double(const T* from) {
  typedef T Narrow __attribute__((vector_size(lanes<Isa, double> * Index(sizeof(T))), aligned(alignof(T)), may_alias));
  return __builtin_convertvector(*reinterpret_cast<const Narrow*>(from), Vector<Isa, double>);
}

}  // namespace weft::simd
