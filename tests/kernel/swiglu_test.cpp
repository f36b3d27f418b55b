// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/silu.hpp>
#include <weft/kernel/swiglu.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE("swiglu_row_is_silu_of_the_gate_times_up") {
  const auto x = Noise(3).values<double>(2 * 6);
  std::vector<double> y(6), gate(3);
  kernel::swiglu_forward(2, 3, x.data(), y.data());
  for (Index r = 0; r < 2; ++r) {
    kernel::silu_forward(3, x.data() + r * 6, gate.data());
    for (Index c = 0; c < 3; ++c) CHECK(y[std::size_t(r * 3 + c)] == gate[std::size_t(c)] * x[std::size_t(r * 6 + 3 + c)]);
  }
}

TEST_CASE("swiglu_gradient_equals_finite_differences") {
  auto x = Noise(4).values<double>(3 * 14);
  for (double& v : x) v *= 4;
  const auto dy = Noise(5).values<double>(3 * 7);
  std::vector<double> y(21), dx(42);
  kernel::swiglu_backward(3, 7, x.data(), dy.data(), dx.data());
  CHECK(largest_gradient_error(x, dx, [&] {
          kernel::swiglu_forward(3, 7, x.data(), y.data());
          return inner_product(dy, y);
        }) < 1e-7);
}
