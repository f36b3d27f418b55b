// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/gelu.hpp>

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

TEST_CASE("gelu_tanh_gradient_equals_finite_differences") {
  const auto forward = [](const auto& x, auto& y) { kernel::gelu_tanh_forward(Index(x.size()), x.data(), y.data()); };
  const auto backward = [](const auto& x, const auto& dy, auto& dx) {
    kernel::gelu_tanh_backward(Index(x.size()), x.data(), dy.data(), dx.data());
  };
  CHECK(gradient_error(forward, backward, -6, 6) < 1e-8);
  CHECK(gradient_error(forward, backward, -0.1, 0.1) < 1e-8);
}

TEST_CASE("gelu_erf_gradient_equals_finite_differences") {
  const auto forward = [](const auto& x, auto& y) { kernel::gelu_erf_forward(Index(x.size()), x.data(), y.data()); };
  const auto backward = [](const auto& x, const auto& dy, auto& dx) {
    kernel::gelu_erf_backward(Index(x.size()), x.data(), dy.data(), dx.data());
  };
  CHECK(gradient_error(forward, backward, -6, 6) < 1e-8);
  CHECK(gradient_error(forward, backward, -0.1, 0.1) < 1e-8);
}

TEST_CASE("gelu_values_are_those_of_the_formula") {
  const double x[3] = {1, -1, 2.5};
  double tanh_form[3], erf_form[3];
  kernel::gelu_tanh_forward(3, x, tanh_form);
  kernel::gelu_erf_forward(3, x, erf_form);
  CHECK(tanh_form[0] == doctest::Approx(0.8411919906082768).epsilon(1e-12));
  CHECK(tanh_form[1] == doctest::Approx(-0.15880800939172324).epsilon(1e-12));
  CHECK(tanh_form[2] == doctest::Approx(2.484915733910001).epsilon(1e-12));
  CHECK(erf_form[0] == doctest::Approx(0.8413447460685429).epsilon(1e-12));
  CHECK(erf_form[1] == doctest::Approx(-0.15865525393145707).epsilon(1e-12));
  CHECK(erf_form[2] == doctest::Approx(2.4844758366855597).epsilon(1e-12));
}

TEST_CASE_TEMPLATE("gelu_tanh_gradient_where_tanh_saturates_is_0_or_1", Real, float, double) {
  constexpr Real infinity = std::numeric_limits<Real>::infinity();
  const Real x[6] = {Real(50), Real(-50), Real(1e25), Real(-1e25), infinity, -infinity}, dy[6] = {2, 2, 2, 2, 2, 2};
  Real dx[6];
  kernel::gelu_tanh_backward(6, x, dy, dx);
  for (int i = 0; i < 6; ++i) CHECK(dx[i] == (i % 2 == 0 ? Real(2) : Real(0)));
}
