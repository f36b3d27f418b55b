// SPDX-License-Identifier: Apache-2.0
// Attention in tiles of queries and keys with a running softmax; contract in weft/kernel/attention.hpp.
// Source: T. Dao et al., FlashAttention, arXiv 2205.14135; M. Milakov, N. Gimelshein, Online normalizer calculation, arXiv 1805.02867.
#pragma once

#include <cmath>
#include <limits>

#include "weft/kernel/attention.hpp"
#include "weft/kernel/cpu/attention_tile.hpp"
#include "weft/simd/math.hpp"

namespace weft::kernel::cpu {

// The state of a tile of rows (queries of a few heads) while keys pass by, and the operands of the keys that pass.
template <class Isa, class Real>
struct AttentionRows {
  using Tile = AttentionTile<Isa, Real>;

  Index width, padded;  // head size, and that in whole vectors
  Real* query;          // (rows, padded), already times scale
  Real* output;         // (rows, padded): Σ exp(score − most) v
  Real* most;           // (rows): the largest score so far
  Real* total;          // (rows, lanes): Σ exp(score − most), a part in each lane
  Index* visible;       // (rows): how many keys a row sees
  Real* keys;           // transposed keys of a tile
  Real* values;         // (keys, padded)
  Real* scores;         // (Tile::rows, most_keys)

  AttentionRows(Index rows, Index head_size, ScratchPieces& pieces) : width(head_size), padded(Tile::padded(head_size)) {
    const Index whole = round_up(rows, std::max(Tile::rows, Tile::lanes));
    query = pieces.take<Real>(whole * padded);
    output = pieces.take<Real>(whole * padded);
    most = pieces.take<Real>(whole);
    total = pieces.take<Real>(whole * Tile::lanes);
    visible = pieces.take<Index>(whole);
    keys = pieces.take<Real>(Tile::keys(head_size) * width);
    values = pieces.take<Real>(Tile::keys(head_size) * padded);
    scores = pieces.take<Real>(Tile::rows * Tile::most_keys);
    pieces.check();
  }
};

// Replaces scores (rows, stride) by exp(score − most) after raising each row's most to what `tops` (rows, lanes) holds; adds them to total.
// rescale[r] becomes what sums so far are to be multiplied by. A most of −∞ counts as 0: all weights are 0 then, not NaN.
template <class Isa, class Real>
inline void soften_scores(Index rows, Index columns, Real* scores, Index stride, const simd::Vector<Isa, Real>* tops, Real* most,
                          Real* total, Real* rescale) {
  constexpr Index lanes = simd::lanes<Isa, Real>;
  constexpr Real infinity = std::numeric_limits<Real>::infinity();
  alignas(alignment_bytes) Real base[round_up(AttentionTile<Isa, Real>::rows, lanes)] = {};
  for (Index r = 0; r < rows; ++r) {
    const Real top = lane_maximum<Isa, Real>(tops[r]), raised = top > most[r] ? top : most[r];
    base[r] = raised == -infinity ? Real(0) : raised;
    rescale[r] = most[r] - base[r];
    most[r] = raised;
  }
  for (Index r = 0; r < rows; r += lanes) {
    simd::store<Isa>(rescale + r, simd::exp<Isa, Real>(simd::load<Isa>(static_cast<const Real*>(rescale + r))));
  }
  for (Index r = 0; r < rows; ++r) {
    Real* const row = scores + r * stride;
    simd::Vector<Isa, Real> sum = rescale[r] * simd::load<Isa>(static_cast<const Real*>(total + r * lanes));
    const auto offset = simd::broadcast<Isa>(base[r]);
    for (Index j = 0; j < columns; j += lanes) {
      const auto weight = simd::exp<Isa, Real>(simd::load<Isa>(static_cast<const Real*>(row + j)) - offset);
      simd::store<Isa>(row + j, weight);
      sum += weight;
    }
    simd::store<Isa>(total + r * lanes, sum);
  }
}

// total[r] becomes the sum of row r's lanes, most[r] its log Σ exp of the scores. `count` is whole groups of rows.
template <class Isa, class Real>
inline void finish_rows(const AttentionRows<Isa, Real>& rows, Index count) {
  constexpr Index lanes = simd::lanes<Isa, Real>;
  for (Index r = 0; r < count; ++r) {
    rows.total[r] = lane_sum<Isa, Real>(simd::load<Isa>(static_cast<const Real*>(rows.total + r * lanes)));  // r never passes r · lanes
  }
  for (Index r = 0; r < count; r += lanes) {
    const auto total = simd::load<Isa>(static_cast<const Real*>(rows.total + r));
    const auto most = simd::load<Isa>(static_cast<const Real*>(rows.most + r));
    simd::store<Isa>(rows.most + r, most + simd::log<Isa, Real>(total));
  }
}

// A group of Tile::rows rows passes a tile of keys, the first of which is key `first`.
template <class Isa, class Real>
inline void attend_tile(const AttentionRows<Isa, Real>& rows, Index row, Index first, Index keys) {
  using Tile = AttentionTile<Isa, Real>;
  using Register = simd::Vector<Isa, Real>;
  constexpr Index group = Tile::rows, lanes = Tile::lanes;
  RowRanges<group> ranges;
  for (Index r = 0; r < group; ++r) ranges.end[r] = std::clamp<Index>(rows.visible[row + r] - first, 0, keys);
  ranges.summarise();
  const Index columns = ranges.last, unmasked = ranges.common_end;
  if (columns == 0) return;

  constexpr Real infinity = std::numeric_limits<Real>::infinity();
  Register tops[group];
  for (Register& top : tops) top = simd::broadcast<Isa>(-infinity);
  for_each_score_block<Isa, Real, group>(columns, rows.width, rows.query + row * rows.padded, rows.padded, rows.keys,
                                         static_cast<const Real*>(nullptr), [&](Index column, auto& sums) WEFT_ALWAYS_INLINE {
                                           constexpr Index vectors = Index(sizeof(sums[0]) / sizeof(Register));
                                           if (column + vectors * lanes > unmasked) {
                                             simd::Mask<Isa, Real> lane;
                                             for (Index i = 0; i < lanes; ++i)
                                               lane[i] = static_cast<typename simd::IntegerOf<Index(sizeof(Real))>::type>(i);
                                             unrolled<group>([&](auto r) WEFT_ALWAYS_INLINE {
                                               unrolled<vectors>([&](auto v) WEFT_ALWAYS_INLINE {
                                                 const Index limit = std::clamp<Index>(ranges.end[r] - column - v * lanes, 0, lanes);
                                                 const auto inside =
                                                     lane < static_cast<typename simd::IntegerOf<Index(sizeof(Real))>::type>(limit);
                                                 sums[r][v] = simd::select(inside, sums[r][v], simd::broadcast<Isa>(-infinity));
                                               });
                                             });
                                           }
                                           unrolled<group>([&](auto r) WEFT_ALWAYS_INLINE {
                                             unrolled<vectors>([&](auto v) WEFT_ALWAYS_INLINE {
                                               tops[r] = simd::select(sums[r][v] > tops[r], sums[r][v], tops[r]);
                                               simd::store<Isa>(rows.scores + r * Tile::most_keys + column + v * lanes, sums[r][v]);
                                             });
                                           });
                                         });

  alignas(alignment_bytes) Real rescale[round_up(group, lanes)] = {};
  soften_scores<Isa, Real>(group, round_up(columns, lanes), rows.scores, Tile::most_keys, tops, rows.most + row, rows.total + row * lanes,
                           rescale);
  const Index padded = rows.padded;
  Real* const out = rows.output + row * padded;  // (group, padded)
  if (first == 0) {
    product_rows<Isa, Real, true, false>(ranges, padded, rows.scores, Tile::most_keys, rows.values, padded, rescale, out, padded);
  } else {
    product_rows<Isa, Real, true, true>(ranges, padded, rows.scores, Tile::most_keys, rows.values, padded, rescale, out, padded);
  }
}

}  // namespace weft::kernel::cpu
