// SPDX-License-Identifier: Apache-2.0
// The innermost part of a matrix product: one tile of c held in registers while a depth of k passes by.
//
// Every element of every tile, whatever the tile's size and position, is the same chain of operations: starting from zero, one
// multiply-add for each p in ascending order. The bits of an element therefore depend on its row of a, its column of b and the depth alone.
#pragma once

#include <type_traits>
#include <utility>

#include "weft/simd/vector.hpp"

namespace weft::kernel::cpu {

// The tile of c that fills the registers of an instruction set: rows · vectors sums, `vectors` operands of b and one of a at a time.
template <class Isa>
struct ProductTile {
  static constexpr Index rows = Isa::num_registers >= 32 ? 12 : 6;
  static constexpr Index vectors = 2;
};
template <class Isa, class Real>
inline constexpr Index tile_columns = ProductTile<Isa>::vectors* simd::lanes<Isa, Real>;

// Where a tile goes: c = sums + from + bias, each addend where it is given. `from` may be c itself.
template <class Real>
struct TileOutput {
  Real* c;  // (rows, columns)
  Index ldc;
  const Real* from;  // (rows, columns) or null
  Index from_stride;
  const Real* bias;  // (columns) or null

  TileOutput at(Index row, Index column) const {
    return {c + row * ldc + column, ldc, from ? from + row * from_stride + column : nullptr, from_stride, bias ? bias + column : nullptr};
  }
};

// body(0), …, body(Count - 1) with constant arguments: arrays that are indexed by them stay in registers at any optimisation level.
template <Index Count, class Body>
WEFT_ALWAYS_INLINE inline void unrolled(Body&& body) {
  [&]<Index... Step>(std::integer_sequence<Index, Step...>) WEFT_ALWAYS_INLINE { (body(std::integral_constant<Index, Step>{}), ...); }
  (std::make_integer_sequence<Index, Count>{});
}

// The compiler forgets how the pointer was computed, so that it does not compute it again.
template <class Real>
WEFT_ALWAYS_INLINE inline void keep_in_register(const Real*& pointer) {
  asm("" : "+r"(pointer));
}

// The end of a tile at c's right edge, whose last vector is only partly inside.
template <class Isa, class Real>
inline void store_partial_tile(const Real* tile, Index tile_stride, Index rows, Index columns, const TileOutput<Real>& out) {
  for (Index r = 0; r < rows; ++r) {
    const Real* const sums = tile + r * tile_stride;
    const Real* const from = out.from ? out.from + r * out.from_stride : nullptr;
    Real* const c = out.c + r * out.ldc;
    for (Index j = 0; j < columns; ++j) {
      Real sum = sums[j];
      if (from) sum += from[j];
      if (out.bias) sum += out.bias[j];
      c[j] = sum;
    }
  }
}

// One tile: Rows × columns, columns in ((Vectors - 1) · lanes, Vectors · lanes].
// a(r, p) is at a[r · a_stride + p] if RowMajor, else at a[p · a_stride + r]; b(p, j) at b[p · b_stride + j], readable up to whole vectors.
template <class Isa, class Real, Index Rows, Index Vectors, bool RowMajor>
inline void product_tile(Index depth, const Real* a, Index a_stride, const Real* b, Index b_stride, const TileOutput<Real>& out,
                         Index columns) {
  using Register = simd::Vector<Isa, Real>;
  constexpr Index width = simd::lanes<Isa, Real>;
  constexpr Index groups = (Rows + 2) / 3;
  Register sums[Rows][Vectors] = {};
  // Three rows of a share a pointer (it, + stride, + 2 · stride: one addressing mode each); a pointer a row would not fit the registers.
  const Real* rows[groups];
  unrolled<groups>([&](auto g) WEFT_ALWAYS_INLINE {
    rows[g] = RowMajor ? a + 3 * g * a_stride : a;
    if constexpr (RowMajor) keep_in_register(rows[g]);
  });
  for (Index p = 0; p < depth; ++p) {
    Register right[Vectors];
    unrolled<Vectors>([&](auto v) WEFT_ALWAYS_INLINE { right[v] = simd::load<Isa>(b + v * width); });
    unrolled<Rows>([&](auto r) WEFT_ALWAYS_INLINE {
      const Register left = simd::broadcast<Isa>(RowMajor ? rows[r / 3][r % 3 * a_stride] : rows[0][r]);
      unrolled<Vectors>([&](auto v) WEFT_ALWAYS_INLINE { sums[r][v] += left * right[v]; });
    });
    if constexpr (RowMajor) {
      unrolled<groups>([&](auto g) WEFT_ALWAYS_INLINE { ++rows[g]; });
    } else {
      rows[0] += a_stride;
    }
    b += b_stride;
  }
  if (columns < Vectors * width) {
    alignas(alignment_bytes) Real tile[Rows * Vectors * width];
    unrolled<Rows>([&](auto r) WEFT_ALWAYS_INLINE {
      unrolled<Vectors>([&](auto v) WEFT_ALWAYS_INLINE { simd::store<Isa>(tile + (r * Vectors + v) * width, sums[r][v]); });
    });
    store_partial_tile<Isa, Real>(tile, Vectors * width, Rows, columns, out);
    return;
  }
  if (out.from) {
    unrolled<Rows>([&](auto r) WEFT_ALWAYS_INLINE {
      unrolled<Vectors>([&](auto v) WEFT_ALWAYS_INLINE { sums[r][v] += simd::load<Isa>(out.from + r * out.from_stride + v * width); });
    });
  }
  if (out.bias) {
    unrolled<Vectors>([&](auto v) WEFT_ALWAYS_INLINE {
      const Register bias = simd::load<Isa>(out.bias + v * width);
      unrolled<Rows>([&](auto r) WEFT_ALWAYS_INLINE { sums[r][v] += bias; });
    });
  }
  unrolled<Rows>([&](auto r) WEFT_ALWAYS_INLINE {
    unrolled<Vectors>([&](auto v) WEFT_ALWAYS_INLINE { simd::store<Isa>(out.c + r * out.ldc + v * width, sums[r][v]); });
  });
}

}  // namespace weft::kernel::cpu
