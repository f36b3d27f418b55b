// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/cpu/position.hpp>
#include <weft/kernel/position.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"
#include "simd/isas.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE_TEMPLATE("cpu_position_equals_the_reference_bit_for_bit", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  using Isa = typename T::Isa;
  for (Index width : {1, 3, 17, 65}) {
    for (Index batch : {0, 1, 3}) {
      for (Index past : {0, 2}) {
        const Index sequence = 5, n = batch * sequence * width;
        const auto x = Noise(1).values<Real>(n), table = Noise(2).values<Real>((sequence + past) * width);
        Guarded<Real> y(n), y_expected(n), in_place(x), dtable(table), dtable_expected(table);
        kernel::cpu::position_forward<Isa>(batch, sequence, past, width, x.data(), table.data(), y.data());
        kernel::position_forward(batch, sequence, past, width, x.data(), table.data(), y_expected.data());
        kernel::cpu::position_forward<Isa>(batch, sequence, past, width, static_cast<const Real*>(in_place.data()), table.data(),
                                           in_place.data());
        kernel::cpu::position_backward<Isa>(batch, sequence, width, x.data(), dtable.data());
        kernel::position_backward(batch, sequence, width, x.data(), dtable_expected.data());
        CHECK(y.values() == y_expected.values());
        CHECK(in_place.values() == y.values());
        CHECK(dtable.values() == dtable_expected.values());
        CHECK((y.guards_hold() && dtable.guards_hold()));
      }
    }
  }
}
