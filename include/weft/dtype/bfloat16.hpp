// SPDX-License-Identifier: Apache-2.0
// The upper half of a float as a storage type: float's range, 8 significant bits.
#pragma once

#include <bit>

#include "weft/dtype/element_type.hpp"

namespace weft {

// Made from a float by an explicit conversion, which rounds to nearest, ties to even. Becomes a float, exactly, wherever a number is
// needed: so arithmetic and comparison are float's, and its result is rounded only where somebody says so.
class bfloat16 {
 public:
  bfloat16() = default;
  explicit constexpr bfloat16(float value) : bits_(round(value)) {}
  constexpr operator float() const { return std::bit_cast<float>(std::uint32_t(bits_) << 16); }

  constexpr std::uint16_t bits() const { return bits_; }
  static constexpr bfloat16 from_bits(std::uint16_t bits) {
    bfloat16 value{0.0F};
    value.bits_ = bits;
    return value;
  }

 private:
  static constexpr std::uint16_t round(float value) {
    const std::uint32_t all = std::bit_cast<std::uint32_t>(value);
    if ((all & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((all >> 16) | 0x40U);  // NaN, made quiet
    return static_cast<std::uint16_t>((all + 0x7fffU + ((all >> 16) & 1U)) >> 16);                  // a carry reaches infinity by itself
  }

  std::uint16_t bits_;
};

template <>
inline constexpr ElementType element_type_of<bfloat16> = ElementType::bf16;

}  // namespace weft
