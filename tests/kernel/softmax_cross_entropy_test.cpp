// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/softmax_cross_entropy.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE("softmax_cross_entropy_gradient_equals_finite_differences") {
  for (double smoothing : {0.0, 0.1}) {
    auto logits = Noise(1).values<double>(4 * 5);
    for (double& v : logits) v *= 3;
    const std::int32_t targets[4] = {2, -1, 0, 4};
    std::vector<double> gradient(20);
    const auto sum = kernel::softmax_cross_entropy(4, 5, logits.data(), targets, -1, smoothing, 0.25, gradient.data());
    CHECK(sum.count == 3);
    CHECK(largest_gradient_error(logits, gradient, [&] {
            double* none = nullptr;
            return 0.25 * kernel::softmax_cross_entropy(4, 5, logits.data(), targets, -1, smoothing, 1.0, none).loss;
          }) < 1e-8);
    for (std::size_t c = 0; c < 5; ++c) CHECK(gradient[5 + c] == 0);  // the ignored row
  }
}

// Torch's definition, written differently: a weighted sum of the losses of all classes.
TEST_CASE("softmax_cross_entropy_smoothing_mixes_the_losses_of_all_classes") {
  const auto logits = Noise(9).values<double>(6);
  double* none = nullptr;
  double uniform = 0, plain = 0;
  for (std::int32_t c = 0; c < 6; ++c) {
    const double loss = kernel::softmax_cross_entropy(1, 6, logits.data(), &c, -100, 0.0, 1.0, none).loss;
    uniform += loss / 6;
    if (c == 4) plain = loss;
  }
  const std::int32_t target = 4;
  const double smoothed = kernel::softmax_cross_entropy(1, 6, logits.data(), &target, -100, 0.3, 1.0, none).loss;
  CHECK(smoothed == doctest::Approx(0.7 * plain + 0.3 * uniform).epsilon(1e-13));
}

TEST_CASE_TEMPLATE("softmax_cross_entropy_huge_logits_stay_finite", Real, float, double) {
  const Real logits[6] = {Real(1e4), Real(-1e4), Real(0), Real(-1e4), Real(-1e4), Real(1e4)};
  const std::int32_t targets[2] = {0, 0};
  Real gradient[6];
  const auto sum = kernel::softmax_cross_entropy(2, 3, logits, targets, -1, Real(0), Real(1), gradient);
  CHECK(sum.loss == doctest::Approx(2e4));
  CHECK(gradient[0] == 0);
  CHECK(gradient[3] == -1);
  CHECK(gradient[5] == 1);
}

TEST_CASE_TEMPLATE("softmax_cross_entropy_minus_infinity_is_a_class_that_cannot_be", Real, float, double) {
  constexpr Real infinity = std::numeric_limits<Real>::infinity();
  const Real logits[3] = {Real(0), -infinity, Real(0)};
  std::int32_t target = 0;
  Real gradient[3];
  auto sum = kernel::softmax_cross_entropy(1, 3, logits, &target, -1, Real(0), Real(1), gradient);
  CHECK(sum.loss == doctest::Approx(std::log(2.0)));
  CHECK(gradient[0] == Real(-0.5));
  CHECK(gradient[1] == 0);
  target = 1;
  sum = kernel::softmax_cross_entropy(1, 3, logits, &target, -1, Real(0), Real(1), gradient);
  CHECK(sum.loss == std::numeric_limits<double>::infinity());
  const Real none[2] = {-infinity, -infinity};
  target = 0;
  CHECK(std::isnan(kernel::softmax_cross_entropy(1, 2, none, &target, -1, Real(0), Real(1), gradient).loss));
}

TEST_CASE("softmax_cross_entropy_without_targets_that_count_is_nothing") {
  const double logits[4] = {1, 2, 3, 4};
  const std::int32_t targets[2] = {-100, -100};
  double gradient[4] = {9, 9, 9, 9};
  const auto sum = kernel::softmax_cross_entropy(2, 2, logits, targets, -100, 0.1, 1.0, gradient);
  CHECK(sum.count == 0);
  CHECK(sum.loss == 0);
  for (double g : gradient) CHECK(g == 0);
}
