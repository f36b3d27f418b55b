// SPDX-License-Identifier: Apache-2.0
// Operands of a matrix product copied into panels: what a tile reads then lies in the order in which it is read.
#pragma once

#include "weft/simd/vector.hpp"

namespace weft::kernel::cpu {

// A 4 × 4 or 2 × 2 block with rows and columns exchanged, in 16-byte registers: `to[p][r] = from[r][p]`.
template <class Real>
inline void transpose_block(const Real* from, Index from_stride, Real* to, Index to_stride) {
  using simd::Generic;
  if constexpr (simd::lanes<Generic, Real> == 4) {
    const auto r0 = simd::load<Generic>(from), r1 = simd::load<Generic>(from + from_stride);
    const auto r2 = simd::load<Generic>(from + 2 * from_stride), r3 = simd::load<Generic>(from + 3 * from_stride);
    const auto low01 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5), high01 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
    const auto low23 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5), high23 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
    simd::store<Generic, Real>(to, __builtin_shufflevector(low01, low23, 0, 1, 4, 5));
    simd::store<Generic, Real>(to + to_stride, __builtin_shufflevector(low01, low23, 2, 3, 6, 7));
    simd::store<Generic, Real>(to + 2 * to_stride, __builtin_shufflevector(high01, high23, 0, 1, 4, 5));
    simd::store<Generic, Real>(to + 3 * to_stride, __builtin_shufflevector(high01, high23, 2, 3, 6, 7));
  } else {
    const auto r0 = simd::load<Generic>(from), r1 = simd::load<Generic>(from + from_stride);
    simd::store<Generic, Real>(to, __builtin_shufflevector(r0, r1, 0, 2));
    simd::store<Generic, Real>(to + to_stride, __builtin_shufflevector(r0, r1, 1, 3));
  }
}

// One panel: to[p · Width + j] = op(from)(j, p) for j < width, zero for width <= j < padded. Width is the panel's stride.
// contiguous: from(j, p) is at from[p · stride + j] (a copy of rows); otherwise at from[j · stride + p] (rows and columns exchanged).
template <Index Width, class Real>
inline void pack_panel(bool contiguous, Index width, Index padded, Index depth, const Real* from, Index stride, Real* to) {
  constexpr Index block = simd::lanes<simd::Generic, Real>;
  if (width < padded) {
    for (Index p = 0; p < depth; ++p) {
      for (Index j = width; j < padded; ++j) to[p * Width + j] = 0;
    }
  }
  if (contiguous) {
    if (width == Width) {
      for (Index p = 0; p < depth; ++p) {
        for (Index j = 0; j < Width; ++j) to[p * Width + j] = from[p * stride + j];
      }
    } else {
      for (Index p = 0; p < depth; ++p) {
        for (Index j = 0; j < width; ++j) to[p * Width + j] = from[p * stride + j];
      }
    }
    return;
  }
  const Index whole_width = width / block * block, whole_depth = depth / block * block;
  for (Index p = 0; p < whole_depth; p += block) {
    for (Index j = 0; j < whole_width; j += block) transpose_block(from + j * stride + p, stride, to + p * Width + j, Width);
  }
  for (Index p = 0; p < depth; ++p) {
    for (Index j = p < whole_depth ? whole_width : 0; j < width; ++j) to[p * Width + j] = from[j * stride + p];
  }
}

}  // namespace weft::kernel::cpu
