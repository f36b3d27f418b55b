// SPDX-License-Identifier: Apache-2.0
// Text from parts, for messages. Appends only: g++ 12 warns wrongly (-Wrestrict) where `"literal" + std::string` is inlined.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace weft {

inline void append_text(std::string& text, std::string_view part) { text += part; }
inline void append_text(std::string& text, std::integral auto number) { text += std::to_string(number); }

// text_of("rank ", 2, ": ", name): strings and integers, one after the other.
template <class... Parts>
std::string text_of(const Parts&... parts) {
  std::string text;
  (append_text(text, parts), ...);
  return text;
}

}  // namespace weft
