// SPDX-License-Identifier: Apache-2.0
// Rows of a table by token on vector registers; contracts in weft/kernel/embedding.hpp.
#pragma once

#include <algorithm>

#include "weft/kernel/cpu/lanes.hpp"

namespace weft::kernel::cpu {

template <class Isa, class Real>
inline Index embedding_forward(Index rows, Index vocabulary, Index width, const std::int32_t* tokens, const Real* table, Real* y) {
  for (Index r = 0; r < rows; ++r) {
    if (tokens[r] < 0 || tokens[r] >= vocabulary) return r;
    std::copy_n(table + tokens[r] * width, width, y + r * width);
  }
  return -1;
}

template <class Isa, class Real>
inline void embedding_backward(Index rows, Index vocabulary, Index width, const std::int32_t* tokens, const Real* dy, Real* dtable) {
  for (Index r = 0; r < rows; ++r) {
    if (tokens[r] < 0 || tokens[r] >= vocabulary) continue;
    Real* row = dtable + tokens[r] * width;  // (C)
    map<Isa>(width, static_cast<const Real*>(row), dy + r * width, row, [](auto a, auto b) WEFT_ALWAYS_INLINE { return a + b; });
  }
}

}  // namespace weft::kernel::cpu
