// SPDX-License-Identifier: Apache-2.0
// Rows of a table by token: the contract, and a plain implementation to test the others against.
#pragma once

#include "weft/base/config.hpp"

namespace weft::kernel {

// y[r] = table[tokens[r]]. Returns -1, or the first row whose token is outside [0, vocabulary): the rows before it are written, it and the
// following ones are not.
// Shapes: tokens (rows); table (V, C) with V = vocabulary, C = width; y (rows, C).
template <class Real>
inline Index embedding_forward(Index rows, Index vocabulary, Index width, const std::int32_t* tokens, const Real* table, Real* y) {
  for (Index r = 0; r < rows; ++r) {
    if (tokens[r] < 0 || tokens[r] >= vocabulary) return r;
    for (Index c = 0; c < width; ++c) y[r * width + c] = table[tokens[r] * width + c];
  }
  return -1;
}

// dtable[tokens[r]] += dy[r], in the order of the rows. Tokens outside the table are skipped; forward has named them.
template <class Real>
inline void embedding_backward(Index rows, Index vocabulary, Index width, const std::int32_t* tokens, const Real* dy, Real* dtable) {
  for (Index r = 0; r < rows; ++r) {
    if (tokens[r] < 0 || tokens[r] >= vocabulary) continue;
    for (Index c = 0; c < width; ++c) dtable[tokens[r] * width + c] += dy[r * width + c];
  }
}

}  // namespace weft::kernel
