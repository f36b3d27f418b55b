// SPDX-License-Identifier: Apache-2.0
#include <weft/checkpoint/tensor_view.hpp>

#include <doctest/doctest.h>

#include <limits>

using namespace weft;
using namespace weft::checkpoint;

namespace {

// The number as another type, and whether it fits.
template <class To, class From>
std::pair<To, bool> converted(From from) {
  To to{};
  const bool fits = convert_element(from, to);
  return {to, fits};
}
constexpr double inf = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("convert_element_rounds_floating_point_to_nearest") {
  CHECK(converted<float>(1 + 0x1p-24) == std::pair(1.0F, true));
  CHECK(converted<float>(1 + 0x1.8p-24) == std::pair(1 + 0x1p-23F, true));
  CHECK(converted<double>(0.1F) == std::pair(double(0.1F), true));
  CHECK(converted<float>(float16(1.5F)) == std::pair(1.5F, true));
  CHECK(converted<double>(bfloat16(-3.0F)) == std::pair(-3.0, true));
  CHECK(float(converted<float16>(65503.0).first) == 65504);
  CHECK(float(converted<bfloat16>(1.0039).first) == 1.0F);
}

TEST_CASE("convert_element_keeps_infinity_and_nan_and_refuses_what_becomes_infinite") {
  CHECK(converted<float>(inf) == std::pair(float(inf), true));
  CHECK(converted<float>(-inf) == std::pair(-float(inf), true));
  CHECK(std::isnan(converted<float>(std::numeric_limits<double>::quiet_NaN()).first));
  CHECK(converted<float>(std::numeric_limits<double>::quiet_NaN()).second);
  CHECK(converted<float>(1e39) == std::pair(float(inf), false));
  CHECK(converted<float>(-1e300) == std::pair(-float(inf), false));
  CHECK(converted<float>(double(std::numeric_limits<float>::max())) == std::pair(std::numeric_limits<float>::max(), true));
  CHECK(converted<float>(3.40282351e38).second);       // rounds down to the largest
  CHECK_FALSE(converted<float>(3.4028236e38).second);  // rounds up
  CHECK_FALSE(converted<float16>(65520.0F).second);
  CHECK(converted<float16>(65519.0F).second);
  CHECK_FALSE(converted<float16>(1e30).second);
  CHECK(converted<float16>(float(inf)).second);
  CHECK_FALSE(converted<bfloat16>(std::numeric_limits<float>::max()).second);
}

TEST_CASE("convert_element_of_integers_refuses_what_does_not_fit") {
  CHECK(converted<std::int32_t>(std::int64_t(-100)) == std::pair(std::int32_t(-100), true));
  CHECK_FALSE(converted<std::int32_t>(std::int64_t(1) << 31).second);
  CHECK_FALSE(converted<std::uint8_t>(std::int32_t(-1)).second);
  CHECK_FALSE(converted<int>(1.0).second);
  CHECK_FALSE(converted<int>(float16(1.0F)).second);
  CHECK(converted<double>(std::int64_t(7)) == std::pair(7.0, true));
}

TEST_CASE("read_elements_that_lie_unaligned_gives_their_values") {
  std::vector<std::byte> bytes(1 + 2 * sizeof(double));
  const double values[] = {0.5, -4};
  std::memcpy(bytes.data() + 1, values, sizeof values);
  const TensorView tensor{"t", ElementType::f64, {2}, bytes.data() + 1, 16};
  CHECK(elements_of<double>(tensor) == std::vector<double>{0.5, -4});
  CHECK(elements_of<float>(tensor) == std::vector<float>{0.5F, -4});
  CHECK_THROWS_WITH_AS(elements_of<int>(tensor), doctest::Contains("weft[checkpoint.range]"), Error);
  CHECK_THROWS_WITH_AS(elements_of<int>(TensorView{}), doctest::Contains("weft[checkpoint.type]"), Error);
}

TEST_CASE("bytes_of_a_shape_that_cannot_be_counted_is_negative") {
  CHECK(bytes_of(ElementType::f32, {}) == 4);
  CHECK(bytes_of(ElementType::f32, {2, 3}) == 24);
  CHECK(bytes_of(ElementType::f32, {2, 0}) == 0);
  CHECK(bytes_of(ElementType::f32, {2, -1}) == -1);
  CHECK(bytes_of(ElementType::u8, {Index(1) << 62, 2}) == -1);
  CHECK(shape_text({}) == "()");
  CHECK(shape_text({65, 32}) == "(65, 32)");
}
