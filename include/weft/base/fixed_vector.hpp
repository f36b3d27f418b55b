// SPDX-License-Identifier: Apache-2.0
// A vector whose storage is inside it, so that descriptions can be constexpr data. Overflow is an error of the constant evaluation,
// or an exception when it happens at run time.
#pragma once

#include <stdexcept>

#include "weft/base/config.hpp"

namespace weft {

template <class T, int Capacity>
struct FixedVector {
  T items[Capacity]{};
  int count = 0;

  constexpr void push(const T& item) {
    if (count == Capacity)
      throw std::length_error("weft[base.capacity]: a FixedVector is full; a layer describes more than its tables hold");
    items[count++] = item;
  }
  constexpr int size() const { return count; }
  constexpr bool empty() const { return count == 0; }
  constexpr const T* begin() const { return items; }
  constexpr const T* end() const { return items + count; }
  constexpr const T& operator[](int i) const { return items[i]; }
  constexpr T& operator[](int i) { return items[i]; }
  bool operator==(const FixedVector&) const = default;
};

}  // namespace weft
