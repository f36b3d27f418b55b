// SPDX-License-Identifier: Apache-2.0
// One vector register as a value, on the compilers' vector extensions: + - * / and comparisons are the operators of the language.
// g++ 12 leaves clamped polynomial loops scalar (its reason: trapping mathematics); these types make the vector explicit.
#pragma once

#include <cstring>

#include "weft/simd/isa.hpp"

namespace weft::simd {

template <Index Bytes>
struct IntegerOf;
template <>
struct IntegerOf<4> {
  using type = std::int32_t;
};
template <>
struct IntegerOf<8> {
  using type = std::int64_t;
};

template <class Isa, class T>
struct VectorOf {
  static constexpr Index lanes = Isa::register_bytes / Index(sizeof(T));
  typedef T type __attribute__((vector_size(Isa::register_bytes)));
  typedef T unaligned __attribute__((vector_size(Isa::register_bytes), aligned(alignof(T)), may_alias));
};

// Vector<Isa, float>: register_bytes / 4 lanes. Mask<Isa, float>: lanes of int32, all ones where true (what `a < b` gives).
template <class Isa, class T>
using Vector = typename VectorOf<Isa, T>::type;
template <class Isa, class T>
using Mask = typename VectorOf<Isa, typename IntegerOf<Index(sizeof(T))>::type>::type;
template <class Isa, class T>
inline constexpr Index lanes = VectorOf<Isa, T>::lanes;

template <class Isa, class T>
inline Vector<Isa, T> load(const T* from) {
  return *reinterpret_cast<const typename VectorOf<Isa, T>::unaligned*>(from);
}
template <class Isa, class T>
inline void store(T* to, Vector<Isa, T> value) {
  *reinterpret_cast<typename VectorOf<Isa, T>::unaligned*>(to) = value;
}

// All lanes equal to x.
template <class Isa, class T>
inline Vector<Isa, T> broadcast(T x) {
  return x - Vector<Isa, T>{};
}

// The first `count` lanes from and to memory, never touching what lies beyond them. The loops are for any machine; x86 has masked
// instructions, to which g++ 12 turns these loops only now and then.
template <class Isa, class T>
struct PartialAccess {
  static Vector<Isa, T> load(const T* from, Index count, T fill) {
    alignas(Isa::register_bytes) T lane[lanes<Isa, T>];
    for (Index i = 0; i < lanes<Isa, T>; ++i) lane[i] = i < count ? from[i] : fill;
    return simd::load<Isa>(static_cast<const T*>(lane));
  }
  static void store(T* to, Vector<Isa, T> value, Index count) {
    for (Index i = 0; i < lanes<Isa, T>; ++i) {
      if (i < count) to[i] = value[i];
    }
  }
};
#if defined(__AVX512F__)
template <>
struct PartialAccess<Avx512, float> {
  using V = Vector<Avx512, float>;
  static WEFT_ALWAYS_INLINE V load(const float* from, Index count, float fill) {
    return __builtin_ia32_loadups512_mask(from, broadcast<Avx512>(fill), std::uint16_t((1u << count) - 1));
  }
  static WEFT_ALWAYS_INLINE void store(float* to, V value, Index count) {
    __builtin_ia32_storeups512_mask(to, value, std::uint16_t((1u << count) - 1));
  }
};
template <>
struct PartialAccess<Avx512, double> {
  using V = Vector<Avx512, double>;
  static WEFT_ALWAYS_INLINE V load(const double* from, Index count, double fill) {
    return __builtin_ia32_loadupd512_mask(from, broadcast<Avx512>(fill), std::uint8_t((1u << count) - 1));
  }
  static WEFT_ALWAYS_INLINE void store(double* to, V value, Index count) {
    __builtin_ia32_storeupd512_mask(to, value, std::uint8_t((1u << count) - 1));
  }
};
#endif
#if defined(__AVX2__)
template <>
struct PartialAccess<Avx2, float> {
  using V = Vector<Avx2, float>;
  static WEFT_ALWAYS_INLINE Mask<Avx2, float> first(Index count) { return Mask<Avx2, float>{0, 1, 2, 3, 4, 5, 6, 7} < std::int32_t(count); }
  static WEFT_ALWAYS_INLINE V load(const float* from, Index count, float fill) {
    const V value = __builtin_ia32_maskloadps256(reinterpret_cast<const V*>(from), first(count));
    return first(count) ? value : broadcast<Avx2>(fill);
  }
  static WEFT_ALWAYS_INLINE void store(float* to, V value, Index count) {
    __builtin_ia32_maskstoreps256(reinterpret_cast<V*>(to), first(count), value);
  }
};
template <>
struct PartialAccess<Avx2, double> {
  using V = Vector<Avx2, double>;
  typedef long long Places __attribute__((vector_size(32)));
  static WEFT_ALWAYS_INLINE Mask<Avx2, double> first(Index count) { return Mask<Avx2, double>{0, 1, 2, 3} < std::int64_t(count); }
  static WEFT_ALWAYS_INLINE V load(const double* from, Index count, double fill) {
    const V value = __builtin_ia32_maskloadpd256(reinterpret_cast<const V*>(from), Places(first(count)));
    return first(count) ? value : broadcast<Avx2>(fill);
  }
  static WEFT_ALWAYS_INLINE void store(double* to, V value, Index count) {
    __builtin_ia32_maskstorepd256(reinterpret_cast<V*>(to), Places(first(count)), value);
  }
};
#endif

// The first `count` lanes from memory, the others `fill`; 0 <= count <= lanes.
template <class Isa, class T>
WEFT_ALWAYS_INLINE inline Vector<Isa, T> load_first(const T* from, Index count, T fill = T(0)) {
  return PartialAccess<Isa, T>::load(from, count, fill);
}
template <class Isa, class T>
WEFT_ALWAYS_INLINE inline void store_first(T* to, Vector<Isa, T> value, Index count) {
  PartialAccess<Isa, T>::store(to, value, count);
}

// mask ? a : b, lane by lane.
template <class V, class M>
inline V select(M mask, V a, V b) {
  return mask ? a : b;
}

// Lane 0 first: a fixed order, so that a sum repeats bit for bit.
template <class Isa, class T>
inline T sum(Vector<Isa, T> value) {
  T total = value[0];
  for (Index i = 1; i < lanes<Isa, T>; ++i) total += value[i];
  return total;
}
template <class Isa, class T>
inline T maximum(Vector<Isa, T> value) {
  T most = value[0];
  for (Index i = 1; i < lanes<Isa, T>; ++i) most = value[i] > most ? value[i] : most;
  return most;
}

}  // namespace weft::simd
