// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/rms_norm.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"

using namespace weft;
using namespace weft::test;

namespace {

struct Problem {
  Index rows = 3, width = 7;
  std::vector<double> x = Noise(1).values<double>(21), gain = Noise(2).values<double>(7), dy = Noise(4).values<double>(21);
  std::vector<double> y = x, dx = x, rstd = std::vector<double>(3), dgain = std::vector<double>(7);

  void forward() { kernel::rms_norm_forward(rows, width, 1e-5, x.data(), gain.data(), y.data(), rstd.data()); }
  void backward() { kernel::rms_norm_backward(rows, width, x.data(), gain.data(), rstd.data(), dy.data(), dx.data(), dgain.data(), false); }
  auto loss() {
    return [this] {
      forward();
      return inner_product(dy, y);
    };
  }
};

}  // namespace

TEST_CASE("rms_norm_gradients_equal_finite_differences") {
  Problem p;
  p.forward();
  p.backward();
  CHECK(largest_gradient_error(p.x, p.dx, p.loss()) < 1e-7);
  CHECK(largest_gradient_error(p.gain, p.dgain, p.loss()) < 1e-7);
}

TEST_CASE("rms_norm_backward_adds_to_parameters_and_where_told_to_the_input_gradient") {
  Problem p;
  p.forward();
  p.backward();
  const Problem once = p;
  p.backward();  // dgain again; dx overwritten
  CHECK(p.dx == once.dx);
  for (std::size_t c = 0; c < 7; ++c) CHECK(p.dgain[c] == doctest::Approx(2 * once.dgain[c]));
  auto& [rows, width, x, gain, dy, y, dx, rstd, dgain] = p;
  kernel::rms_norm_backward(rows, width, x.data(), gain.data(), rstd.data(), dy.data(), dx.data(), dgain.data(), true);
  for (std::size_t i = 0; i < 21; ++i) CHECK(p.dx[i] == doctest::Approx(2 * once.dx[i]));
  double* none = nullptr;
  kernel::rms_norm_backward(rows, width, x.data(), gain.data(), rstd.data(), dy.data(), none, dgain.data(), false);  // nobody needs dx
  for (std::size_t c = 0; c < 7; ++c) CHECK(p.dgain[c] == doctest::Approx(4 * once.dgain[c]));
  CHECK(y.size() == 21);
}

TEST_CASE("rms_norm_backward_may_overwrite_the_output_gradient") {
  Problem p, q;
  p.forward();
  p.backward();
  q.forward();
  auto& [rows, width, x, gain, dy, y, dx, rstd, dgain] = q;
  kernel::rms_norm_backward(rows, width, x.data(), gain.data(), rstd.data(), dy.data(), dy.data(), dgain.data(), false);
  CHECK(dy == p.dx);
  CHECK(dgain == p.dgain);
  CHECK(y.size() == dx.size());
}

TEST_CASE("rms_norm_output_is_normalised") {
  Problem p;
  p.gain.assign(7, 1.0);
  p.forward();
  for (std::size_t r = 0; r < 3; ++r) {
    double sum = 0, square = 0;
    for (std::size_t c = 0; c < 7; ++c) sum += p.y[r * 7 + c], square += p.y[r * 7 + c] * p.y[r * 7 + c];
    CHECK(std::isfinite(sum));
    CHECK(square / 7 == doctest::Approx(1.0).epsilon(1e-3));
  }
}
