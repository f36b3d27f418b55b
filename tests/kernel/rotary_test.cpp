// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/rotary.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <string>
#include <vector>

using namespace weft;

namespace {

std::vector<double> ramp(Index count) {
  std::vector<double> values;
  for (Index i = 0; i < count; ++i) values.push_back(std::sin(double(i) * 1.7 + 0.3));
  return values;
}

TEST_CASE("rotary_pairs_are_multiplied_by_unit_complex_numbers") {
  const Index batch = 2, sequence = 5, past = 3, heads = 2, D = 6, stride = 20;
  const double theta = 100.0;
  const std::vector<double> before = ramp(batch * sequence * stride);
  std::vector<double> after = before;
  kernel::rotary_forward(batch, sequence, past, heads, D, stride, theta, after.data());
  for (Index row = 0; row < batch * sequence; ++row) {
    const double position = double(past + row % sequence);
    for (Index c = 0; c < stride; ++c) {
      const double x = before[std::size_t(row * stride + c)], y = after[std::size_t(row * stride + c)];
      if (c >= heads * D) {
        CHECK(x == y);  // v and padding stay
        continue;
      }
      const Index i = c % D % 3, at = row * stride + c / D * D + i;
      const std::complex<double> pair(before[std::size_t(at)], before[std::size_t(at + 3)]);
      const std::complex<double> turned = pair * std::polar(1.0, position / std::pow(theta, double(i) / 3));
      CHECK(y == doctest::Approx(c % D < 3 ? turned.real() : turned.imag()).epsilon(1e-12));
    }
  }
}

TEST_CASE("rotary_products_of_queries_and_keys_depend_on_the_distance_only") {
  const Index D = 8;
  const auto product = [&](Index query_position, Index key_position) {
    std::vector<double> q = ramp(D), k = ramp(2 * D);
    k.erase(k.begin(), k.begin() + D);
    kernel::rotary_forward(1, 1, query_position, 1, D, D, 10000.0, q.data());
    kernel::rotary_forward(1, 1, key_position, 1, D, D, 10000.0, k.data());
    double sum = 0;
    for (Index d = 0; d < D; ++d) sum += q[std::size_t(d)] * k[std::size_t(d)];
    return sum;
  };
  CHECK(product(7, 2) == doctest::Approx(product(105, 100)));
  CHECK(product(7, 2) != doctest::Approx(product(7, 3)));
}

TEST_CASE("rotary_backward_undoes_forward") {
  const std::vector<double> before = ramp(3 * 4 * 16);
  std::vector<double> after = before;
  kernel::rotary_forward(3, 4, 11, 2, 8, 16, 10000.0, after.data());
  CHECK(after != before);
  kernel::rotary_backward(3, 4, 11, 2, 8, 16, 10000.0, after.data());
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(after[i] == doctest::Approx(before[i]).epsilon(1e-12));
}

TEST_CASE("rotary_of_an_odd_head_is_refused") {
  std::vector<float> x(10);
  try {
    kernel::rotary_forward(1, 1, 0, 2, 5, 10, 10000.0, x.data());
    FAIL("an odd head size passed");
  } catch (const Error& error) {
    CHECK(error.id() == "rotary.head_size");
    CHECK(std::string(error.what()).find("is 5") != std::string::npos);
  }
}

}  // namespace
