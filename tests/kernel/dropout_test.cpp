// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/dropout.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"

using namespace weft;
using namespace weft::test;

namespace {
constexpr random::Stream stream{.seed = 3, .purpose = random::Purpose::dropout, .step = 8, .layer = 1};
}

TEST_CASE("dropout_share_of_dropped_elements_is_the_probability") {
  for (double probability : {0.0, 0.1, 0.5, 0.9}) {
    std::vector<double> y(40'000, 1.0);
    kernel::dropout_forward(200, 200, 0, probability, stream, y.data(), y.data());
    double dropped = 0, sum = 0;
    for (double v : y) {
      dropped += v == 0;
      sum += v;
      CHECK((v == 0 || v == 1 / (1 - probability)));
    }
    CHECK(std::abs(dropped / 40'000 - probability) < 0.013);  // 5 deviations at one half
    CHECK(std::abs(sum / 40'000 - 1) < 0.08);
  }
}

TEST_CASE("dropout_of_some_rows_is_that_part_of_the_whole") {
  const auto x = Noise(1).values<float>(10 * 7);
  std::vector<float> whole(70), part(70);
  kernel::dropout_forward(10, 7, 0, 0.5, stream, x.data(), whole.data());
  for (Index first = 0; first < 10; ++first) {
    kernel::dropout_forward(10 - first, 7, first, 0.5, stream, x.data() + first * 7, part.data() + first * 7);
    CHECK(std::equal(part.begin() + first * 7, part.end(), whole.begin() + first * 7));
  }
}

TEST_CASE("dropout_backward_is_the_same_map") {
  const auto x = Noise(1).values<double>(64), dy = Noise(2).values<double>(64);
  std::vector<double> y(64), dx(64);
  kernel::dropout_forward(8, 8, 5, 0.3, stream, x.data(), y.data());
  kernel::dropout_backward(8, 8, 5, 0.3, stream, dy.data(), dx.data());
  for (std::size_t i = 0; i < 64; ++i) CHECK(y[i] * dy[i] == doctest::Approx(dx[i] * x[i]));
}

TEST_CASE("dropout_dropped_elements_are_zero_whatever_they_were") {
  std::vector<double> x(64, std::numeric_limits<double>::infinity());
  kernel::dropout_forward(8, 8, 0, 0.5, stream, x.data(), x.data());
  for (double v : x) CHECK((v == 0 || std::isinf(v)));
}

TEST_CASE("dropout_threshold_near_one_stays_a_word") {
  CHECK(kernel::dropout_threshold(0) == 0);
  CHECK(kernel::dropout_threshold(0.5) == 0x80000000u);
  CHECK(kernel::dropout_threshold(1 - 0x1p-40) == 0xffffffffu);
  CHECK(kernel::dropout_threshold(1) == 0xffffffffu);
}
