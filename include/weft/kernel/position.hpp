// SPDX-License-Identifier: Apache-2.0
// Learned positions: the contract, and a plain implementation to test the others against.
#pragma once

#include "weft/base/config.hpp"

namespace weft::kernel {

// y[b, s] = x[b, s] + table[past + s].
// Shapes: x, y (B, S, C) with C = width; table (capacity, C), past + S <= capacity. x == y may alias.
template <class Real>
inline void position_forward(Index batch, Index sequence, Index past, Index width, const Real* x, const Real* table, Real* y) {
  for (Index b = 0; b < batch; ++b) {
    for (Index s = 0; s < sequence; ++s) {
      for (Index c = 0; c < width; ++c) {
        const Index i = (b * sequence + s) * width + c;
        y[i] = x[i] + table[(past + s) * width + c];
      }
    }
  }
}

// dtable[s] += Σ batch dy[b, s], in the order of the batch; training starts at position 0.
template <class Real>
inline void position_backward(Index batch, Index sequence, Index width, const Real* dy, Real* dtable) {
  for (Index b = 0; b < batch; ++b) {
    for (Index i = 0; i < sequence * width; ++i) dtable[i] += dy[b * sequence * width + i];
  }
}

}  // namespace weft::kernel
