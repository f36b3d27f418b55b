// SPDX-License-Identifier: Apache-2.0
// The lanes of a register folded into one value by halves: lane i with lane i + half, until one is left. A fixed order of log2(lanes)
// dependent steps, where simd::sum takes lanes - 1.
#pragma once

#include "weft/simd/vector.hpp"

namespace weft::simd {

template <class T, Index NumLanes>
struct Fold {
  typedef T Whole __attribute__((vector_size(NumLanes * Index(sizeof(T)))));
  typedef T Half __attribute__((vector_size(NumLanes / 2 * Index(sizeof(T)))));
  struct Halves {
    Half low, high;
  };

  static WEFT_ALWAYS_INLINE T sum(Whole value) {
    if constexpr (sizeof(Whole) == 16) {
      T total = value[0] + value[NumLanes / 2];
      for (Index i = 1; i < NumLanes / 2; ++i) total += value[i] + value[i + NumLanes / 2];
      return total;
    } else {
      Halves halves;
      __builtin_memcpy(&halves, &value, sizeof value);
      return Fold<T, NumLanes / 2>::sum(halves.low + halves.high);
    }
  }
  static WEFT_ALWAYS_INLINE T maximum(Whole value) {
    if constexpr (sizeof(Whole) == 16) {
      T most = value[0];
      for (Index i = 1; i < NumLanes; ++i) most = value[i] > most ? value[i] : most;
      return most;
    } else {
      Halves halves;
      __builtin_memcpy(&halves, &value, sizeof value);
      return Fold<T, NumLanes / 2>::maximum(halves.low > halves.high ? halves.low : halves.high);
    }
  }
};

template <class Isa, class T>
WEFT_ALWAYS_INLINE inline T folded_sum(Vector<Isa, T> value) {
  return Fold<T, lanes<Isa, T>>::sum(value);
}
template <class Isa, class T>
WEFT_ALWAYS_INLINE inline T folded_maximum(Vector<Isa, T> value) {
  return Fold<T, lanes<Isa, T>>::maximum(value);
}

}  // namespace weft::simd
