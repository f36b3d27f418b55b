// SPDX-License-Identifier: Apache-2.0
// A named tensor as bytes, with its element type and shape, and the conversion of elements between types.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/error.hpp"
#include "weft/base/text.hpp"
#include "weft/dtype/bfloat16.hpp"
#include "weft/dtype/float16.hpp"

namespace weft::checkpoint {

static_assert(std::endian::native == std::endian::little,
              "weft[checkpoint.endian]: safetensors files are little-endian and are read in place");

// Bytes that belong to somebody else (a mapped file, a model); they need not be aligned.
struct TensorView {
  std::string name;
  ElementType type = ElementType::none;
  std::vector<Index> shape;  // empty: one element
  const std::byte* data = nullptr;
  Index bytes = 0;

  Index elems() const { return type == ElementType::none ? 0 : bytes / weft::bytes_of(type); }
};

// Extents as text: (65, 32).
inline std::string shape_text(const std::vector<Index>& shape) {
  std::string text = "(";
  for (std::size_t d = 0; d < shape.size(); ++d) append_text(text, d ? ", " : ""), append_text(text, shape[d]);
  return text += ")";
}

// The product of extents times the size of an element; -1 if an extent is negative or the product does not fit.
constexpr Index bytes_of(ElementType type, const std::vector<Index>& shape) {
  Index bytes = weft::bytes_of(type);
  for (Index extent : shape)
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes)) return -1;
  return bytes;
}

constexpr bool is_floating(ElementType type) {
  return type == ElementType::f64 || type == ElementType::f32 || type == ElementType::f16 || type == ElementType::bf16;
}

// body(T{}) with T the C++ type of `type`. Errors: weft[checkpoint.type] for ElementType::none.
template <class Body>
decltype(auto) with_element_type(ElementType type, Body&& body) {
  switch (type) {
    case ElementType::f64: return body(double{});
    case ElementType::f32: return body(float{});
    case ElementType::f16: return body(float16{});
    case ElementType::bf16: return body(bfloat16{});
    case ElementType::i64: return body(std::int64_t{});
    case ElementType::i32: return body(std::int32_t{});
    case ElementType::i16: return body(std::int16_t{});
    case ElementType::i8: return body(std::int8_t{});
    case ElementType::u64: return body(std::uint64_t{});
    case ElementType::u32: return body(std::uint32_t{});
    case ElementType::u16: return body(std::uint16_t{});
    case ElementType::u8: return body(std::uint8_t{});
    case ElementType::none: break;
  }
  throw Error("checkpoint.type", "a tensor has an element type; name one");
}

// One number in another type, rounded to nearest, and whether it could be held: not a finite number beyond the other's range, not an
// integer beyond the other's, not a fraction as an integer.
template <class To, class From>
constexpr bool convert_element(From from, To& to) {
  if constexpr (std::is_same_v<To, From>) {
    to = from;
    return true;
  } else if constexpr (std::integral<To>) {
    if constexpr (std::integral<From>) {
      to = To(from);
      return std::in_range<To>(from);
    } else {
      to = To{};
      return false;
    }
  } else {
    using Wide = std::conditional_t<std::is_same_v<To, double>, double, float>;
    constexpr double largest_float = 3.4028235677973366e38;  // half a unit of the last place above the largest: from here on, infinity
    if constexpr (std::is_same_v<Wide, float> && std::is_same_v<From, double>) {
      if (from >= largest_float || from <= -largest_float) {
        to = To(from > 0 ? HUGE_VALF : -HUGE_VALF);
        return std::isinf(from);
      }
    }
    const Wide wide = Wide(from);
    to = To(wide);
    if constexpr (std::is_same_v<To, Wide>)
      return true;
    else
      return std::isinf(float(to)) == std::isinf(wide);
  }
}

// to[i] = from[i] for `count` elements in memory that need not be aligned. The index of the first element that cannot be held, or -1.
template <class To, class From>
Index convert_elements(Index count, const std::byte* from, To* to) {
  if constexpr (std::is_same_v<To, From>) {
    if (count > 0) std::memcpy(to, from, std::size_t(count) * sizeof(To));
    return -1;
  } else {
    Index first_bad = -1;
    for (Index i = 0; i < count; ++i) {
      From element;
      std::memcpy(&element, from + i * Index(sizeof(From)), sizeof(From));
      if (!convert_element(element, to[i]) && first_bad < 0) first_bad = i;
    }
    return first_bad;
  }
}

// The elements as numbers of another type. out: tensor.elems() numbers.
// Errors: weft[checkpoint.range] for a number that the type cannot hold (floating-point numbers are rounded, integers are not).
template <class Number>
void read_elements(const TensorView& tensor, Number* out) {
  with_element_type(tensor.type, [&]<class Stored>(Stored) {
    const Index bad = convert_elements<Number, Stored>(tensor.elems(), tensor.data, out);
    if (bad >= 0)
      throw Error("checkpoint.range",
                  text_of("a number does not fit the type it is read as; read a wider one (tensor ", tensor.name, ", element ", bad,
                          ", stored as ", name_of(tensor.type), ", read as ", name_of(element_type_of<Number>), ")"));
  });
}
template <class Number>
std::vector<Number> elements_of(const TensorView& tensor) {
  std::vector<Number> out(std::size_t(tensor.elems()), Number{});
  read_elements(tensor, out.data());
  return out;
}

}  // namespace weft::checkpoint
