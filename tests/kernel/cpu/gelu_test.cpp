// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/cpu/gelu.hpp>
#include <weft/kernel/gelu.hpp>

#include <doctest/doctest.h>

#include "kernel/flat_cases.hpp"
#include "simd/isas.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE_TEMPLATE("cpu_gelu_tanh_equals_the_reference", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  const auto forward = [](auto... a) { kernel::cpu::gelu_tanh_forward<typename T::Isa>(a...); };
  const auto reference_forward = [](auto... a) { kernel::gelu_tanh_forward(a...); };
  const auto backward = [](auto... a) { kernel::cpu::gelu_tanh_backward<typename T::Isa>(a...); };
  const auto reference_backward = [](auto... a) { kernel::gelu_tanh_backward(a...); };
  for (double spread : {0.1, 3.0, 12.0}) {
    compare_flat<Real>(forward, reference_forward, spread, rounding<Real>(2));
    compare_flat_backward<Real>(backward, reference_backward, spread, rounding<Real>(8));
  }
  compare_special<Real>(forward, reference_forward);
}

TEST_CASE_TEMPLATE("cpu_gelu_erf_equals_the_reference", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  const auto forward = [](auto... a) { kernel::cpu::gelu_erf_forward<typename T::Isa>(a...); };
  const auto reference_forward = [](auto... a) { kernel::gelu_erf_forward(a...); };
  const auto backward = [](auto... a) { kernel::cpu::gelu_erf_backward<typename T::Isa>(a...); };
  const auto reference_backward = [](auto... a) { kernel::gelu_erf_backward(a...); };
  for (double spread : {0.1, 3.0, 12.0}) {
    compare_flat<Real>(forward, reference_forward, spread, rounding<Real>(2));
    compare_flat_backward<Real>(backward, reference_backward, spread, rounding<Real>(8));
  }
  compare_special<Real>(forward, reference_forward);
}

TEST_CASE_TEMPLATE("cpu_gelu_tanh_gradient_where_tanh_saturates_is_0_or_1", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  constexpr Real infinity = std::numeric_limits<Real>::infinity();
  const Real x[6] = {Real(50), Real(-50), Real(1e25), Real(-1e25), infinity, -infinity}, dy[6] = {2, 2, 2, 2, 2, 2};
  Real dx[6];
  kernel::cpu::gelu_tanh_backward<typename T::Isa>(6, x, dy, dx);
  for (int i = 0; i < 6; ++i) CHECK(std::abs(dx[i] - (i % 2 == 0 ? Real(2) : Real(0))) < Real(1e-30));
}
