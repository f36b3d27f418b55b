// SPDX-License-Identifier: Apache-2.0
// Attention on the CPU; contracts in weft/kernel/attention.hpp.
//
// Every sum has one order, given by the sizes of a sequence and its heads: keys ascend within a tile, tiles follow one another, heads of a
// group follow one another. The batch does not enter. Products are weft's own: tiles are too small to be worth a library's call, so the
// products policy is not asked. What a causal mask hides is not read, nor computed beyond the last vector of a group of rows.
// Scratch: the packed operands of a tile, whatever the number of tokens: 0.3 MiB for heads of 64 floats, 2.3 MiB for heads of 1024 doubles.
#pragma once

#include "weft/kernel/cpu/attention_backward.hpp"
#include "weft/kernel/cpu/attention_decode.hpp"
#include "weft/kernel/cpu/attention_forward.hpp"

namespace weft::kernel::cpu {

// y = softmax(scale · q kᵀ) v, lse.
// Errors: attention.groups, attention.keys, attention.scratch.
template <class Products, class Isa, class Real>
inline void attention_forward(AttentionSizes sizes, Real scale, const Real* q, Index q_row_stride, const Real* k, const Real* v,
                              Index kv_row_stride, Index kv_batch_stride, Real* y, Index y_row_stride, Real* lse, Scratch scratch) {
  using Tile = AttentionTile<Isa, Real>;
  check_attention(sizes);
  const Index D = sizes.head_size;
  if (sizes.batch <= 0 || sizes.queries <= 0) return;
  const Index most_queries = std::min(sizes.queries, Tile::most_queries), group = sizes.group();
  // Few rows take all heads along past the keys, which are then read as they lie; others stay with one key/value head.
  const bool decode = decodes<Isa, Real>(group * most_queries, D);
  const Index fitting = Tile::most_queries / most_queries;
  const Index most_heads = decode ? std::min(fitting / group * group, sizes.heads) : std::clamp<Index>(fitting, 1, group);
  ScratchPieces pieces(scratch);
  const AttentionRows<Isa, Real> rows(most_queries * most_heads, D, pieces);

  // Rows of a tile: the queries of one head, then those of the next head that shares its keys.
  const auto attend = [&](Index b, Index first_head, Index heads, Index first_query, Index queries) {
    const Index count = heads * queries, whole = round_up(count, Tile::rows), last_visible = sizes.visible(first_query + queries - 1);
    for (Index h = 0; h < heads; ++h) {
      pack_scaled_rows<Isa>(queries, D, scale, q + (b * sizes.queries + first_query) * q_row_stride + (first_head + h) * D, q_row_stride,
                            rows.query + h * queries * rows.padded, rows.padded);
      for (Index i = 0; i < queries; ++i) rows.visible[h * queries + i] = sizes.visible(first_query + i);
    }
    std::fill(rows.query + count * rows.padded, rows.query + whole * rows.padded, Real(0));
    std::fill(rows.visible + count, rows.visible + whole, rows.visible[count - 1]);
    std::fill_n(rows.most, whole, -std::numeric_limits<Real>::infinity());
    std::fill_n(rows.total, whole * Tile::lanes, Real(0));
    if (last_visible <= 0) std::fill_n(rows.output, whole * rows.padded, Real(0));

    const Index tile_keys = decode ? Tile::most_keys : Tile::keys(D);
    for (Index first = 0; first < last_visible; first += tile_keys) {
      const Index keys = std::min(tile_keys, last_visible - first);
      for (Index head = 0; head < heads; head += group) {
        const Index at = b * kv_batch_stride + first * kv_row_stride + (first_head + head) / group * D;
        const Real *const key = k + at, *const value = v + at;  // (keys, D)
        if (decode) {
          decode_tile<Isa>(rows, head * queries, group * queries, first, keys, key, value, kv_row_stride);
        } else {
          pack_transposed_keys<Isa>(keys, D, key, kv_row_stride, rows.keys);
          pack_scaled_rows<Isa>(keys, D, Real(1), value, kv_row_stride, rows.values, rows.padded);
          for (Index row = 0; row < count; row += Tile::rows) attend_tile<Isa>(rows, row, first, keys);
        }
      }
    }

    finish_rows<Isa>(rows, whole);
    for (Index h = 0; h < heads; ++h) {
      for (Index i = 0; i < queries; ++i) {
        const Index row = h * queries + i, out_row = b * sizes.queries + first_query + i;
        const Real factor = last_visible > 0 ? 1 / rows.total[row] : Real(0);
        put_row<Isa>(D, factor, rows.output + row * rows.padded, false, y + out_row * y_row_stride + (first_head + h) * D);
        if (lse) lse[out_row * sizes.heads + first_head + h] = rows.most[row];
      }
    }
  };
  for (Index b = 0; b < sizes.batch; ++b) {
    for (Index head = 0, heads = 0; head < sizes.heads; head += heads) {
      heads = std::min(most_heads, (decode ? sizes.heads : (head / group + 1) * group) - head);
      for (Index query = 0; query < sizes.queries; query += most_queries) {
        attend(b, head, heads, query, std::min(most_queries, sizes.queries - query));
      }
    }
  }
}

// dq, dk, dv from dy, with y and lse of attention_forward.
// Errors: attention.groups, attention.keys, attention.scratch.
template <class Products, class Isa, class Real>
inline void attention_backward(AttentionSizes sizes, Real scale, const Real* q, Index q_row_stride, const Real* k, const Real* v,
                               Index kv_row_stride, Index kv_batch_stride, const Real* y, Index y_row_stride, const Real* lse,
                               const Real* dy, Index dy_row_stride, Real* dq, Index dq_row_stride, Real* dk, Real* dv, Index dkv_row_stride,
                               Index dkv_batch_stride, Scratch scratch) {
  using Tile = AttentionTile<Isa, Real>;
  check_attention(sizes);
  const Index D = sizes.head_size, past = sizes.keys - sizes.queries;
  ScratchPieces pieces(scratch);
  const AttentionGradients<Isa, Real> tile(D, pieces);

  // `rows` queries of head h from query `first` on pass the tile of `keys` keys from key first_key on.
  const auto pass_queries = [&](Index b, Index h, Index first, Index rows, Index first_key, Index keys) {
    const Index row = b * sizes.queries + first, whole = round_up(rows, Tile::rows);
    pack_scaled_rows<Isa>(rows, D, scale, q + row * q_row_stride + h * D, q_row_stride, tile.query, tile.padded);
    pack_scaled_rows<Isa>(rows, D, Real(1), dy + row * dy_row_stride + h * D, dy_row_stride, tile.dy, tile.padded);
    std::fill(tile.query + rows * tile.padded, tile.query + whole * tile.padded, Real(0));
    std::fill(tile.dy + rows * tile.padded, tile.dy + whole * tile.padded, Real(0));
    for (Index i = 0; i < whole; ++i) {
      const bool inside = i < rows;
      tile.minus_lse[i] = inside ? -lse[(row + i) * sizes.heads + h] : Real(0);
      tile.minus_delta[i] = inside ? -row_product<Isa>(D, tile.dy + i * tile.padded, y + (row + i) * y_row_stride + h * D) : Real(0);
    }
    for (Index i = 0; i < rows; i += Tile::rows) {
      RowRanges<Tile::rows> ranges;
      for (Index r = 0; r < Tile::rows; ++r) {
        ranges.end[r] = std::clamp<Index>(sizes.visible(first + std::min(i + r, rows - 1)) - first_key, 0, keys);
      }
      ranges.summarise();
      recompute_scores<Isa>(tile, i, ranges.last);
      product_rows<Isa, Real, true, false>(ranges, tile.padded, tile.dscores + i * Tile::most_keys, Tile::most_keys, tile.keys, tile.padded,
                                           static_cast<const Real*>(nullptr), tile.dquery, tile.padded);
      for (Index r = 0; r < std::min(Tile::rows, rows - i); ++r) {
        put_row<Isa>(D, scale, tile.dquery + r * tile.padded, first_key > 0, dq + (row + i + r) * dq_row_stride + h * D);
      }
    }
    add_key_gradients<Isa>(tile, rows, keys,
                           [&](Index j) { return sizes.causal ? std::clamp<Index>(first_key + j - past - first, 0, rows) : Index(0); });
  };

  for (Index b = 0; b < sizes.batch; ++b) {
    for (Index shared = 0; shared < sizes.key_value_heads; ++shared) {
      for (Index first_key = 0; first_key < sizes.keys; first_key += tile.tile_keys) {
        const Index keys = std::min(tile.tile_keys, sizes.keys - first_key);
        const Real* const key = k + b * kv_batch_stride + first_key * kv_row_stride + shared * D;    // (keys, D)
        const Real* const value = v + b * kv_batch_stride + first_key * kv_row_stride + shared * D;  // (keys, D)
        pack_transposed_keys<Isa>(keys, D, key, kv_row_stride, tile.keys_across);
        pack_transposed_keys<Isa>(keys, D, value, kv_row_stride, tile.values_across);
        pack_scaled_rows<Isa>(keys, D, Real(1), key, kv_row_stride, tile.keys, tile.padded);
        std::fill_n(tile.dkeys, round_up(keys, Tile::rows) * tile.padded, Real(0));
        std::fill_n(tile.dvalues, round_up(keys, Tile::rows) * tile.padded, Real(0));
        const Index first_query = sizes.causal ? std::max<Index>(first_key - past, 0) : 0;
        for (Index h = shared * sizes.group(); h < (shared + 1) * sizes.group(); ++h) {
          for (Index query = first_query; query < sizes.queries; query += Tile::most_backward_queries) {
            pass_queries(b, h, query, std::min(Tile::most_backward_queries, sizes.queries - query), first_key, keys);
          }
        }
        for (Index j = 0; j < keys; ++j) {
          const Index to = b * dkv_batch_stride + (first_key + j) * dkv_row_stride + shared * D;
          put_row<Isa>(D, Real(1), tile.dkeys + j * tile.padded, false, dk + to);
          put_row<Isa>(D, Real(1), tile.dvalues + j * tile.padded, false, dv + to);
        }
      }
    }
    if (sizes.keys == 0) {
      for (Index i = 0; i < sizes.queries; ++i) std::fill_n(dq + (b * sizes.queries + i) * dq_row_stride, sizes.heads * D, Real(0));
    }
  }
}

}  // namespace weft::kernel::cpu
