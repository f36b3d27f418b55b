// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/cpu/mean_squared_error.hpp>
#include <weft/kernel/mean_squared_error.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"
#include "simd/isas.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE_TEMPLATE("cpu_mean_squared_error_equals_the_reference", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  for (Index width : {1, 3, 7, 8, 16, 17, 33, 65, 1031}) {
    for (Index rows : {0, 1, 3}) {
      const auto prediction = Noise(1).values<Real>(rows * width), target = Noise(2).values<Real>(rows * width);
      Guarded<Real> gradient(rows * width), expected(rows * width), in_place(prediction);
      const auto sum =
          kernel::cpu::mean_squared_error<typename T::Isa>(rows, width, prediction.data(), target.data(), Real(0.5), gradient.data());
      const auto right = kernel::mean_squared_error(rows, width, prediction.data(), target.data(), Real(0.5), expected.data());
      const auto again = kernel::cpu::mean_squared_error<typename T::Isa>(rows, width, static_cast<const Real*>(in_place.data()),
                                                                          target.data(), Real(0.5), in_place.data());
      CHECK(sum.count == rows * width);
      CHECK(std::abs(sum.loss - right.loss) <= rounding<Real>(1) * (1 + right.loss));
      CHECK(again.loss == sum.loss);
      CHECK(largest_difference(gradient.values(), expected.values()) <= rounding<Real>(1));
      CHECK(in_place.values() == gradient.values());
      CHECK((gradient.guards_hold() && in_place.guards_hold()));
    }
  }
}
