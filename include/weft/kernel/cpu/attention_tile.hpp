// SPDX-License-Identifier: Apache-2.0
// What the tiles of attention are made of: packed operands in scratch, and products of eight or four rows held in registers.
// Operands in scratch are padded with zeros to whole groups of rows and whole vectors, so that a product has no tails.
#pragma once

#include <algorithm>
#include <string>

#include "weft/base/error.hpp"
#include "weft/kernel/cpu/gemm_micro.hpp"
#include "weft/kernel/cpu/gemm_pack.hpp"
#include "weft/kernel/scratch.hpp"
#include "weft/simd/vector.hpp"

namespace weft::kernel::cpu {

// The lanes of a vector combined in halves: a fixed order, in as many steps as the logarithm of their number.
template <class Isa, class Real, class Combine>
inline Real folded_lanes(simd::Vector<Isa, Real> x, Combine combine) {
  constexpr Index lanes = simd::lanes<Isa, Real>;
  if constexpr (Isa::register_bytes > simd::Generic::register_bytes) {
    using Half = std::conditional_t<Isa::register_bytes == 64, simd::Avx2, simd::Generic>;
    simd::Vector<Half, Real> low, high;
    if constexpr (lanes == 16) {
      low = __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7), high = __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
    } else if constexpr (lanes == 8) {
      low = __builtin_shufflevector(x, x, 0, 1, 2, 3), high = __builtin_shufflevector(x, x, 4, 5, 6, 7);
    } else {
      low = __builtin_shufflevector(x, x, 0, 1), high = __builtin_shufflevector(x, x, 2, 3);
    }
    return folded_lanes<Half, Real>(combine(low, high), combine);
  } else if constexpr (lanes == 4) {
    x = combine(x, __builtin_shufflevector(x, x, 2, 3, 2, 3));
    return combine(x, __builtin_shufflevector(x, x, 1, 1, 1, 1))[0];
  } else {
    return combine(x, __builtin_shufflevector(x, x, 1, 1))[0];
  }
}
template <class Isa, class Real>
inline Real lane_sum(simd::Vector<Isa, Real> x) {
  return folded_lanes<Isa, Real>(x, [](auto a, auto b) { return a + b; });
}
template <class Isa, class Real>
inline Real lane_maximum(simd::Vector<Isa, Real> x) {
  return folded_lanes<Isa, Real>(x, [](auto a, auto b) { return simd::select(a > b, a, b); });
}

// How attention is cut. rows × vectors sums keep both multiply-add units busy and leave registers for the operands; 8 rows leave little to
// compute in vain where the causal mask cuts a group. The keys and values of a tile stay in the second-level cache: with 16 KiB of
// them it is 5 to 25 % slower, between 64 and 128 KiB no difference was resolved.
template <class Isa, class Real>
struct AttentionTile {
  static constexpr Index rows = Isa::num_registers >= 32 ? 8 : 4;
  static constexpr Index vectors = 2;
  static constexpr Index lanes = simd::lanes<Isa, Real>;
  static constexpr Index panel = vectors * lanes;  // keys in a panel of transposed keys
  static constexpr Index most_queries = 128;       // forward: they share a packing of the keys
  static constexpr Index most_backward_queries = 64;
  static constexpr Index most_keys = 128;  // the distance of rows of a tile of scores

  static_assert(panel % rows == 0 && most_keys % panel == 0, "a tile of keys holds whole panels, a panel whole groups of rows");

  static constexpr Index padded(Index head_size) { return round_up(head_size, lanes); }
  static constexpr Index keys(Index head_size) {
    constexpr Index operand_bytes = 128 * KiB;
    const Index fitting = operand_bytes / (2 * padded(std::max<Index>(head_size, 1)) * Index(sizeof(Real)));
    return std::clamp(fitting / panel * panel, panel, most_keys);
  }
};

// Hands out a kernel's scratch, piece by piece.
class ScratchPieces {
 public:
  explicit ScratchPieces(Scratch scratch) : scratch_(scratch) {}

  template <class Element>
  Element* take(Index elements) {
    const Index begin = used_;
    used_ += round_up(elements * Index(sizeof(Element)), alignment_bytes);
    return begin + elements * Index(sizeof(Element)) <= scratch_.bytes ? reinterpret_cast<Element*>(scratch_.data + begin) : nullptr;
  }
  void check() const {
    if (used_ > scratch_.bytes) {
      throw Error("attention.scratch", "attention needs " + std::to_string(used_) + " bytes of scratch for its tiles; it was given " +
                                           std::to_string(scratch_.bytes));
    }
  }

 private:
  Scratch scratch_;
  Index used_ = 0;
};

// to (padded_rows, padded) = factor · from (rows, width), zeros around it.
template <class Isa, class Real>
inline void pack_scaled_rows(Index rows, Index width, Real factor, const Real* from, Index stride, Real* to, Index padded) {
  constexpr Index lanes = simd::lanes<Isa, Real>;
  const Index whole = width / lanes * lanes;
  for (Index r = 0; r < rows; ++r) {
    const Real* const row = from + r * stride;
    Real* const out = to + r * padded;
    for (Index d = 0; d < whole; d += lanes) simd::store<Isa>(out + d, factor * simd::load<Isa>(row + d));
    for (Index d = whole; d < width; ++d) out[d] = factor * row[d];
    for (Index d = width; d < padded; ++d) out[d] = 0;
  }
}

// to = factor · from, or to += factor · from if `accumulate`; from is in scratch, padded.
template <class Isa, class Real>
inline void put_row(Index width, Real factor, const Real* from, bool accumulate, Real* to) {
  constexpr Index lanes = simd::lanes<Isa, Real>;
  const Index whole = width / lanes * lanes;
  for (Index d = 0; d < whole; d += lanes) {
    const auto scaled = factor * simd::load<Isa>(from + d);
    simd::store<Isa>(to + d, accumulate ? simd::load<Isa>(static_cast<const Real*>(to + d)) + scaled : scaled);
  }
  for (Index d = whole; d < width; ++d) to[d] = accumulate ? to[d] + factor * from[d] : factor * from[d];
}

// Σ_d a · b.
template <class Isa, class Real>
inline Real row_product(Index width, const Real* a, const Real* b) {
  constexpr Index lanes = simd::lanes<Isa, Real>;
  simd::Vector<Isa, Real> sums = {};
  const Index whole = width / lanes * lanes;
  for (Index d = 0; d < whole; d += lanes) sums += simd::load<Isa>(a + d) * simd::load<Isa>(b + d);
  Real sum = lane_sum<Isa, Real>(sums);
  for (Index d = whole; d < width; ++d) sum += a[d] * b[d];
  return sum;
}

// Panels of transposed rows: to[panel][d][key of the panel], zeros up to whole vectors of keys.
template <class Isa, class Real>
inline void pack_transposed_keys(Index keys, Index width, const Real* from, Index stride, Real* to) {
  constexpr Index panel = AttentionTile<Isa, Real>::panel, lanes = AttentionTile<Isa, Real>::lanes;
  for (Index j = 0; j < keys; j += panel) {
    const Index count = std::min(panel, keys - j);
    Real* const out = to + j * width;
    pack_exchanged<Isa>(count, width, from + j * stride, stride, out, panel);
    for (Index pad = count; pad < round_up(count, lanes); ++pad) {
      for (Index d = 0; d < width; ++d) out[d * panel + pad] = 0;
    }
  }
}

// sums(r, v) += Σ_p a(r, p) b(p, v) for first <= p < last, in ascending p.
// a(r, p) is at a[r · a_stride + p] if RowMajor, else at a[p · a_stride + r]; b(p, v) is a vector at b[p · b_stride + v · lanes].
template <class Isa, class Real, Index Rows, Index Vectors, bool RowMajor>
WEFT_ALWAYS_INLINE inline void add_products(Index first, Index last, const Real* a, Index a_stride, const Real* b, Index b_stride,
                                            simd::Vector<Isa, Real> (&sums)[Rows][Vectors]) {
  constexpr Index groups = (Rows + 2) / 3, lanes = simd::lanes<Isa, Real>;
  const Real* rows[groups];  // three rows share a pointer; a pointer a row would not fit the registers
  unrolled<groups>([&](auto g) WEFT_ALWAYS_INLINE {
    rows[g] = RowMajor ? a + 3 * g * a_stride + first : a + first * a_stride;
    if constexpr (RowMajor) keep_in_register(rows[g]);
  });
  b += first * b_stride;
  for (Index p = first; p < last; ++p) {
    simd::Vector<Isa, Real> right[Vectors];
    unrolled<Vectors>([&](auto v) WEFT_ALWAYS_INLINE { right[v] = simd::load<Isa>(b + v * lanes); });
    unrolled<Rows>([&](auto r) WEFT_ALWAYS_INLINE {
      const simd::Vector<Isa, Real> left = simd::broadcast<Isa>(RowMajor ? rows[r / 3][r % 3 * a_stride] : rows[0][r]);
      unrolled<Vectors>([&](auto v) WEFT_ALWAYS_INLINE { sums[r][v] += left * right[v]; });
    });
    unrolled<groups>([&](auto g) WEFT_ALWAYS_INLINE {
      if constexpr (RowMajor) {
        ++rows[g];
      } else if constexpr (g == 0) {
        rows[g] += a_stride;
      }
    });
    b += b_stride;
  }
}

// Which p each row of a group sums over. What lies outside is not touched: zero times infinity would be NaN.
template <Index Rows>
struct RowRanges {
  Index begin[Rows] = {}, end[Rows] = {};
  Index first = 0, last = 0;                          // some row has p from here, to here
  Index common_begin = 0, common_end = 0;             // all rows have p in between
  bool begin_in_steps = false, end_in_steps = false;  // row r begins r later, ends r later than row 0: the causal diagonal

  // After begin and end are set.
  void summarise() {
    first = common_begin = begin[0], last = common_end = end[0];
    begin_in_steps = end_in_steps = true;
    for (Index r = 1; r < Rows; ++r) {
      first = std::min(first, begin[r]), common_begin = std::max(common_begin, begin[r]);
      last = std::max(last, end[r]), common_end = std::min(common_end, end[r]);
      begin_in_steps &= begin[r] == begin[0] + r, end_in_steps &= end[r] == end[0] + r;
    }
    common_begin = std::min(common_begin, common_end);
    begin_in_steps &= common_begin == begin[Rows - 1], end_in_steps &= common_begin <= common_end;
  }
};

// c(r, v) = factor[r] · c(r, v) + Σ_p a(r, p) b(p, v) over row r's own range; without Keep, c is not read.
// c is (Rows, vectors · lanes) with row stride c_stride; a and b as in add_products.
template <class Isa, class Real, Index Rows, Index Vectors, bool RowMajor, bool Keep>
inline void product_columns(const RowRanges<Rows>& ranges, const Real* a, Index a_stride, const Real* b, Index b_stride, const Real* factor,
                            Real* c, Index c_stride) {
  using Register = simd::Vector<Isa, Real>;
  constexpr Index lanes = simd::lanes<Isa, Real>;
  Register sums[Rows][Vectors] = {};
  if constexpr (Keep) {
    unrolled<Rows>([&](auto r) WEFT_ALWAYS_INLINE {
      unrolled<Vectors>([&](auto v) WEFT_ALWAYS_INLINE { sums[r][v] = factor[r] * simd::load<Isa>(c + r * c_stride + v * lanes); });
    });
  }
  // The steps of the diagonal stay in registers: row r takes part in `taken(r)` of the Rows - 1 steps that start at p.
  const auto add_steps = [&](Index p, auto taken) WEFT_ALWAYS_INLINE {
    unrolled<Rows - 1>([&](auto step) WEFT_ALWAYS_INLINE {
      Register right[Vectors];
      unrolled<Vectors>([&](auto v) WEFT_ALWAYS_INLINE { right[v] = simd::load<Isa>(b + (p + step) * b_stride + v * lanes); });
      unrolled<Rows>([&](auto r) WEFT_ALWAYS_INLINE {
        if constexpr (taken(r, step)) {
          const Register left = simd::broadcast<Isa>(RowMajor ? a[r * a_stride + p + step] : a[(p + step) * a_stride + r]);
          unrolled<Vectors>([&](auto v) WEFT_ALWAYS_INLINE { sums[r][v] += left * right[v]; });
        }
      });
    });
  };
  if constexpr (!RowMajor) {
    if (ranges.begin_in_steps) add_steps(ranges.begin[0], [](auto r, auto step) { return std::bool_constant<(r <= step)>{}; });
  }
  add_products<Isa, Real, Rows, Vectors, RowMajor>(ranges.common_begin, ranges.common_end, a, a_stride, b, b_stride, sums);
  if constexpr (RowMajor) {
    if (ranges.end_in_steps) add_steps(ranges.end[0], [](auto r, auto step) { return std::bool_constant<(r > step)>{}; });
  }
  unrolled<Rows>([&](auto r) WEFT_ALWAYS_INLINE {
    unrolled<Vectors>([&](auto v) WEFT_ALWAYS_INLINE { simd::store<Isa>(c + r * c_stride + v * lanes, sums[r][v]); });
  });
  const bool before = ranges.first < ranges.common_begin && !(!RowMajor && ranges.begin_in_steps);
  const bool after = ranges.last > ranges.common_end && !(RowMajor && ranges.end_in_steps);
  if (!before && !after) return;
  const auto add_range = [&](Index r, Index first, Index last) {
    if (first >= last) return;
    Register sum[Vectors];
    unrolled<Vectors>([&](auto v) WEFT_ALWAYS_INLINE { sum[v] = simd::load<Isa>(c + r * c_stride + v * lanes); });
    for (Index p = first; p < last; ++p) {
      const Register left = simd::broadcast<Isa>(RowMajor ? a[r * a_stride + p] : a[p * a_stride + r]);
      unrolled<Vectors>([&](auto v) WEFT_ALWAYS_INLINE { sum[v] += left * simd::load<Isa>(b + p * b_stride + v * lanes); });
    }
    unrolled<Vectors>([&](auto v) WEFT_ALWAYS_INLINE { simd::store<Isa>(c + r * c_stride + v * lanes, sum[v]); });
  };
  for (Index r = 0; r < Rows; ++r) {
    if (before) add_range(r, ranges.begin[r], std::min(ranges.common_begin, ranges.end[r]));
    if (after) add_range(r, std::max(ranges.common_end, ranges.begin[r]), ranges.end[r]);
  }
}

// The same for all columns of c, a multiple of lanes.
template <class Isa, class Real, bool RowMajor, bool Keep, Index Rows>
inline void product_rows(const RowRanges<Rows>& ranges, Index columns, const Real* a, Index a_stride, const Real* b, Index b_stride,
                         const Real* factor, Real* c, Index c_stride) {
  constexpr Index lanes = simd::lanes<Isa, Real>;
  Index d = 0;
  for (; d + 2 * lanes <= columns; d += 2 * lanes) {
    product_columns<Isa, Real, Rows, 2, RowMajor, Keep>(ranges, a, a_stride, b + d, b_stride, factor, c + d, c_stride);
  }
  if (d < columns) product_columns<Isa, Real, Rows, 1, RowMajor, Keep>(ranges, a, a_stride, b + d, b_stride, factor, c + d, c_stride);
}

// Calls block(column, vectors, sums) for the products of a group of rows of a (Rows, width) with the first `keys` packed keys; sums
// start from start[r], or zero if null. vectors is 2 or 1 as a constant.
template <class Isa, class Real, Index Rows, class Block>
WEFT_ALWAYS_INLINE inline void for_each_score_block(Index keys, Index width, const Real* a, Index a_stride, const Real* packed,
                                                    const Real* start, Block&& block) {
  constexpr Index panel = AttentionTile<Isa, Real>::panel, lanes = AttentionTile<Isa, Real>::lanes;
  const auto compute = [&](auto vectors, Index column) WEFT_ALWAYS_INLINE {
    simd::Vector<Isa, Real> sums[Rows][vectors];
    unrolled<Rows>([&](auto r) WEFT_ALWAYS_INLINE {
      const auto begin = simd::broadcast<Isa>(start ? start[r] : Real(0));
      unrolled<vectors>([&](auto v) WEFT_ALWAYS_INLINE { sums[r][v] = begin; });
    });
    add_products<Isa, Real, Rows, vectors, true>(0, width, a, a_stride, packed + column * width, panel, sums);
    block(column, sums);
  };
  Index column = 0;
  for (; column + lanes < keys; column += panel) compute(std::integral_constant<Index, 2>{}, column);
  if (column < keys) compute(std::integral_constant<Index, 1>{}, column);
}

}  // namespace weft::kernel::cpu
