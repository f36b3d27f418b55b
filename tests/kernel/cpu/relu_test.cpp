// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/cpu/relu.hpp>
#include <weft/kernel/relu.hpp>

#include <doctest/doctest.h>

#include "kernel/flat_cases.hpp"
#include "simd/isas.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE_TEMPLATE("cpu_relu_equals_the_reference", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  const auto forward = [](auto... a) { kernel::cpu::relu_forward<typename T::Isa>(a...); };
  const auto reference_forward = [](auto... a) { kernel::relu_forward(a...); };
  const auto backward = [](auto... a) { kernel::cpu::relu_backward<typename T::Isa>(a...); };
  const auto reference_backward = [](auto... a) { kernel::relu_backward(a...); };
  for (double spread : {0.1, 3.0, 12.0}) {
    compare_flat<Real>(forward, reference_forward, spread, rounding<Real>(0));
    compare_flat_backward<Real>(backward, reference_backward, spread, rounding<Real>(0));
  }
  compare_special<Real>(forward, reference_forward);
}
