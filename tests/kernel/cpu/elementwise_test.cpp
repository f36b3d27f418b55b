// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/cpu/elementwise.hpp>
#include <weft/kernel/elementwise.hpp>

#include <doctest/doctest.h>

#include "kernel/flat_cases.hpp"
#include "simd/isas.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE_TEMPLATE("cpu_add_any_aliasing_equals_the_reference", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  using Isa = typename T::Isa;
  for (Index n : flat_sizes) {
    const auto a = Noise(1).values<Real>(n), b = Noise(2).values<Real>(n);
    Guarded<Real> y(n), expected(n), first(a), second(b), twice(a);
    kernel::add(n, a.data(), b.data(), expected.data());
    kernel::cpu::add<Isa>(n, a.data(), b.data(), y.data());
    kernel::cpu::add<Isa>(n, static_cast<const Real*>(first.data()), b.data(), first.data());
    kernel::cpu::add<Isa>(n, a.data(), static_cast<const Real*>(second.data()), second.data());
    kernel::cpu::add<Isa>(n, static_cast<const Real*>(twice.data()), static_cast<const Real*>(twice.data()), twice.data());
    CHECK(y.values() == expected.values());
    CHECK(first.values() == expected.values());
    CHECK(second.values() == expected.values());
    for (Index i = 0; i < n; ++i) CHECK(twice[i] == 2 * a[std::size_t(i)]);
    CHECK((y.guards_hold() && first.guards_hold() && second.guards_hold() && twice.guards_hold()));
  }
}

TEST_CASE_TEMPLATE("cpu_columns_equal_the_reference", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  using Isa = typename T::Isa;
  for (Index width : {0, 1, 3, 16, 17, 65}) {
    for (Index gap : {0, 2}) {
      const Index rows = 3, from_stride = width + gap, to_stride = width + 2 * gap;
      const auto from = Noise(1).values<Real>(rows * from_stride), start = Noise(2).values<Real>(rows * to_stride);
      Guarded<Real> copied(start), copied_expected(start), added(start), added_expected(start);
      kernel::cpu::copy_columns<Isa>(rows, from.data(), from_stride, copied.data(), to_stride, width);
      kernel::copy_columns(rows, from.data(), from_stride, copied_expected.data(), to_stride, width);
      kernel::cpu::add_columns<Isa>(rows, from.data(), from_stride, added.data(), to_stride, width);
      kernel::add_columns(rows, from.data(), from_stride, added_expected.data(), to_stride, width);
      CHECK(copied.values() == copied_expected.values());
      CHECK(added.values() == added_expected.values());
      CHECK((copied.guards_hold() && added.guards_hold()));
    }
  }
}

TEST_CASE_TEMPLATE("cpu_square_sum_equals_the_reference_and_repeats", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  using Isa = typename T::Isa;
  for (Index n : flat_sizes) {
    const auto x = Noise(3).values<Real>(n);
    const double sum = kernel::cpu::square_sum<Isa>(n, x.data());
    CHECK(sum == doctest::Approx(kernel::square_sum(n, x.data())).epsilon(1e-13));
    CHECK(sum == kernel::cpu::square_sum<Isa>(n, x.data()));
  }
  std::vector<Real> huge(5, std::numeric_limits<Real>::max());
  CHECK(std::isinf(kernel::cpu::square_sum<Isa>(Index(5), huge.data())) == (sizeof(Real) == 8));  // float's squares fit in double
}

TEST_CASE_TEMPLATE("cpu_all_finite_sees_every_place", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  using Isa = typename T::Isa;
  for (Index n : {1, 3, 17, 65, 4096, 4099, 9001}) {
    std::vector<Real> x(std::size_t(n), std::numeric_limits<Real>::max());
    CHECK(kernel::cpu::all_finite<Isa>(n, x.data()));
    for (Index place = 0; place < n; place += 1 + n / 37) {
      for (Real bad :
           {std::numeric_limits<Real>::infinity(), -std::numeric_limits<Real>::infinity(), std::numeric_limits<Real>::quiet_NaN()}) {
        x[std::size_t(place)] = bad;
        CHECK(!kernel::cpu::all_finite<Isa>(n, x.data()));
        x[std::size_t(place)] = 0;
      }
    }
  }
  CHECK(kernel::cpu::all_finite<Isa>(Index(0), static_cast<const Real*>(nullptr)));
}
