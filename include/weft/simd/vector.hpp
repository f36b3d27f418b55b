// SPDX-License-Identifier: Apache-2.0
// One vector register as a value, on the compilers' vector extensions: + - * / and comparisons are the operators of the language.
// g++ 12 leaves clamped polynomial loops scalar (its reason: trapping mathematics); these types make the vector explicit.
#pragma once

#include <cstring>

#include "weft/simd/isa.hpp"

namespace weft::simd {

template <Index Bytes> struct IntegerOf;
template <> struct IntegerOf<4> { using type = std::int32_t; };
template <> struct IntegerOf<8> { using type = std::int64_t; };

template <class Isa, class T>
struct VectorOf {
  static constexpr Index lanes = Isa::register_bytes / Index(sizeof(T));
  typedef T type __attribute__((vector_size(Isa::register_bytes)));
  typedef T unaligned __attribute__((vector_size(Isa::register_bytes), aligned(alignof(T)), may_alias));
};

// Vector<Isa, float>: register_bytes / 4 lanes. Mask<Isa, float>: lanes of int32, all ones where true (what `a < b` gives).
template <class Isa, class T> using Vector = typename VectorOf<Isa, T>::type;
template <class Isa, class T> using Mask = typename VectorOf<Isa, typename IntegerOf<Index(sizeof(T))>::type>::type;
template <class Isa, class T> inline constexpr Index lanes = VectorOf<Isa, T>::lanes;

template <class Isa, class T>
inline Vector<Isa, T> load(const T* from) { return *reinterpret_cast<const typename VectorOf<Isa, T>::unaligned*>(from); }
template <class Isa, class T>
inline void store(T* to, Vector<Isa, T> value) { *reinterpret_cast<typename VectorOf<Isa, T>::unaligned*>(to) = value; }

// All lanes equal to x.
template <class Isa, class T>
inline Vector<Isa, T> broadcast(T x) { return x - Vector<Isa, T>{}; }

// The first `count` lanes from memory, the others `fill`; 0 <= count <= lanes. Never touches memory beyond them.
template <class Isa, class T>
inline Vector<Isa, T> load_first(const T* from, Index count, T fill = T(0)) {
  alignas(Isa::register_bytes) T lane[lanes<Isa, T>];
  for (Index i = 0; i < lanes<Isa, T>; ++i) lane[i] = i < count ? from[i] : fill;
  return load<Isa>(static_cast<const T*>(lane));
}
template <class Isa, class T>
inline void store_first(T* to, Vector<Isa, T> value, Index count) {
  for (Index i = 0; i < count; ++i) to[i] = value[i];
}

// mask ? a : b, lane by lane.
template <class V, class M>
inline V select(M mask, V a, V b) { return mask ? a : b; }

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
