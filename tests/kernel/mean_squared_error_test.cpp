// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/mean_squared_error.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE("mean_squared_error_gradient_equals_finite_differences") {
  auto prediction = Noise(1).values<double>(15);
  const auto target = Noise(2).values<double>(15);
  std::vector<double> gradient(15);
  const auto sum = kernel::mean_squared_error(3, 5, prediction.data(), target.data(), 0.5, gradient.data());
  CHECK(sum.count == 15);
  CHECK(largest_gradient_error(prediction, gradient, [&] {
          double* none = nullptr;
          return 0.5 * kernel::mean_squared_error(3, 5, prediction.data(), target.data(), 1.0, none).loss;
        }) < 1e-8);
  const auto again = kernel::mean_squared_error(3, 5, prediction.data(), target.data(), 0.5, prediction.data());
  CHECK(again.loss == sum.loss);
  CHECK(prediction == gradient);
}
