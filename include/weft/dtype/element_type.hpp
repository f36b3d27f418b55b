// SPDX-License-Identifier: Apache-2.0
// Element types as values, so that a ledger, a file header and an error message can name them.
#pragma once

#include <cstdint>

#include "weft/base/config.hpp"

namespace weft {

enum class ElementType : std::uint8_t { none, f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8 };

constexpr Index bytes_of(ElementType type) {
  switch (type) {
    case ElementType::f64:
    case ElementType::i64:
    case ElementType::u64: return 8;
    case ElementType::f32:
    case ElementType::i32:
    case ElementType::u32: return 4;
    case ElementType::f16:
    case ElementType::bf16:
    case ElementType::i16:
    case ElementType::u16: return 2;
    case ElementType::i8:
    case ElementType::u8: return 1;
    case ElementType::none: break;
  }
  return 0;
}

constexpr const char* name_of(ElementType type) {
  switch (type) {
    case ElementType::f64: return "float64";
    case ElementType::f32: return "float32";
    case ElementType::f16: return "float16";
    case ElementType::bf16: return "bfloat16";
    case ElementType::i64: return "int64";
    case ElementType::i32: return "int32";
    case ElementType::i16: return "int16";
    case ElementType::i8: return "int8";
    case ElementType::u64: return "uint64";
    case ElementType::u32: return "uint32";
    case ElementType::u16: return "uint16";
    case ElementType::u8: return "uint8";
    case ElementType::none: break;
  }
  return "none";
}

// The value for a C++ type; `none` for a type that weft does not exchange. Specialised by float16.hpp and bfloat16.hpp.
template <class T>
inline constexpr ElementType element_type_of = ElementType::none;
template <>
inline constexpr ElementType element_type_of<double> = ElementType::f64;
template <>
inline constexpr ElementType element_type_of<float> = ElementType::f32;
template <>
inline constexpr ElementType element_type_of<std::int64_t> = ElementType::i64;
template <>
inline constexpr ElementType element_type_of<std::int32_t> = ElementType::i32;
template <>
inline constexpr ElementType element_type_of<std::int16_t> = ElementType::i16;
template <>
inline constexpr ElementType element_type_of<std::int8_t> = ElementType::i8;
template <>
inline constexpr ElementType element_type_of<std::uint64_t> = ElementType::u64;
template <>
inline constexpr ElementType element_type_of<std::uint32_t> = ElementType::u32;
template <>
inline constexpr ElementType element_type_of<std::uint16_t> = ElementType::u16;
template <>
inline constexpr ElementType element_type_of<std::uint8_t> = ElementType::u8;

}  // namespace weft
