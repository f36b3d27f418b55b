// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/cpu/swiglu.hpp>
#include <weft/kernel/swiglu.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"
#include "simd/isas.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE_TEMPLATE("cpu_swiglu_equals_the_reference", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  using Isa = typename T::Isa;
  for (Index width : {1, 3, 7, 16, 17, 33, 65, 1031}) {
    for (Index rows : {0, 1, 3}) {
      auto x = Noise(1).values<Real>(rows * 2 * width);
      for (Real& v : x) v *= Real(6);
      const auto dy = Noise(2).values<Real>(rows * width);
      Guarded<Real> y(rows * width), y_expected(rows * width), dx(rows * 2 * width), dx_expected(rows * 2 * width), in_place(x);
      kernel::cpu::swiglu_forward<Isa>(rows, width, x.data(), y.data());
      kernel::swiglu_forward(rows, width, x.data(), y_expected.data());
      kernel::cpu::swiglu_backward<Isa>(rows, width, x.data(), dy.data(), dx.data());
      kernel::cpu::swiglu_backward<Isa>(rows, width, static_cast<const Real*>(in_place.data()), dy.data(), in_place.data());
      kernel::swiglu_backward(rows, width, x.data(), dy.data(), dx_expected.data());
      CHECK(largest_difference(y.values(), y_expected.values()) <= rounding<Real>(3));
      CHECK(largest_difference(dx.values(), dx_expected.values()) <= rounding<Real>(6));
      CHECK(in_place.values() == dx.values());
      CHECK((y.guards_hold() && dx.guards_hold() && in_place.guards_hold()));
    }
  }
}
