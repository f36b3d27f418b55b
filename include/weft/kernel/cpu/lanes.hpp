// SPDX-License-Identifier: Apache-2.0
// Loops over a range or a row by whole registers, with the rest that does not fill one. Every place of the range runs through the same
// expression, so an element's value does not depend on where the registers start.
#pragma once

#include <limits>
#include <type_traits>

#include "weft/simd/reduce.hpp"
#include "weft/simd/vector.hpp"

namespace weft::kernel::cpu {

// A register's worth as a compile-time count; a shorter count is a plain Index.
template <class Isa, class Real>
using FullCount = std::integral_constant<Index, simd::lanes<Isa, Real>>;

template <class Isa, class Real>
WEFT_ALWAYS_INLINE inline simd::Vector<Isa, Real> get(const Real* from, FullCount<Isa, Real>, Real = Real(0)) {
  return simd::load<Isa>(from);
}
template <class Isa, class Real>
WEFT_ALWAYS_INLINE inline simd::Vector<Isa, Real> get(const Real* from, Index count, Real fill = Real(0)) {
  return simd::load_first<Isa>(from, count, fill);
}
template <class Isa, class Real>
WEFT_ALWAYS_INLINE inline void put(Real* to, simd::Vector<Isa, Real> value, FullCount<Isa, Real>) {
  simd::store<Isa>(to, value);
}
template <class Isa, class Real>
WEFT_ALWAYS_INLINE inline void put(Real* to, simd::Vector<Isa, Real> value, Index count) {
  simd::store_first<Isa>(to, value, count);
}

// body(i, count) for i = 0, lanes, 2 · lanes, …; count says how many elements from i on there are.
template <class Isa, class Real, class Body>
WEFT_ALWAYS_INLINE inline void for_lanes(Index n, Body body) {
  constexpr Index lanes = simd::lanes<Isa, Real>;
  Index i = 0;
  for (; i + lanes <= n; i += lanes) body(i, FullCount<Isa, Real>{});
  if (i < n) body(i, n - i);
}

// y[i] = f(x[i]), or f(a[i], b[i]); the output may be any of the inputs.
template <class Isa, class Real, class Function>
WEFT_ALWAYS_INLINE inline void map(Index n, const Real* x, Real* y, Function f) {
  for_lanes<Isa, Real>(n, [=](Index i, auto count) WEFT_ALWAYS_INLINE { put<Isa>(y + i, f(get<Isa>(x + i, count)), count); });
}
template <class Isa, class Real, class Function>
WEFT_ALWAYS_INLINE inline void map(Index n, const Real* a, const Real* b, Real* y, Function f) {
  for_lanes<Isa, Real>(
      n, [=](Index i, auto count) WEFT_ALWAYS_INLINE { put<Isa>(y + i, f(get<Isa>(a + i, count), get<Isa>(b + i, count)), count); });
}

// Sums over a row: add(i, count, total) adds lane-wise terms to total[0 … NumSums); terms of lanes beyond `count` must be 0.
// Four partial totals, because an addition's latency is four times its cost.
template <Index NumSums, class Real>
struct RowSums {
  Real value[NumSums];
};
template <Index NumSums, class Isa, class Real, class Add>
WEFT_ALWAYS_INLINE inline RowSums<NumSums, Real> row_sums(Index width, Add add) {
  constexpr Index lanes = simd::lanes<Isa, Real>;
  constexpr FullCount<Isa, Real> full;
  simd::Vector<Isa, Real> total[4][NumSums] = {};
  Index i = 0;
  for (; i + 4 * lanes <= width; i += 4 * lanes) {
    add(i, full, total[0]);
    add(i + lanes, full, total[1]);
    add(i + 2 * lanes, full, total[2]);
    add(i + 3 * lanes, full, total[3]);
  }
  for (; i + lanes <= width; i += lanes) add(i, full, total[0]);
  if (i < width) add(i, width - i, total[1]);
  RowSums<NumSums, Real> sums;
  for (Index s = 0; s < NumSums; ++s) {
    sums.value[s] = simd::folded_sum<Isa, Real>((total[0][s] + total[1][s]) + (total[2][s] + total[3][s]));
  }
  return sums;
}

template <class Isa, class Real>
WEFT_ALWAYS_INLINE inline Real row_maximum(Index width, const Real* x) {
  constexpr Index lanes = simd::lanes<Isa, Real>;
  constexpr Real least = -std::numeric_limits<Real>::infinity();
  simd::Vector<Isa, Real> first = simd::broadcast<Isa>(least), second = first;
  const auto larger = [](auto a, auto b) WEFT_ALWAYS_INLINE { return a > b ? a : b; };
  Index i = 0;
  for (; i + 2 * lanes <= width; i += 2 * lanes) {
    first = larger(simd::load<Isa>(x + i), first);
    second = larger(simd::load<Isa>(x + i + lanes), second);
  }
  if (i + lanes <= width) {
    first = larger(simd::load<Isa>(x + i), first);
    i += lanes;
  }
  if (i < width) second = larger(simd::load_first<Isa>(x + i, width - i, least), second);
  return simd::folded_maximum<Isa, Real>(larger(first, second));
}

}  // namespace weft::kernel::cpu
