// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/silu.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"

using namespace weft;
using namespace weft::test;

namespace {

// The gradient of inner_product(dy, f(x)) against central differences.
template <class Forward, class Backward>
double gradient_error(Forward forward, Backward backward, double from, double to) {
  std::vector<double> x, y(40), dx(40);
  for (int i = 0; i < 40; ++i) x.push_back(from + (to - from) * (i + 0.37) / 40);
  const auto dy = Noise(5).values<double>(40);
  backward(x, dy, dx);
  return largest_gradient_error(x, dx, [&] {
    forward(x, y);
    return inner_product(dy, y);
  });
}

}  // namespace

TEST_CASE("silu_gradient_equals_finite_differences") {
  const auto forward = [](const auto& x, auto& y) { kernel::silu_forward(Index(x.size()), x.data(), y.data()); };
  const auto backward = [](const auto& x, const auto& dy, auto& dx) {
    kernel::silu_backward(Index(x.size()), x.data(), dy.data(), dx.data());
  };
  CHECK(gradient_error(forward, backward, -6, 6) < 1e-8);
  CHECK(gradient_error(forward, backward, -0.1, 0.1) < 1e-8);
}

TEST_CASE("silu_values_are_those_of_the_formula") {
  const double x[4] = {0, 1, -1, 800};
  double y[4];
  kernel::silu_forward(4, x, y);
  CHECK(y[0] == 0);
  CHECK(y[1] == doctest::Approx(0.7310585786300049).epsilon(1e-14));
  CHECK(y[2] == doctest::Approx(-0.2689414213699951).epsilon(1e-14));
  CHECK(y[3] == 800);
}
