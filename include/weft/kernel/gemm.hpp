// SPDX-License-Identifier: Apache-2.0
// Matrix product: the contract, and a plain implementation to test the others against.
#pragma once

#include "weft/base/config.hpp"

namespace weft::kernel {

enum class Transpose : char { no, yes };

// c = (accumulate ? c : 0) + op(a) op(b), row-major.
// Shapes: op(a) (m, k), op(b) (k, n), c (m, n); lda, ldb, ldc are the distances between stored rows, so a transposed a is stored (k, m).
// Sizes may be 0: with k = 0 the product is all zeros. c overlaps neither a nor b.
// 0 · NaN and 0 · ∞ are NaN: no term is skipped. Without accumulate, c is not read.
template <class Real>
inline void gemm(Transpose ta, Transpose tb, Index m, Index n, Index k, const Real* a, Index lda, const Real* b, Index ldb, bool accumulate,
                 Real* c, Index ldc) {
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j) {
      Real sum = 0;
      for (Index p = 0; p < k; ++p) {
        sum += (ta == Transpose::no ? a[i * lda + p] : a[p * lda + i]) * (tb == Transpose::no ? b[p * ldb + j] : b[j * ldb + p]);
      }
      c[i * ldc + j] = accumulate ? c[i * ldc + j] + sum : sum;
    }
  }
}

}  // namespace weft::kernel
