// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/cpu/rotary.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace weft;

namespace {

template <class Real>
std::vector<Real> ramp(Index count) {
  std::vector<Real> values;
  for (Index i = 0; i < count; ++i) values.push_back(Real(std::sin(double(i) * 1.7 + 0.3)));
  return values;
}

template <class Real>
double difference(const std::vector<Real>& a, const std::vector<Real>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double(a[i]) - double(b[i])));
  return most;
}

template <class Isa, class Real>
void check_against_reference() {
  for (const Index head_size : {2, 6, 10, 24, 32, 64, 128, 514, 1030}) {
    for (const Index past : {0, 5, 31, 1000, 100000}) {
      const Index heads = head_size > 500 ? 1 : 3, padding = 5, stride = heads * head_size + padding, sequence = head_size > 500 ? 2 : 35;
      std::vector<Real> expected = ramp<Real>(2 * sequence * stride), actual = expected;
      kernel::rotary_forward(2, sequence, past, heads, head_size, stride, 10000.0, expected.data());
      kernel::cpu::rotary_forward<Isa>(2, sequence, past, heads, head_size, stride, 10000.0, actual.data());
      CAPTURE(head_size);
      CAPTURE(past);
      CHECK(difference(expected, actual) < (sizeof(Real) == 8 ? 1e-10 : 3e-7));  // 1e5 · ε: what the angle itself is known to
      kernel::rotary_backward(2, sequence, past, heads, head_size, stride, 10000.0, expected.data());
      kernel::cpu::rotary_backward<Isa>(2, sequence, past, heads, head_size, stride, 10000.0, actual.data());
      CHECK(difference(expected, actual) < (sizeof(Real) == 8 ? 1e-10 : 6e-7));
      CHECK(difference(ramp<Real>(2 * sequence * stride), actual) < (sizeof(Real) == 8 ? 1e-14 : 6e-7));  // back where it began
    }
  }
}

TEST_CASE_TEMPLATE("rotary_any_sizes_equals_the_reference", Real, float, double) {
  check_against_reference<simd::Native, Real>();
  check_against_reference<simd::Generic, Real>();
}

TEST_CASE_TEMPLATE("rotary_of_a_position_has_the_same_bits_wherever_the_sequence_starts", Real, float, double) {
  const Index D = 32, tokens = 100, stride = D;
  std::vector<Real> whole = ramp<Real>(tokens * stride), parts = whole;
  kernel::cpu::rotary_forward<simd::Native>(1, tokens, 0, 1, D, stride, 10000.0, whole.data());
  for (Index begin = 0; begin < tokens;) {
    const Index count = std::min<Index>(begin % 3 == 0 ? 1 : 20, tokens - begin);
    kernel::cpu::rotary_forward<simd::Native>(1, count, begin, 1, D, stride, 10000.0, parts.data() + begin * stride);
    begin += count;
  }
  CHECK(whole == parts);
}

TEST_CASE("rotary_of_an_odd_head_is_refused_by_the_vectorised_kernel") {
  std::vector<float> x(10);
  CHECK_THROWS_AS(kernel::cpu::rotary_backward<simd::Native>(1, 1, 0, 2, 5, 10, 10000.0, x.data()), Error);
}

}  // namespace
