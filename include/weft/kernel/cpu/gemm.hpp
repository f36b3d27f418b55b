// SPDX-License-Identifier: Apache-2.0
// weft's own matrix product: operands packed into panels, tiles of c in registers, no library.
//
// Order of the sums. k is cut into blocks of product_depth (the last one shorter), always at the same places. Within a block an element of
// c is one chain of multiply-adds in ascending k that starts from zero; the first block's sum is added to what c starts from (nothing, c
// itself, a residual; then a bias), each further block's sum to c. Neither m, n, the strides, the transposes, packing, scratch nor an
// element's position in c enter: a product of some rows of a or some columns of b gives the bits of the whole product.
// Source: K. Goto, R. van de Geijn, Anatomy of High-Performance Matrix Multiplication, ACM TOMS 34(3), 2008.
#pragma once

#include <algorithm>
#include <string>

#include "weft/base/error.hpp"
#include "weft/kernel/cpu/gemm_micro.hpp"
#include "weft/kernel/cpu/gemm_pack.hpp"
#include "weft/kernel/gemm.hpp"
#include "weft/kernel/scratch.hpp"

namespace weft::kernel::cpu {

// How many terms one chain of multiply-adds sums up. Part of what a product's bits mean, so the same for every instruction set.
inline constexpr Index product_depth = 256;

// What a product needs at least, for one panel of each operand; more lets it work on larger blocks.
inline constexpr Index minimum_product_scratch_bytes = 64 * KiB;

// A stored operand. a: row_major if op(a)(i, p) is at data[i · stride + p], else at data[p · stride + i]; b likewise with (p, j).
template <class Real>
struct ProductOperand {
  const Real* data;
  Index stride;
  bool row_major;

  const Real* at(Index row, Index column) const { return row_major ? data + row * stride + column : data + column * stride + row; }
};

// How a product is cut. The order of the loops, outermost first:
//   columns  strips of c, and
//   depth    stretches of k, such that the packed panels of b for both fit in scratch;
//   rows     slabs of c, whose part stays in the second-level cache while
//            blocks of k (product_depth) pass by; each first packs its panels of b if this is the first slab;
//   chunk    columns whose panels of b stay in the second-level cache while
//            tiles of rows pass by, each with its piece of a in the first-level cache, over the chunk's panels.
struct ProductBlocks {
  bool pack_a, pack_b;
  bool keep_panels;  // more than one slab: panels of b are kept for the next
  Index columns, depth, rows, chunk;
  Index panel_a;  // elements of scratch before the panels of b
};

template <class Isa, class Real>
inline ProductBlocks product_blocks(Index m, Index n, Index k, bool a_row_major, Index a_stride, bool b_row_major, Index scratch_bytes) {
  constexpr Index tile_rows = ProductTile<Isa>::rows, width = tile_columns<Isa, Real>, slab = 16 * tile_rows;
  constexpr Index chunk = 512 * KiB / product_depth / Index(sizeof(Real)) / width * width;
  const Index depth = std::clamp<Index>(k, 1, product_depth), stretches = std::max<Index>(divide_up(k, depth), 1);
  ProductBlocks blocks{};
  // A stored row of a holds one k of a tile: packed if the tile's rows spread over more memory than the first translation buffer covers.
  blocks.pack_a = !a_row_major && n > 2 * width && m >= tile_rows && depth * a_stride * Index(sizeof(Real)) > 256 * KiB;
  // Rows of b can be read where they lie; copying them pays if many tiles read them and they would not stay in the second-level cache.
  blocks.pack_b = !b_row_major || (m > 6 * tile_rows && k * n * Index(sizeof(Real)) > 1 * MiB);
  blocks.keep_panels = m > slab + slab / 2;
  blocks.rows = blocks.keep_panels ? slab : m;
  // What scratch holds, in columns of b one block of k deep.
  blocks.panel_a = blocks.pack_a ? round_up(tile_rows * depth, alignment_bytes / Index(sizeof(Real))) : 0;
  const Index capacity = (scratch_bytes / Index(sizeof(Real)) - blocks.panel_a) / depth / width * width;
  if (capacity < width) {
    throw Error("gemm.scratch", "a product needs " + std::to_string(minimum_product_scratch_bytes) + " bytes of scratch; it was given " +
                                    std::to_string(scratch_bytes));
  }
  blocks.chunk = std::min(m <= tile_rows ? width : chunk, capacity);
  if (!blocks.keep_panels || round_up(n, width) * stretches <= capacity) {
    blocks.columns = n, blocks.depth = stretches * depth;
  } else {
    blocks.columns = std::clamp(capacity / stretches / width * width, std::min(2 * chunk, capacity), round_up(n, width));
    blocks.depth = capacity / blocks.columns * depth;
    blocks.chunk = std::min(blocks.chunk, blocks.columns);
  }
  return blocks;
}

// One tile's rows over all panels of a chunk.
template <class Isa, class Real, Index Rows, bool RowMajor>
inline void product_row(Index depth, const Real* a, Index a_stride, const Real* b, Index b_stride, Index b_panel,
                        const TileOutput<Real>& out, Index columns) {
  constexpr Index width = tile_columns<Isa, Real>, lanes = simd::lanes<Isa, Real>;
  for (Index j = 0; j < columns; j += width) {
    const Index w = std::min(width, columns - j);
    if (w > lanes) {
      product_tile<Isa, Real, Rows, 2, RowMajor>(depth, a, a_stride, b, b_stride, out.at(0, j), w);
    } else {
      product_tile<Isa, Real, Rows, 1, RowMajor>(depth, a, a_stride, b, b_stride, out.at(0, j), w);
    }
    b += b_panel;
  }
}

// product_row with the largest tile that has at most `rows` rows; returns how many it has.
template <class Isa, class Real, bool RowMajor, Index Rows = ProductTile<Isa>::rows>
inline Index product_rows(Index rows, Index depth, const Real* a, Index a_stride, const Real* b, Index b_stride, Index b_panel,
                          const TileOutput<Real>& out, Index columns) {
  constexpr Index smaller = Rows > 8 ? 8 : Rows > 4 ? 4 : Rows - 1;
  if constexpr (smaller > 0) {
    if (rows < Rows) return product_rows<Isa, Real, RowMajor, smaller>(rows, depth, a, a_stride, b, b_stride, b_panel, out, columns);
  }
  product_row<Isa, Real, Rows, RowMajor>(depth, a, a_stride, b, b_stride, b_panel, out, columns);
  return Rows;
}

// c = op(a) op(b) + from + bias; see TileOutput. `from` (m, n) may be c itself.
// Errors: gemm.scratch if scratch is below minimum_product_scratch_bytes (and needed).
// Cost: 2 m n k flops; c is read and written once for each product_depth of k.
template <class Isa, class Real>
inline void product(Transpose ta, Transpose tb, Index m, Index n, Index k, const Real* a_data, Index lda, const Real* b_data, Index ldb,
                    const TileOutput<Real>& first, Scratch scratch) {
  if (m <= 0 || n <= 0) return;
  constexpr Index tile_rows = ProductTile<Isa>::rows, width = tile_columns<Isa, Real>, lanes = simd::lanes<Isa, Real>;
  const ProductOperand<Real> a{a_data, lda, ta == Transpose::no}, b{b_data, ldb, tb == Transpose::no};
  const ProductBlocks blocks = product_blocks<Isa, Real>(m, n, k, a.row_major, a.stride, b.row_major, scratch.bytes);
  Real* const packed_a = reinterpret_cast<Real*>(scratch.data);
  Real* const packed_b = packed_a + blocks.panel_a;
  const TileOutput<Real> later{first.c, first.ldc, first.c, first.ldc, nullptr};

  // The innermost loops: rows [row, row_end), one block of k, one chunk of columns.
  const auto multiply = [&](Index row, Index row_end, Index p, Index depth, Index column, Index columns, const Real* right,
                            Index right_stride, Index right_panel) {
    const TileOutput<Real>& out = p == 0 ? first : later;
    for (Index i = row; i < row_end;) {
      const Real* const left = a.at(i, p);
      const TileOutput<Real> tile = out.at(i, column);
      if (a.row_major) {
        i += product_rows<Isa, Real, true>(row_end - i, depth, left, a.stride, right, right_stride, right_panel, tile, columns);
      } else if (blocks.pack_a && row_end - i >= tile_rows) {
        pack_rows<Isa, tile_rows>(tile_rows, depth, left, a.stride, packed_a);
        i += product_rows<Isa, Real, false>(tile_rows, depth, packed_a, tile_rows, right, right_stride, right_panel, tile, columns);
      } else {
        i += product_rows<Isa, Real, false>(row_end - i, depth, left, a.stride, right, right_stride, right_panel, tile, columns);
      }
    }
  };

  for (Index strip = 0; strip < n; strip += blocks.columns) {
    const Index strip_end = std::min(n, strip + blocks.columns), padded = round_up(strip_end - strip, width);
    for (Index stretch = 0; stretch == 0 || stretch < k; stretch += blocks.depth) {  // k = 0 passes once: c is still to be written
      const Index stretch_end = std::min(k, stretch + blocks.depth);
      for (Index row = 0; row < m; row += blocks.rows) {
        const Index row_end = std::min(m, row + blocks.rows);
        for (Index p = stretch; p == stretch || p < stretch_end; p += product_depth) {
          const Index depth = std::min(product_depth, stretch_end - p);
          for (Index column = strip; column < strip_end; column += blocks.chunk) {
            const Index columns = std::min(blocks.chunk, strip_end - column);
            const Index unpacked = blocks.pack_b ? 0 : columns / lanes * lanes;  // the last, partial vector is packed in any case
            Real* const panels = packed_b + (blocks.keep_panels ? (p - stretch) * padded + (column - strip) * depth : 0);
            if (row == 0) {
              for (Index j = unpacked; j < columns; j += width) {
                const Index w = std::min(width, columns - j);
                pack_panel<Isa, width>(b.row_major, w, round_up(w, lanes), depth, b.at(p, column + j), b.stride,
                                       panels + (j - unpacked) * depth);
              }
            }
            if (unpacked > 0) multiply(row, row_end, p, depth, column, unpacked, b.at(p, column), b.stride, width);
            if (unpacked < columns) {
              multiply(row, row_end, p, depth, column + unpacked, columns - unpacked, panels, width, width * depth);
            }
          }
        }
      }
    }
  }
}

// Products policy: weft's own kernels for every shape.
struct Builtin {
  static constexpr const char* name = "builtin";

  template <class Isa, class Real>
  static void gemm(Transpose ta, Transpose tb, Index m, Index n, Index k, const Real* a, Index lda, const Real* b, Index ldb,
                   bool accumulate, Real* c, Index ldc, Scratch scratch) {
    product<Isa, Real>(ta, tb, m, n, k, a, lda, b, ldb, {c, ldc, accumulate ? c : nullptr, ldc, nullptr}, scratch);
  }

  // c = op(a) op(b) + from + bias in one pass over c; `from` (m, n) and bias (n) may each be null, from may be c.
  template <class Isa, class Real>
  static void gemm_add(Transpose ta, Transpose tb, Index m, Index n, Index k, const Real* a, Index lda, const Real* b, Index ldb,
                       const Real* from, Index from_stride, const Real* bias, Real* c, Index ldc, Scratch scratch) {
    product<Isa, Real>(ta, tb, m, n, k, a, lda, b, ldb, {c, ldc, from, from_stride, bias}, scratch);
  }
};

}  // namespace weft::kernel::cpu
