// SPDX-License-Identifier: Apache-2.0
// Sums, copies and measures of flat ranges and of columns: the contracts, and plain implementations to test the others against.
#pragma once

#include <cmath>

#include "weft/base/config.hpp"

namespace weft::kernel {

// y = a + b. Shapes: (n) each; any of them may be the same memory.
template <class Real>
inline void add(Index n, const Real* a, const Real* b, Real* y) {
  for (Index i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

// to = from, `width` columns of each row. Strides in elements.
template <class Real>
inline void copy_columns(Index rows, const Real* from, Index from_stride, Real* to, Index to_stride, Index width) {
  for (Index r = 0; r < rows; ++r) {
    for (Index c = 0; c < width; ++c) to[r * to_stride + c] = from[r * from_stride + c];
  }
}

// to += from, `width` columns of each row.
template <class Real>
inline void add_columns(Index rows, const Real* from, Index from_stride, Real* to, Index to_stride, Index width) {
  for (Index r = 0; r < rows; ++r) {
    for (Index c = 0; c < width; ++c) to[r * to_stride + c] += from[r * from_stride + c];
  }
}

// Σ x², in double, in a fixed order. A NaN or an infinity among x makes it NaN or infinite.
template <class Real>
inline double square_sum(Index n, const Real* x) {
  double sum = 0;
  for (Index i = 0; i < n; ++i) sum += double(x[i]) * double(x[i]);
  return sum;
}

// Whether no element is infinite or NaN.
template <class Real>
inline bool all_finite(Index n, const Real* x) {
  for (Index i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) return false;
  }
  return true;
}

}  // namespace weft::kernel
