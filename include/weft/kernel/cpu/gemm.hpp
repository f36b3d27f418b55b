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

// How a product is cut: c in columns_block wide strips, k in depth_block long stretches whose panels of b are packed at once, rows in
// rows_block high slabs. Chosen so that a slab of packed a stays in the second-level cache and packed b is reused from the third.
struct ProductBlocks {
  bool pack_a, pack_b;
  Index rows, columns, depth;
};

template <class Isa, class Real>
inline ProductBlocks product_blocks(Index m, Index n, Index k, bool a_row_major, bool b_row_major, Index scratch_bytes) {
  constexpr Index tile_rows = ProductTile<Isa>::rows, width = tile_columns<Isa, Real>;
  const Index depth = std::max<Index>(std::min(k, product_depth), 1);
  ProductBlocks blocks{};
  blocks.pack_a = a_row_major ? n > 2 * width : n > 4 * width;
  blocks.pack_b = !b_row_major || m > 6 * tile_rows;
  Index capacity = scratch_bytes / Index(sizeof(Real)) / depth;   // in rows of a or columns of b, one block of k deep
  blocks.rows = std::min(round_up(m, tile_rows), 16 * tile_rows);
  if (blocks.pack_a) {
    blocks.rows = std::max(std::min(blocks.rows, capacity / 4 / tile_rows * tile_rows), tile_rows);
    capacity -= blocks.rows;
  }
  capacity = capacity / width * width;
  const Index stretches = divide_up(std::max<Index>(k, 1), depth), padded = round_up(n, width);
  if (padded * stretches <= capacity) {
    blocks.columns = n, blocks.depth = stretches * depth;
  } else {
    blocks.columns = std::min({padded, capacity, std::max(768 / width * width, capacity / stretches / width * width)});
    blocks.depth = blocks.columns > 0 ? std::max<Index>(capacity / blocks.columns, 1) * depth : depth;
  }
  if (capacity < width) {
    throw Error("gemm.scratch", "a product needs " + std::to_string(minimum_product_scratch_bytes) + " bytes of scratch; it was given " +
                                    std::to_string(scratch_bytes));
  }
  return blocks;
}

// All tiles of one panel of b: rows of a from `row`, in tiles of Rows, then the rest in smaller ones.
template <class Isa, class Real, Index Rows, Index Vectors, bool RowMajor>
inline void product_column(Index row, Index rows, Index depth, const Real* a, Index a_stride, Index a_panel, const Real* b, Index b_stride,
                           const TileOutput<Real>& out, Index columns) {
  constexpr Index tile_rows = ProductTile<Isa>::rows;
  for (; rows - row >= Rows; row += Rows) {
    const Real* const tile = RowMajor ? a + row * a_stride : a + row / tile_rows * a_panel + row % tile_rows;
    product_tile<Isa, Real, Rows, Vectors, RowMajor>(depth, tile, a_stride, b, b_stride, out.at(row, 0), columns);
  }
  constexpr Index next = Rows > 8 ? 8 : Rows > 4 ? 4 : Rows - 1;
  if constexpr (next > 0) {
    if (row < rows) {
      product_column<Isa, Real, next, Vectors, RowMajor>(row, rows, depth, a, a_stride, a_panel, b, b_stride, out, columns);
    }
  }
}

template <class Isa, class Real, bool RowMajor>
inline void product_panel(Index rows, Index depth, const Real* a, Index a_stride, Index a_panel, const Real* b, Index b_stride,
                          const TileOutput<Real>& out, Index columns) {
  constexpr Index tile_rows = ProductTile<Isa>::rows;
  if (columns > simd::lanes<Isa, Real>) {
    product_column<Isa, Real, tile_rows, 2, RowMajor>(0, rows, depth, a, a_stride, a_panel, b, b_stride, out, columns);
  } else {
    product_column<Isa, Real, tile_rows, 1, RowMajor>(0, rows, depth, a, a_stride, a_panel, b, b_stride, out, columns);
  }
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
  const ProductBlocks blocks = product_blocks<Isa, Real>(m, n, k, a.row_major, b.row_major, scratch.bytes);
  Real* const packed_a = reinterpret_cast<Real*>(scratch.data);
  Real* const packed_b = packed_a + (blocks.pack_a ? blocks.rows * std::min(k, product_depth) : 0);
  const TileOutput<Real> later{first.c, first.ldc, first.c, first.ldc, nullptr};

  for (Index column = 0; column < n; column += blocks.columns) {
    const Index columns = std::min(blocks.columns, n - column), padded = round_up(columns, width);
    Index stretch = 0;
    do {   // k = 0 passes once: c is still to be written
      const Index stretch_end = std::min(k, stretch + blocks.depth);
      for (Index p = stretch; p < stretch_end; p += product_depth) {
        const Index depth = std::min(product_depth, stretch_end - p);
        for (Index j = 0; j < columns; j += width) {
          const Index w = std::min(width, columns - j);
          if (!blocks.pack_b && w % lanes == 0) continue;   // read where it lies
          pack_panel<width>(b.row_major, w, round_up(w, lanes), depth, b.at(p, column + j), b.stride,
                            packed_b + (p - stretch) * padded + j * depth);
        }
      }
      for (Index row = 0; row < m; row += blocks.rows) {
        const Index rows = std::min(blocks.rows, m - row);
        Index p = stretch;
        do {
          const Index depth = std::min(product_depth, stretch_end - p);
          if (blocks.pack_a) {
            for (Index i = 0; i < rows; i += tile_rows) {
              const Index h = std::min(tile_rows, rows - i);
              pack_panel<tile_rows>(!a.row_major, h, h, depth, a.at(row + i, p), a.stride, packed_a + i * depth);
            }
          }
          const Real* const left = blocks.pack_a ? packed_a : a.at(row, p);
          const TileOutput<Real> out = (p == 0 ? first : later).at(row, column);
          for (Index j = 0; j < columns; j += width) {
            const Index w = std::min(width, columns - j);
            const bool packed = blocks.pack_b || w % lanes != 0;
            const Real* const right = packed ? packed_b + (p - stretch) * padded + j * depth : b.at(p, column + j);
            const Index right_stride = packed ? width : b.stride;
            if (blocks.pack_a) {
              product_panel<Isa, Real, false>(rows, depth, left, tile_rows, tile_rows * depth, right, right_stride, out.at(0, j), w);
            } else if (a.row_major) {
              product_panel<Isa, Real, true>(rows, depth, left, a.stride, 0, right, right_stride, out.at(0, j), w);
            } else {
              product_panel<Isa, Real, false>(rows, depth, left, a.stride, tile_rows, right, right_stride, out.at(0, j), w);
            }
          }
          p += product_depth;
        } while (p < stretch_end);
      }
      stretch += blocks.depth;
    } while (stretch < k);
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
