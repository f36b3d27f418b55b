// SPDX-License-Identifier: Apache-2.0
#include <weft/random/distribution.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace weft;
using namespace weft::random;

namespace {
constexpr Stream stream{.seed = 42, .purpose = Purpose::initial_weights, .step = 0, .layer = 9};
}

TEST_CASE_TEMPLATE("uniform_range_is_half_open", Real, float, double) {
  static_assert(uniform<Real>(0) == 0, "least");
  static_assert(uniform<Real>(0xffffffffu) < 1, "below 1");
  static_assert(uniform_positive<Real>(0) > 0, "above 0");
  static_assert(uniform_positive<Real>(0xffffffffu) == 1, "most");
  static_assert(uniform<Real>(0x80000000u) == Real(0.5), "middle");
}

TEST_CASE_TEMPLATE("fills_of_a_part_equal_the_part_of_the_whole", Real, float, double) {
  std::vector<Real> uniform_whole(101), normal_whole(101);
  fill_uniform(stream, 0, 101, -2.0, 3.0, uniform_whole.data());
  fill_normal(stream, 0, 101, 0.5, 2.0, normal_whole.data());
  for (Index first = 0; first < 12; ++first) {
    for (Index count : {0, 1, 2, 3, 4, 5, 7, 64}) {
      std::vector<Real> u(std::size_t(count + 1), Real(99)), n = u;
      fill_uniform(stream, std::uint64_t(first), count, -2.0, 3.0, u.data());
      fill_normal(stream, std::uint64_t(first), count, 0.5, 2.0, n.data());
      CHECK(std::equal(u.begin(), u.end() - 1, uniform_whole.begin() + first));
      CHECK(std::equal(n.begin(), n.end() - 1, normal_whole.begin() + first));
      CHECK(u.back() == 99);
      CHECK(n.back() == 99);
    }
  }
}

TEST_CASE("normal_moments_are_those_of_the_distribution") {
  constexpr Index count = 200'000;
  std::vector<double> x(count);
  fill_normal(stream, 0, count, 1.0, 3.0, x.data());
  double mean = 0, moments[5] = {}, neighbours = 0;
  for (double v : x) mean += v / count;
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (int power = 2; power <= 4; ++power) moments[power] += std::pow((x[i] - 1) / 3, power) / count;
    if (i > 0) neighbours += (x[i] - 1) * (x[i - 1] - 1) / 9 / count;
  }
  CHECK(std::abs(mean - 1) < 0.03);
  CHECK(std::abs(moments[2] - 1) < 0.015);
  CHECK(std::abs(moments[3]) < 0.03);
  CHECK(std::abs(moments[4] - 3) < 0.1);
  CHECK(std::abs(neighbours) < 0.01);
  CHECK(std::all_of(x.begin(), x.end(), [](double v) { return std::isfinite(v); }));
}

TEST_CASE("integers_below_a_bound_are_equally_likely") {
  const Words words(stream);
  int counts[7] = {};
  for (std::uint64_t i = 0; i < 70'000; ++i) ++counts[integer_below(words, i, 7)];
  for (int count : counts) CHECK(std::abs(count - 10'000) < 500);  // 5 deviations
}

TEST_CASE("integers_below_large_bounds_stay_below_and_reject_without_bias") {
  const Words words(stream);
  // Three quarters of 2^64: a quarter of the draws is rejected; a plain remainder would favour the lower third twofold.
  constexpr std::uint64_t bound = std::uint64_t(3) << 62;
  int low = 0;
  for (std::uint64_t i = 0; i < 30'000; ++i) {
    const std::uint64_t value = integer_below(words, i, bound);
    CHECK(value < bound);
    low += value < bound / 3;
  }
  CHECK(std::abs(low - 10'000) < 420);
  CHECK(integer_below(words, 3, 1) == 0);
  CHECK(integer_below(words, 3, std::numeric_limits<std::uint64_t>::max()) < std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("integers_below_nothing_are_refused") {
  try {
    integer_below(Words(stream), 0, 0);
    FAIL("no error");
  } catch (const Error& error) { CHECK(error.id() == "random.bound"); }
}
