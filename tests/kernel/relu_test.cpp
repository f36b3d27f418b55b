// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/relu.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE("relu_gradient_equals_finite_differences") {
  auto x = Noise(1).values<double>(50);
  const auto dy = Noise(2).values<double>(50);
  std::vector<double> y(50), dx(50);
  kernel::relu_forward(50, x.data(), y.data());
  kernel::relu_backward(50, y.data(), dy.data(), dx.data());
  CHECK(largest_gradient_error(x, dx, [&] {
          kernel::relu_forward(50, x.data(), y.data());
          return inner_product(dy, y);
        }) < 1e-8);
}

TEST_CASE("relu_special_values_pass_or_stop") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double x[5] = {infinity, -infinity, std::nan(""), -0.0, 0.0};
  kernel::relu_forward(5, x, x);
  CHECK(x[0] == infinity);
  CHECK(x[1] == 0);
  CHECK(std::isnan(x[2]));
  const double y[3] = {0.0, 1.0, 2.0};
  double gradient[3] = {5, std::nan(""), 7};
  kernel::relu_backward(3, y, gradient, gradient);
  CHECK(gradient[0] == 0);
  CHECK(std::isnan(gradient[1]));
  CHECK(gradient[2] == 7);
}
