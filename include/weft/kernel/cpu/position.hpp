// SPDX-License-Identifier: Apache-2.0
// Learned positions on vector registers; contracts in weft/kernel/position.hpp.
#pragma once

#include "weft/kernel/cpu/elementwise.hpp"

namespace weft::kernel::cpu {

template <class Isa, class Real>
inline void position_forward(Index batch, Index sequence, Index past, Index width, const Real* x, const Real* table, Real* y) {
  const Index n = sequence * width;  // the rows past … past + sequence - 1 of the table lie together
  for (Index b = 0; b < batch; ++b) add<Isa>(n, x + b * n, table + past * width, y + b * n);
}

template <class Isa, class Real>
inline void position_backward(Index batch, Index sequence, Index width, const Real* dy, Real* dtable) {
  const Index n = sequence * width;
  for (Index b = 0; b < batch; ++b) add<Isa>(n, static_cast<const Real*>(dtable), dy + b * n, dtable);
}

}  // namespace weft::kernel::cpu
