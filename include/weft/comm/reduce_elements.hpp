// SPDX-License-Identifier: Apache-2.0
// The arithmetic of reductions: many equal-length arrays into one result, in the order of the arrays, written to one or more places.
#pragma once

#include <type_traits>

#include "weft/dtype/bfloat16.hpp"
#include "weft/dtype/float16.hpp"
#include "weft/layout/call.hpp"
#include "weft/simd/vector.hpp"

namespace weft::comm {

// What a reduction is carried in: 16-bit floats in float, rounded once at the end; all else in itself.
template <class T>
using Accumulator = std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;

// Each combines numbers and vector registers alike. Integers wrap around, as unsigned ones do.
struct Sum {
  template <class V>
  static V combine(V total, V next) {
    if constexpr (std::is_integral_v<V>)
      return static_cast<V>(static_cast<std::uint64_t>(total) + static_cast<std::uint64_t>(next));
    else
      return total + next;
  }
};

struct Product {
  template <class V>
  static V combine(V total, V next) {
    if constexpr (std::is_integral_v<V>)
      return static_cast<V>(static_cast<std::uint64_t>(total) * static_cast<std::uint64_t>(next));
    else
      return total * next;
  }
};

// A NaN on any rank stays: it enters by `next != next` and no comparison with it removes it.
struct Minimum {
  template <class V>
  static V combine(V total, V next) {
    if constexpr (std::is_arithmetic_v<V>)
      return next < total || next != next ? next : total;
    else
      return simd::select((next < total) | (next != next), next, total);
  }
};

struct Maximum {
  template <class V>
  static V combine(V total, V next) {
    if constexpr (std::is_arithmetic_v<V>)
      return next > total || next != next ? next : total;
    else
      return simd::select((next > total) | (next != next), next, total);
  }
};

// For element i: targets[0..num_targets)[i] = combination of sources[0..num_sources)[i]; divided by `divisor` unless that is 1.
// A target may be a source: an element is read from all sources before it is written.
template <class Isa, class Combine, class T>
void combine_elements(Index count, int num_sources, const T* const* sources, int num_targets, T* const* targets, int divisor) {
  Index i = 0;
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    constexpr Index lanes = simd::lanes<Isa, T>, step = 4 * lanes;
    using Register = simd::Vector<Isa, T>;
    const Register by = simd::broadcast<Isa>(T(divisor));
    for (; i + step <= count; i += step) {
      Register a = simd::load<Isa>(sources[0] + i), b = simd::load<Isa>(sources[0] + i + lanes);
      Register c = simd::load<Isa>(sources[0] + i + 2 * lanes), d = simd::load<Isa>(sources[0] + i + 3 * lanes);
      for (int s = 1; s < num_sources; ++s) {
        const T* from = sources[s] + i;
        a = Combine::combine(a, simd::load<Isa>(from));
        b = Combine::combine(b, simd::load<Isa>(from + lanes));
        c = Combine::combine(c, simd::load<Isa>(from + 2 * lanes));
        d = Combine::combine(d, simd::load<Isa>(from + 3 * lanes));
      }
      if (divisor != 1) a /= by, b /= by, c /= by, d /= by;
      for (int t = 0; t < num_targets; ++t) {
        T* to = targets[t] + i;
        simd::store<Isa>(to, a);
        simd::store<Isa>(to + lanes, b);
        simd::store<Isa>(to + 2 * lanes, c);
        simd::store<Isa>(to + 3 * lanes, d);
      }
    }
  } else {
    // A block at a time, so that the compiler sees loops over plain arrays.
    constexpr Index block = 64;
    Accumulator<T> total[block];
    for (; i + block <= count; i += block) {
      for (Index j = 0; j < block; ++j) total[j] = static_cast<Accumulator<T>>(sources[0][i + j]);
      for (int s = 1; s < num_sources; ++s)
        for (Index j = 0; j < block; ++j) total[j] = Combine::combine(total[j], static_cast<Accumulator<T>>(sources[s][i + j]));
      if (divisor != 1)
        for (Index j = 0; j < block; ++j) total[j] = static_cast<Accumulator<T>>(total[j] / static_cast<Accumulator<T>>(divisor));
      for (int t = 0; t < num_targets; ++t)
        for (Index j = 0; j < block; ++j) targets[t][i + j] = static_cast<T>(total[j]);
    }
  }
  for (; i < count; ++i) {
    auto total = static_cast<Accumulator<T>>(sources[0][i]);
    for (int s = 1; s < num_sources; ++s) total = Combine::combine(total, static_cast<Accumulator<T>>(sources[s][i]));
    if (divisor != 1) total = static_cast<Accumulator<T>>(total / static_cast<Accumulator<T>>(divisor));
    for (int t = 0; t < num_targets; ++t) targets[t][i] = static_cast<T>(total);
  }
}

// average: the sum divided by the number of sources.
template <class Isa, class T>
void reduce_elements(Reduction reduction, Index count, int num_sources, const T* const* sources, int num_targets, T* const* targets) {
  switch (reduction) {
    case Reduction::sum: return combine_elements<Isa, Sum>(count, num_sources, sources, num_targets, targets, 1);
    case Reduction::product: return combine_elements<Isa, Product>(count, num_sources, sources, num_targets, targets, 1);
    case Reduction::minimum: return combine_elements<Isa, Minimum>(count, num_sources, sources, num_targets, targets, 1);
    case Reduction::maximum: return combine_elements<Isa, Maximum>(count, num_sources, sources, num_targets, targets, 1);
    case Reduction::average: return combine_elements<Isa, Sum>(count, num_sources, sources, num_targets, targets, num_sources);
  }
}

}  // namespace weft::comm
