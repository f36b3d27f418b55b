// SPDX-License-Identifier: Apache-2.0
// Linear map on top of a products policy; contracts in weft/kernel/linear.hpp.
#pragma once

#include <algorithm>

#include "weft/kernel/cpu/gemm.hpp"
#include "weft/kernel/cpu/products.hpp"
#include "weft/kernel/linear.hpp"

namespace weft::kernel::cpu {

// y = x Wᵀ + bias + residual; see gemm_add for the cost of the addends.
template <class Products, class Isa, class Real>
inline void linear_forward(Index rows, Index in, Index out, const Real* x, const Real* weight, const Real* bias, const Real* residual,
                           Real* y, Scratch scratch) {
  gemm_add<Products, Isa, Real>(Transpose::no, Transpose::yes, rows, out, in, x, in, weight, in, residual, out, bias, y, out, scratch);
}

// dx = dy W, or dx += dy W.
template <class Products, class Isa, class Real>
inline void linear_backward_input(Index rows, Index in, Index out, const Real* dy, const Real* weight, Real* dx, bool accumulate,
                                  Scratch scratch) {
  Products::template gemm<Isa, Real>(Transpose::no, Transpose::no, rows, in, out, dy, out, weight, in, accumulate, dx, in, scratch);
}

// sums[j] += Σ over rows of x[r · stride + j], in the order of a product: chains of product_depth rows. Columns stay in registers.
template <class Isa, class Real>
inline void add_row_sums(Index rows, Index width, const Real* x, Index stride, Real* sums) {
  using Register = simd::Vector<Isa, Real>;
  constexpr Index lanes = simd::lanes<Isa, Real>, vectors = 8;
  for (Index row = 0; row < rows; row += product_depth) {
    const Index end = std::min(rows, row + product_depth);
    Index j = 0;
    for (; j + vectors * lanes <= width; j += vectors * lanes) {
      Register total[vectors] = {};
      for (Index r = row; r < end; ++r) {
        unrolled<vectors>([&](auto v) WEFT_ALWAYS_INLINE { total[v] += simd::load<Isa>(x + r * stride + j + v * lanes); });
      }
      unrolled<vectors>([&](auto v) WEFT_ALWAYS_INLINE {
        simd::store<Isa>(sums + j + v * lanes, simd::load<Isa>(static_cast<const Real*>(sums + j + v * lanes)) + total[v]);
      });
    }
    for (; j < width; j += lanes) {
      const Index count = std::min(lanes, width - j);
      Register total = {};
      for (Index r = row; r < end; ++r) {
        total += count == lanes ? simd::load<Isa>(x + r * stride + j) : simd::load_first<Isa>(x + r * stride + j, count);
      }
      simd::store_first<Isa>(sums + j, simd::load_first<Isa>(static_cast<const Real*>(sums + j), count) + total, count);
    }
  }
}

// dweight += dyᵀ x; dbias += the sum of dy's rows.
template <class Products, class Isa, class Real>
inline void linear_backward_weight(Index rows, Index in, Index out, const Real* x, const Real* dy, Real* dweight, Real* dbias,
                                   Scratch scratch) {
  if (dbias) add_row_sums<Isa>(rows, out, dy, out, dbias);
  Products::template gemm<Isa, Real>(Transpose::yes, Transpose::no, out, in, rows, dy, out, x, in, true, dweight, in, scratch);
}

}  // namespace weft::kernel::cpu
