// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/simd/vector.hpp"

namespace weft {

// A state without its denormal numbers: where |state| is below `least`, the smallest normal number, 0. A mean that is fed with zeros, as
// that of a token that no batch holds, ends in denormal numbers and, rounded to nearest, stays there; arithmetic with them was measured to
// take ten times as long. They are too small to move a parameter.
template <class Vector, class Real>
WEFT_ALWAYS_INLINE inline Vector faded_to_zero(Vector state, Real least) {
  return simd::select((state < least) & (state > -least), Vector{}, state);
}

}  // namespace weft
