// SPDX-License-Identifier: Apache-2.0
// A string as a template argument: the name of a part of a model.
#pragma once

#include <cstddef>

namespace weft {

template <std::size_t Length>
struct FixedString {
  char text[Length]{};

  constexpr FixedString(const char (&from)[Length]) {  // not explicit: Named<"blocks", …> relies on the conversion
    for (std::size_t i = 0; i < Length; ++i) text[i] = from[i];
  }
  bool operator==(const FixedString&) const = default;
};

constexpr bool same_text(const char* a, const char* b) {
  while (*a && *a == *b) ++a, ++b;
  return *a == *b;
}

}  // namespace weft
