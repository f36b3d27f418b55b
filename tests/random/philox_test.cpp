// SPDX-License-Identifier: Apache-2.0
#include <weft/random/philox.hpp>

#include <doctest/doctest.h>

using namespace weft::random;

// The known answers that are published with Random123 (philox4x32, 10 rounds): they also hold at compile time.
static_assert(philox({{0, 0, 0, 0}}, {{0, 0}}) == PhiloxBlock{{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}},
              "known answer of zeros");
static_assert(philox({{0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu}}, {{0xffffffffu, 0xffffffffu}}) ==
                  PhiloxBlock{{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}},
              "known answer of ones");
static_assert(philox({{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}}, {{0xa4093822u, 0x299f31d0u}}) ==
                  PhiloxBlock{{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}},
              "known answer of the digits of pi");

TEST_CASE("philox_known_answers_hold_at_run_time") {
  volatile std::uint32_t zero = 0;
  CHECK(philox({{zero, zero, zero, zero}}, {{zero, zero}}) == PhiloxBlock{{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}});
}

#if __has_include(<Random123/philox.h>)
#include <Random123/philox.h>

TEST_CASE("philox_agrees_with_random123") {
  r123::Philox4x32 other;
  std::uint32_t state = 12345;
  const auto next = [&state] { return state = state * 1664525u + 1013904223u; };
  for (int i = 0; i < 1000; ++i) {
    const std::uint32_t c[4] = {next(), next(), next(), next()}, k[2] = {next(), next()};
    r123::Philox4x32::ctr_type counter = {{c[0], c[1], c[2], c[3]}};
    r123::Philox4x32::key_type key = {{k[0], k[1]}};
    const auto right = other(counter, key);
    const PhiloxBlock ours = philox({{c[0], c[1], c[2], c[3]}}, {{k[0], k[1]}});
    for (unsigned j = 0; j < 4; ++j) CHECK(ours.word[j] == right[j]);
  }
}
#endif
