// SPDX-License-Identifier: Apache-2.0
// Sums, copies and measures on vector registers; contracts in weft/kernel/elementwise.hpp.
#pragma once

#include <algorithm>

#include "weft/kernel/cpu/lanes.hpp"

namespace weft::kernel::cpu {

template <class Isa, class Real>
inline void add(Index n, const Real* a, const Real* b, Real* y) {
  map<Isa>(n, a, b, y, [](auto first, auto second) WEFT_ALWAYS_INLINE { return first + second; });
}

template <class Isa, class Real>
inline void copy_columns(Index rows, const Real* from, Index from_stride, Real* to, Index to_stride, Index width) {
  if (from_stride == width && to_stride == width) {
    std::copy_n(from, rows * width, to);
    return;
  }
  for (Index r = 0; r < rows; ++r) std::copy_n(from + r * from_stride, width, to + r * to_stride);
}

template <class Isa, class Real>
inline void add_columns(Index rows, const Real* from, Index from_stride, Real* to, Index to_stride, Index width) {
  for (Index r = 0; r < rows; ++r)
    add<Isa>(width, static_cast<const Real*>(to + r * to_stride), from + r * from_stride, to + r * to_stride);
}

// As many elements as fill a register of doubles, as doubles.
template <class Isa, class Real>
WEFT_ALWAYS_INLINE inline simd::Vector<Isa, double> load_doubles(const Real* from) {
  if constexpr (sizeof(Real) == 8) {
    return simd::load<Isa>(from);
  } else {
    typedef Real Half __attribute__((vector_size(Isa::register_bytes / 2)));
    Half value;
    __builtin_memcpy(&value, from, sizeof value);
    return __builtin_convertvector(value, simd::Vector<Isa, double>);
  }
}

template <class Isa, class Real>
inline double square_sum(Index n, const Real* x) {
  constexpr Index lanes = simd::lanes<Isa, double>;
  simd::Vector<Isa, double> total[4] = {};
  Index i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    for (Index part = 0; part < 4; ++part) {
      const auto value = load_doubles<Isa>(x + i + part * lanes);
      total[part] += value * value;
    }
  }
  double sum = simd::folded_sum<Isa, double>((total[0] + total[1]) + (total[2] + total[3]));
  for (; i < n; ++i) sum += double(x[i]) * double(x[i]);
  return sum;
}

// x · 0 is 0 for finite x, else NaN. Looks at the result now and then, so that a bad range is left early.
template <class Isa, class Real>
inline bool all_finite(Index n, const Real* x) {
  constexpr Index block = 4096;
  for (Index start = 0; start < n; start += block) {
    const Real* from = x + start;
    const auto sums = row_sums<1, Isa, Real>(std::min(block, n - start), [=](Index i, auto count, auto& total) WEFT_ALWAYS_INLINE {
      total[0] += get<Isa>(from + i, count) * Real(0);
    });
    if (!(sums.value[0] == Real(0))) return false;
  }
  return true;
}

}  // namespace weft::kernel::cpu
