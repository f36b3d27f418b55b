// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/cpu/dropout.hpp>
#include <weft/kernel/dropout.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"
#include "simd/isas.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE_TEMPLATE("cpu_dropout_equals_the_reference_bit_for_bit", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  using Isa = typename T::Isa;
  const random::Stream stream{.seed = 3, .purpose = random::Purpose::dropout, .step = 8, .layer = 1};
  for (Index width : {1, 3, 7, 8, 16, 33, 65, 1031}) {
    for (Index rows : {0, 1, 3}) {
      for (Index first_row : {Index(0), Index(5), Index(1) << 33}) {
        for (double probability : {0.0, 0.1, 0.9}) {
          const auto x = Noise(1).values<Real>(rows * width);
          Guarded<Real> y(rows * width), expected(rows * width), in_place(x);
          kernel::cpu::dropout_forward<Isa>(rows, width, first_row, probability, stream, x.data(), y.data());
          kernel::dropout_forward(rows, width, first_row, probability, stream, x.data(), expected.data());
          kernel::cpu::dropout_backward<Isa>(rows, width, first_row, probability, stream, static_cast<const Real*>(in_place.data()),
                                             in_place.data());
          CHECK(y.values() == expected.values());
          CHECK(in_place.values() == y.values());
          CHECK((y.guards_hold() && in_place.guards_hold()));
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("cpu_dropout_dropped_elements_are_zero_whatever_they_were", T, WEFT_TEST_ISAS) {
  std::vector<typename T::Real> x(67, std::numeric_limits<typename T::Real>::quiet_NaN());
  kernel::cpu::dropout_forward<typename T::Isa>(Index(1), Index(67), Index(0), 0.5, random::Stream{.seed = 1}, x.data(), x.data());
  Index zeros = 0;
  for (auto v : x) zeros += v == 0;
  CHECK(zeros > 15);
  CHECK(zeros < 52);
}
