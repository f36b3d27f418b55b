// SPDX-License-Identifier: Apache-2.0
// Gradients of attention in tiles of keys and queries: probabilities are computed anew from lse; contract in weft/kernel/attention.hpp.
// Source: T. Dao et al., FlashAttention, arXiv 2205.14135, algorithm 4.
#pragma once

#include "weft/kernel/attention.hpp"
#include "weft/kernel/cpu/attention_tile.hpp"
#include "weft/simd/math.hpp"

namespace weft::kernel::cpu {

// A tile of keys of one key/value head with their gradients so far, and the tile of queries that passes it.
template <class Isa, class Real>
struct AttentionGradients {
  using Tile = AttentionTile<Isa, Real>;

  Index width, padded;                // head size, and that in whole vectors
  Index tile_keys;                    // keys in a tile
  Real *keys_across, *values_across;  // transposed
  Real *keys, *dkeys, *dvalues;       // (tile_keys, padded)
  Real *query, *dy;                   // (most_backward_queries, padded); query already times scale
  Real *minus_lse, *minus_delta;      // (most_backward_queries)
  Real *weights, *dscores;            // (most_backward_queries, Tile::most_keys)
  Real* dquery;                       // (Tile::rows, padded)

  AttentionGradients(Index head_size, ScratchPieces& pieces)
      : width(head_size), padded(Tile::padded(head_size)), tile_keys(Tile::keys(head_size)) {
    constexpr Index queries = Tile::most_backward_queries;
    keys_across = pieces.take<Real>(tile_keys * width), values_across = pieces.take<Real>(tile_keys * width);
    keys = pieces.take<Real>(tile_keys * padded);
    dkeys = pieces.take<Real>(tile_keys * padded), dvalues = pieces.take<Real>(tile_keys * padded);
    query = pieces.take<Real>(queries * padded), dy = pieces.take<Real>(queries * padded);
    minus_lse = pieces.take<Real>(queries), minus_delta = pieces.take<Real>(queries);
    weights = pieces.take<Real>(queries * Tile::most_keys), dscores = pieces.take<Real>(queries * Tile::most_keys);
    dquery = pieces.take<Real>(Tile::rows * padded);
    pieces.check();
  }
};

// weights = exp(q kᵀ − lse) and dscores = weights (dy vᵀ − Δ) for a group of rows and the first `columns` keys of the tile.
template <class Isa, class Real>
inline void recompute_scores(const AttentionGradients<Isa, Real>& tile, Index row, Index columns) {
  using Register = simd::Vector<Isa, Real>;
  constexpr Index group = AttentionTile<Isa, Real>::rows, lanes = simd::lanes<Isa, Real>, stride = AttentionTile<Isa, Real>::most_keys;
  Real* const weights = tile.weights + row * stride;
  Real* const dscores = tile.dscores + row * stride;
  const auto store_block = [](Real* to, auto& sums) WEFT_ALWAYS_INLINE {
    constexpr Index vectors = Index(sizeof(sums[0]) / sizeof(Register));
    unrolled<group>([&](auto r) WEFT_ALWAYS_INLINE {
      unrolled<vectors>([&](auto v) WEFT_ALWAYS_INLINE { simd::store<Isa>(to + r * stride + v * lanes, sums[r][v]); });
    });
  };
  for_each_score_block<Isa, Real, group>(columns, tile.width, tile.query + row * tile.padded, tile.padded, tile.keys_across,
                                         static_cast<const Real*>(tile.minus_lse + row),
                                         [&](Index column, auto& sums) WEFT_ALWAYS_INLINE { store_block(weights + column, sums); });
  for (Index r = 0; r < group; ++r) {
    for (Index j = 0; j < columns; j += lanes) {
      Real* const at = weights + r * stride + j;
      simd::store<Isa>(at, simd::exp<Isa, Real>(simd::load<Isa>(static_cast<const Real*>(at))));
    }
  }
  for_each_score_block<Isa, Real, group>(
      columns, tile.width, tile.dy + row * tile.padded, tile.padded, tile.values_across, static_cast<const Real*>(tile.minus_delta + row),
      [&](Index column, auto& sums) WEFT_ALWAYS_INLINE {
        constexpr Index vectors = Index(sizeof(sums[0]) / sizeof(Register));
        unrolled<group>([&](auto r) WEFT_ALWAYS_INLINE {
          unrolled<vectors>([&](auto v) WEFT_ALWAYS_INLINE {
            sums[r][v] *= simd::load<Isa>(static_cast<const Real*>(weights + r * stride + column + v * lanes));
          });
        });
        store_block(dscores + column, sums);
      });
}

// Adds a tile of queries' part to dkeys and dvalues. begin(j): the first of the `rows` queries that sees key j of the tile.
template <class Isa, class Real, class Begin>
inline void add_key_gradients(const AttentionGradients<Isa, Real>& tile, Index rows, Index keys, Begin&& begin) {
  constexpr Index group = AttentionTile<Isa, Real>::rows, stride = AttentionTile<Isa, Real>::most_keys;
  const Index padded = tile.padded;
  Real one[group];
  std::fill_n(one, group, Real(1));
  for (Index j = 0; j < keys; j += group) {
    RowRanges<group> ranges;
    for (Index r = 0; r < group; ++r) ranges.begin[r] = begin(std::min(j + r, keys - 1)), ranges.end[r] = rows;
    ranges.summarise();
    if (ranges.first == rows) continue;
    Real *const dvalues = tile.dvalues + j * padded, *const dkeys = tile.dkeys + j * padded;  // (group, padded)
    product_rows<Isa, Real, false, true>(ranges, padded, tile.weights + j, stride, tile.dy, padded, one, dvalues, padded);
    product_rows<Isa, Real, false, true>(ranges, padded, tile.dscores + j, stride, tile.query, padded, one, dkeys, padded);
  }
}

}  // namespace weft::kernel::cpu
