// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/cpu/lanes.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"
#include "simd/isas.hpp"

using namespace weft;

TEST_CASE_TEMPLATE("row_sums_and_maximum_of_every_width_take_every_element", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  using Isa = typename T::Isa;
  for (Index width = 0; width < 150; ++width) {
    std::vector<Real> x(std::size_t(width), Real(1));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = Real(int(i % 7) - 9);
    const Real* row = x.data();
    const auto sums = kernel::cpu::row_sums<2, Isa, Real>(width, [row](Index i, auto count, auto& total) {
      const auto value = kernel::cpu::get<Isa>(row + i, count);
      total[0] += value;
      total[1] += value * value;
    });
    Real sum = 0, squares = 0;
    for (Real v : x) sum += v, squares += v * v;
    CHECK(sums.value[0] == sum);  // exact: small integers
    CHECK(sums.value[1] == squares);
    if (width > 0) {
      const auto place = std::size_t(width * 5 / 7);
      x[place] = Real(-1);
      CHECK(kernel::cpu::row_maximum<Isa>(width, x.data()) == Real(-1));
      x[place] = std::numeric_limits<Real>::infinity();
      CHECK(kernel::cpu::row_maximum<Isa>(width, x.data()) == std::numeric_limits<Real>::infinity());
    } else {
      CHECK(kernel::cpu::row_maximum<Isa>(width, row) == -std::numeric_limits<Real>::infinity());
    }
  }
}
