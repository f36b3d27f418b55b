// SPDX-License-Identifier: Apache-2.0
// Attention of very few rows, as when one token is generated after thousands: keys and values are read once, where they lie.
#pragma once

#include "weft/kernel/cpu/attention_forward.hpp"

namespace weft::kernel::cpu {

// More rows are worth transposing the keys for.
inline constexpr Index most_decode_rows = 4;

template <class Isa, class Real>
constexpr bool decodes(Index rows, Index head_size) {
  return rows <= most_decode_rows && head_size > 0 && head_size % simd::lanes<Isa, Real> == 0;
}

// out (Vectors · lanes) = factor · out + Σ_j weights[j] values(j): even and odd keys apart, so that more chains are under way.
template <class Isa, class Real, Index Vectors>
inline void add_weighted_rows(Index keys, const Real* weights, const Real* values, Index stride, bool keep, Real factor, Real* out) {
  constexpr Index lanes = simd::lanes<Isa, Real>;
  simd::Vector<Isa, Real> even[Vectors] = {}, odd[Vectors] = {};
  if (keep) {
    unrolled<Vectors>([&](auto v) WEFT_ALWAYS_INLINE { even[v] = factor * simd::load<Isa>(static_cast<const Real*>(out + v * lanes)); });
  }
  const auto add = [&](Index j, auto& sums) WEFT_ALWAYS_INLINE {
    const auto weight = simd::broadcast<Isa>(weights[j]);
    unrolled<Vectors>([&](auto v) WEFT_ALWAYS_INLINE { sums[v] += weight * simd::load<Isa>(values + j * stride + v * lanes); });
  };
  Index j = 0;
  for (; j + 2 <= keys; j += 2) add(j, even), add(j + 1, odd);
  if (j < keys) add(j, even);
  unrolled<Vectors>([&](auto v) WEFT_ALWAYS_INLINE { simd::store<Isa>(out + v * lanes, even[v] + odd[v]); });
}

// Rows `row` … row + count - 1 (at most most_decode_rows) pass `keys` keys, the first of which is key `first` and lies at k.
template <class Isa, class Real>
inline void decode_tile(const AttentionRows<Isa, Real>& rows, Index row, Index count, Index first, Index keys, const Real* k, const Real* v,
                        Index stride) {
  using Tile = AttentionTile<Isa, Real>;
  constexpr Index lanes = Tile::lanes;
  constexpr Real infinity = std::numeric_limits<Real>::infinity();
  simd::Vector<Isa, Real> tops[most_decode_rows] = {};
  Index visible[most_decode_rows] = {};
  const Index whole = round_up(keys, lanes);
  for (Index r = 0; r < count; ++r) {
    Real* const scores = rows.scores + r * Tile::most_keys;
    visible[r] = std::clamp<Index>(rows.visible[row + r] - first, 0, keys);
    for (Index j = 0; j < visible[r]; ++j) scores[j] = row_product<Isa>(rows.width, rows.query + (row + r) * rows.padded, k + j * stride);
    std::fill(scores + visible[r], scores + whole, -infinity);
    tops[r] = simd::broadcast<Isa>(-infinity);
    for (Index j = 0; j < whole; j += lanes) {
      const auto score = simd::load<Isa>(static_cast<const Real*>(scores + j));
      tops[r] = simd::select(score > tops[r], score, tops[r]);
    }
  }
  alignas(alignment_bytes) Real rescale[round_up(most_decode_rows, lanes)] = {};
  soften_scores<Isa, Real>(count, whole, rows.scores, Tile::most_keys, tops, rows.most + row, rows.total + row * lanes, rescale);
  for (Index r = 0; r < count; ++r) {
    const Real* const weights = rows.scores + r * Tile::most_keys;
    Real* const out = rows.output + (row + r) * rows.padded;
    Index d = 0;
    for (; d + 4 * lanes <= rows.width; d += 4 * lanes) {
      add_weighted_rows<Isa, Real, 4>(visible[r], weights, v + d, stride, first > 0, rescale[r], out + d);
    }
    for (; d < rows.width; d += lanes) {
      add_weighted_rows<Isa, Real, 1>(visible[r], weights, v + d, stride, first > 0, rescale[r], out + d);
    }
  }
}

}  // namespace weft::kernel::cpu
