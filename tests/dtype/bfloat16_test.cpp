// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>

#include <weft/dtype/bfloat16.hpp>

using weft::bfloat16;

static_assert(sizeof(bfloat16) == 2 && weft::element_type_of<bfloat16> == weft::ElementType::bf16, "two bytes, known as bf16");
static_assert(float(bfloat16(1.5F)) == 1.5F && bfloat16(1.0F).bits() == 0x3f80, "conversions are constant expressions");

static float upper_half(unsigned bits) { return std::bit_cast<float>(std::uint32_t(bits) << 16); }

TEST_CASE("bfloat16_every_pattern_widens_and_comes_back") {
  int num_wrong = 0;
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const float wide = bfloat16::from_bits(static_cast<std::uint16_t>(bits));
    if (std::isnan(upper_half(bits)))
      num_wrong += !std::isnan(wide) || !std::isnan(float(bfloat16(wide)));
    else
      num_wrong += wide != upper_half(bits) || bfloat16(wide).bits() != bits;
  }
  CHECK(num_wrong == 0);
}

TEST_CASE("bfloat16_between_neighbours_rounds_to_nearest_ties_to_even") {
  int num_wrong = 0;
  for (unsigned bits = 0; bits < 0x7f7f; ++bits) {
    const unsigned even = bits % 2 == 0 ? bits : bits + 1;
    const std::uint32_t tie = (std::uint32_t(bits) << 16) + 0x8000U;
    num_wrong += bfloat16(std::bit_cast<float>(tie)).bits() != even;
    num_wrong += bfloat16(-std::bit_cast<float>(tie)).bits() != (even | 0x8000U);
    num_wrong += bfloat16(std::bit_cast<float>(tie - 1)).bits() != bits;
    num_wrong += bfloat16(std::bit_cast<float>(tie + 1)).bits() != bits + 1;
  }
  CHECK(num_wrong == 0);
}

TEST_CASE("bfloat16_special_values_are_kept") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(bfloat16(infinity) == infinity);
  CHECK(bfloat16(-infinity) == -infinity);
  CHECK(bfloat16(std::numeric_limits<float>::max()) == infinity);  // nearer to 2^128 than to the largest bfloat16
  CHECK(std::signbit(float(bfloat16(-0.0F))));
  for (const std::uint32_t bits : {0x7f800001U, 0x7fc00000U, 0xff800001U, 0x7fffffffU})
    CHECK(std::isnan(float(bfloat16(std::bit_cast<float>(bits)))));
}

TEST_CASE("bfloat16_sum_carried_in_float_keeps_small_addends") {
  float carried = 1.0F;
  bfloat16 rounded(1.0F);
  const bfloat16 small(std::ldexp(1.0F, -8));
  for (int i = 0; i < 256; ++i) {
    carried += small;
    rounded = bfloat16(rounded + small);
  }
  CHECK(bfloat16(carried) == 2.0F);
  CHECK(rounded == 1.0F);  // what a sum that is rounded each time gives
}
