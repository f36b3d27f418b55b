// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10: 128 bits of counter and 64 of key in, 128 random bits out, no state. Host and device, compile time and run time.
// Source: J. Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011, section 3.3 and table 2.
#pragma once

#include "weft/base/config.hpp"

namespace weft::random {

struct PhiloxBlock {
  std::uint32_t word[4]{};
  bool operator==(const PhiloxBlock&) const = default;
};
struct PhiloxKey {
  std::uint32_t word[2]{};
  bool operator==(const PhiloxKey&) const = default;
};

// The multipliers of the two halves, and what the key grows by in each round (the golden section, and √3 - 1). Scalars, not arrays:
// device code may use a constexpr scalar of the host's.
inline constexpr int philox_rounds = 10;
inline constexpr std::uint32_t philox_multiplier_0 = 0xD2511F53u, philox_multiplier_1 = 0xCD9E8D57u;
inline constexpr std::uint32_t philox_increment_0 = 0x9E3779B9u, philox_increment_1 = 0xBB67AE85u;

WEFT_HOST_DEVICE constexpr PhiloxBlock philox(PhiloxBlock c, PhiloxKey k) {
  for (int round = 0; round < philox_rounds; ++round) {
    const std::uint64_t first = std::uint64_t(philox_multiplier_0) * c.word[0], second = std::uint64_t(philox_multiplier_1) * c.word[2];
    c = {{std::uint32_t(second >> 32) ^ c.word[1] ^ k.word[0], std::uint32_t(second), std::uint32_t(first >> 32) ^ c.word[3] ^ k.word[1],
          std::uint32_t(first)}};
    k = {{k.word[0] + philox_increment_0, k.word[1] + philox_increment_1}};
  }
  return c;
}

}  // namespace weft::random
