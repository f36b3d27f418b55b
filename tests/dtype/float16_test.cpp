// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>

#include <weft/dtype/float16.hpp>

using weft::float16;

static_assert(sizeof(float16) == 2 && weft::element_type_of<float16> == weft::ElementType::f16, "two bytes, known as f16");
static_assert(float(float16(1.5F)) == 1.5F && float16(1.0F).bits() == 0x3c00, "conversions are constant expressions");

// The value of finite bits by the definition of the format, in double.
static double defined_value(unsigned bits) {
  const int exponent = int(bits >> 10 & 31U), fraction = int(bits & 1023U);
  const double size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000U) != 0 ? -size : size;
}

TEST_CASE("float16_every_pattern_widens_to_its_value_and_back") {
  int num_wrong = 0;
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const float16 half = float16::from_bits(static_cast<std::uint16_t>(bits));
    const float wide = half;
    const bool is_special = (bits >> 10 & 31U) == 31U, is_nan = is_special && (bits & 1023U) != 0;
    if (is_nan)
      num_wrong += !std::isnan(wide) || !std::isnan(float(float16(wide)));
    else if (is_special)
      num_wrong += wide != ((bits & 0x8000U) != 0 ? -1 : 1) * std::numeric_limits<float>::infinity();
    else
      num_wrong += double(wide) != defined_value(bits);
    if (!is_nan) num_wrong += float16(wide).bits() != bits;  // also -0
  }
  CHECK(num_wrong == 0);
}

TEST_CASE("float16_between_neighbours_rounds_to_nearest_ties_to_even") {
  int num_wrong = 0;
  for (unsigned bits = 0; bits < 0x7bff; ++bits) {  // every pair of finite neighbours
    const double low = defined_value(bits), high = defined_value(bits + 1), middle = (low + high) / 2;
    const auto even = static_cast<unsigned>(bits % 2 == 0 ? bits : bits + 1);
    const auto tie = static_cast<float>(middle);
    num_wrong += float16(tie).bits() != even;
    num_wrong += float16(-tie).bits() != (even | 0x8000U);
    num_wrong += float16(std::nextafterf(tie, 0.0F)).bits() != bits;
    num_wrong += float16(std::nextafterf(tie, 1e30F)).bits() != bits + 1;
  }
  CHECK(num_wrong == 0);
}

TEST_CASE("float16_beyond_its_range_becomes_infinity_or_zero") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(float16(65504.0F) == 65504.0F);
  CHECK(float16(65519.996F) == 65504.0F);
  CHECK(float16(65520.0F) == infinity);
  CHECK(float16(1e30F) == infinity);
  CHECK(float16(-1e30F) == -infinity);
  CHECK(float16(infinity) == infinity);
  CHECK(float16(std::ldexp(1.0F, -25)) == 0.0F);  // a tie with zero, which is even
  CHECK(float16(std::ldexp(1.1F, -25)) == std::ldexp(1.0F, -24));
  CHECK(std::signbit(float(float16(-std::numeric_limits<float>::denorm_min()))));
}

TEST_CASE("float16_nan_stays_nan_with_any_payload") {
  for (const std::uint32_t bits : {0x7f800001U, 0x7fc00000U, 0xff800001U, 0x7fffffffU})
    CHECK(std::isnan(float(float16(std::bit_cast<float>(bits)))));
  CHECK_FALSE(float16(std::nanf("")) == float16(std::nanf("")));
}
