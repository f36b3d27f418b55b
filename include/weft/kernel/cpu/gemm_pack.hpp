// SPDX-License-Identifier: Apache-2.0
// Operands of a matrix product copied into panels: what a tile reads then lies in the order in which it is read.
#pragma once

#include <algorithm>
#include <type_traits>

#include "weft/simd/vector.hpp"

namespace weft::kernel::cpu {

// The side of the blocks that transpose_block exchanges: as many elements as 16 bytes hold, the unit within which shuffles are cheap.
template <class Real>
inline constexpr Index transpose_depth = simd::lanes<simd::Generic, Real>;

// `to[p · to_stride + r] = from[r · from_stride + p]` for r < lanes of Isa, p < transpose_depth.
// Isa: Generic (one block of 16 bytes a row) or Avx2 (two blocks side by side).
template <class Isa, class Real>
inline void transpose_block(const Real* from, Index from_stride, Real* to, Index to_stride) {
  constexpr Index depth = transpose_depth<Real>;
  const auto row = [&](Index r) {
    const auto low = simd::load<simd::Generic>(from + r * from_stride);
    if constexpr (simd::lanes<Isa, Real> == depth) {
      return low;
    } else {
      const auto high = simd::load<simd::Generic>(from + (r + depth) * from_stride);
      if constexpr (depth == 4)
        return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
      else
        return __builtin_shufflevector(low, high, 0, 1, 2, 3);
    }
  };
  const auto put = [&](Index p, simd::Vector<Isa, Real> value) { simd::store<Isa>(to + p * to_stride, value); };
  if constexpr (depth == 4 && simd::lanes<Isa, Real> == 4) {
    const auto r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
    const auto low01 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5), high01 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
    const auto low23 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5), high23 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
    put(0, __builtin_shufflevector(low01, low23, 0, 1, 4, 5)), put(1, __builtin_shufflevector(low01, low23, 2, 3, 6, 7));
    put(2, __builtin_shufflevector(high01, high23, 0, 1, 4, 5)), put(3, __builtin_shufflevector(high01, high23, 2, 3, 6, 7));
  } else if constexpr (depth == 4) {
    const auto r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
    const auto low01 = __builtin_shufflevector(r0, r1, 0, 8, 1, 9, 4, 12, 5, 13);
    const auto high01 = __builtin_shufflevector(r0, r1, 2, 10, 3, 11, 6, 14, 7, 15);
    const auto low23 = __builtin_shufflevector(r2, r3, 0, 8, 1, 9, 4, 12, 5, 13);
    const auto high23 = __builtin_shufflevector(r2, r3, 2, 10, 3, 11, 6, 14, 7, 15);
    put(0, __builtin_shufflevector(low01, low23, 0, 1, 8, 9, 4, 5, 12, 13));
    put(1, __builtin_shufflevector(low01, low23, 2, 3, 10, 11, 6, 7, 14, 15));
    put(2, __builtin_shufflevector(high01, high23, 0, 1, 8, 9, 4, 5, 12, 13));
    put(3, __builtin_shufflevector(high01, high23, 2, 3, 10, 11, 6, 7, 14, 15));
  } else if constexpr (simd::lanes<Isa, Real> == 2) {
    const auto r0 = row(0), r1 = row(1);
    put(0, __builtin_shufflevector(r0, r1, 0, 2)), put(1, __builtin_shufflevector(r0, r1, 1, 3));
  } else {
    const auto r0 = row(0), r1 = row(1);
    put(0, __builtin_shufflevector(r0, r1, 0, 4, 2, 6)), put(1, __builtin_shufflevector(r0, r1, 1, 5, 3, 7));
  }
}

// `to[p · to_stride + j] = from[j · from_stride + p]` for j < width, p < depth.
// A line of cache is read whole while it is there (16 elements of each row), however many rows share its place in the cache.
template <class Isa, class Real>
inline void pack_exchanged(Index width, Index depth, const Real* from, Index from_stride, Real* to, Index to_stride) {
  using Wide = std::conditional_t<(Isa::register_bytes >= simd::Avx2::register_bytes), simd::Avx2, simd::Generic>;
  constexpr Index block = transpose_depth<Real>, wide = simd::lanes<Wide, Real>, line = 16;
  const Index whole_depth = depth / block * block;
  Index j = 0;
  for (Index start = 0; start < whole_depth; start += line) {
    const Index end = std::min(start + line, whole_depth);
    for (j = 0; j + wide <= width; j += wide) {
      for (Index p = start; p < end; p += block) {
        transpose_block<Wide>(from + j * from_stride + p, from_stride, to + p * to_stride + j, to_stride);
      }
    }
    for (; j + block <= width; j += block) {
      for (Index p = start; p < end; p += block) {
        transpose_block<simd::Generic>(from + j * from_stride + p, from_stride, to + p * to_stride + j, to_stride);
      }
    }
  }
  for (; j < width; ++j) {
    for (Index p = 0; p < whole_depth; ++p) to[p * to_stride + j] = from[j * from_stride + p];
  }
  for (Index p = whole_depth; p < depth; ++p) {
    for (j = 0; j < width; ++j) to[p * to_stride + j] = from[j * from_stride + p];
  }
}

// `to[p · Width + j] = from[p · from_stride + j]` for j < width, p < depth.
template <class Isa, Index Width, class Real>
inline void pack_rows(Index width, Index depth, const Real* from, Index from_stride, Real* to) {
  using Chunk = std::conditional_t<Width % simd::lanes<Isa, Real> == 0, Isa, simd::Generic>;
  constexpr Index chunk = simd::lanes<Chunk, Real>;
  for (Index p = 0; p < depth; ++p) {
    const Real* const row = from + p * from_stride;
    Real* const out = to + p * Width;
    Index j = 0;
    if (width == Width) {
      for (; j + chunk <= Width; j += chunk) simd::store<Chunk>(out + j, simd::load<Chunk>(row + j));
    }
    for (; j < width; ++j) out[j] = row[j];
  }
}

// One panel, Width apart from one depth to the next: op(from)(j, p) for j < width, zero for width <= j < padded.
// rows: from(j, p) is at from[p · stride + j]; otherwise at from[j · stride + p].
template <class Isa, Index Width, class Real>
inline void pack_panel(bool rows, Index width, Index padded, Index depth, const Real* from, Index stride, Real* to) {
  if (rows) {
    pack_rows<Isa, Width>(width, depth, from, stride, to);
  } else {
    pack_exchanged<Isa>(width, depth, from, stride, to, Width);
  }
  for (Index j = width; j < padded; ++j) {
    for (Index p = 0; p < depth; ++p) to[p * Width + j] = 0;
  }
}

}  // namespace weft::kernel::cpu
