// SPDX-License-Identifier: Apache-2.0
// 64-bit FNV-1a over canonical data: the fingerprint of a plan. Constexpr, so that a static plan and one made at start-up can be compared.
#pragma once

#include <cstdint>

#include "weft/base/config.hpp"

namespace weft {

class Fingerprint {
 public:
  constexpr Fingerprint& add(std::int64_t value) {
    for (int shift = 0; shift < 64; shift += 8) byte(std::uint8_t(std::uint64_t(value) >> shift));
    return *this;
  }
  constexpr Fingerprint& add(const char* text) {
    for (; *text; ++text) byte(std::uint8_t(*text));
    byte(0);  // so that "ab" + "c" differs from "a" + "bc"
    return *this;
  }
  constexpr std::uint64_t value() const { return value_; }

 private:
  constexpr void byte(std::uint8_t b) { value_ = (value_ ^ b) * 0x100000001b3u; }

  std::uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace weft
