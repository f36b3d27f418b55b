// SPDX-License-Identifier: Apache-2.0
// IEEE 754 half precision as a storage type: 1 sign, 5 exponent, 10 fraction bits; largest 65504, smallest 2^-24.
#pragma once

#include <bit>

#include "weft/dtype/element_type.hpp"

namespace weft {

// Made from a float by an explicit conversion, which rounds to nearest, ties to even (from 65520 on: infinity). Becomes a float, exactly,
// wherever a number is needed: so arithmetic and comparison are float's, and its result is rounded only where somebody says so.
class float16 {
 public:
  float16() = default;
  explicit constexpr float16(float value) : bits_(round(value)) {}
  constexpr operator float() const { return widen(bits_); }

  constexpr std::uint16_t bits() const { return bits_; }
  static constexpr float16 from_bits(std::uint16_t bits) {
    float16 value{0.0F};
    value.bits_ = bits;
    return value;
  }

 private:
  static constexpr std::uint16_t round(float value) {
    const std::uint32_t all = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (all >> 16) & 0x8000U;
    const std::uint32_t size = all & 0x7fffffffU;
    std::uint32_t half = 0;
    if (size > 0x7f800000U)
      half = 0x7e00U | ((size >> 13) & 0x3ffU);  // NaN, made quiet
    else if (size >= 0x47800000U)
      half = 0x7c00U;  // 65536 and more
    else if (size >= 0x38800000U)
      half = (size - 0x38000000U + 0xfffU + ((size >> 13) & 1U)) >> 13;  // a carry reaches infinity by itself
    else
      half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) - 0x3f000000U;  // subnormal: 0.5's last place is 2^-24
    return static_cast<std::uint16_t>(sign | half);
  }

  static constexpr float widen(std::uint16_t bits) {
    const std::uint32_t sign = (std::uint32_t(bits) & 0x8000U) << 16;
    const std::uint32_t shifted = (std::uint32_t(bits) & 0x7fffU) << 13;
    const std::uint32_t exponent = shifted & 0x0f800000U;
    if (exponent == 0x0f800000U) return std::bit_cast<float>(sign | (shifted + 0x70000000U));  // infinity, NaN
    if (exponent != 0) return std::bit_cast<float>(sign | (shifted + 0x38000000U));
    const float tiny = std::bit_cast<float>(shifted + 0x38800000U) - std::bit_cast<float>(0x38800000U);  // subnormal or zero
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(tiny));
  }

  std::uint16_t bits_;
};

template <>
inline constexpr ElementType element_type_of<float16> = ElementType::f16;

}  // namespace weft
