// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "weft/base/config.hpp"

namespace weft {

// std::vector(count, value) for constant evaluation: clang 14 refuses libstdc++ 12's assign there.
template <class T>
constexpr std::vector<T> filled(Index count, T value) {
  std::vector<T> out;
  out.reserve(std::size_t(count));
  for (Index i = 0; i < count; ++i) out.push_back(value);
  return out;
}

}  // namespace weft
