// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "weft/simd/vector.hpp"

namespace weft::simd {

// body(tag) with the widest registers up to Isa's that `count` elements fill; with Generic if they fill none. For short rows, where a loop
// over wide registers would be all tail: the last register of a row may then overlap the one before it.
template <class Isa, class T, class Body>
inline void with_fitting_registers(Index count, Body&& body) {
  if constexpr (Isa::register_bytes > Generic::register_bytes) {
    using Narrower = std::conditional_t<(Isa::register_bytes > Avx2::register_bytes), Avx2, Generic>;
    if (count < lanes<Isa, T>) return with_fitting_registers<Narrower, T>(count, body);
  }
  body(Isa{});
}

}  // namespace weft::simd
