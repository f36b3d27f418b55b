// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/cpu/silu.hpp>
#include <weft/kernel/silu.hpp>

#include <doctest/doctest.h>

#include "kernel/flat_cases.hpp"
#include "simd/isas.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE_TEMPLATE("cpu_silu_equals_the_reference", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  const auto forward = [](auto... a) { kernel::cpu::silu_forward<typename T::Isa>(a...); };
  const auto reference_forward = [](auto... a) { kernel::silu_forward(a...); };
  const auto backward = [](auto... a) { kernel::cpu::silu_backward<typename T::Isa>(a...); };
  const auto reference_backward = [](auto... a) { kernel::silu_backward(a...); };
  for (double spread : {0.1, 3.0, 12.0}) {
    compare_flat<Real>(forward, reference_forward, spread, rounding<Real>(1));
    compare_flat_backward<Real>(backward, reference_backward, spread, rounding<Real>(4));
  }
  compare_special<Real>(forward, reference_forward);
}
