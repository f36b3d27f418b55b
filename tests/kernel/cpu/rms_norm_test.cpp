// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/cpu/rms_norm.hpp>
#include <weft/kernel/rms_norm.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"
#include "simd/isas.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE_TEMPLATE("cpu_rms_norm_equals_the_reference", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  using Isa = typename T::Isa;
  const Real epsilon = Real(1e-5);
  for (Index width : {1, 2, 3, 7, 16, 17, 33, 65, 128, 1031}) {
    for (Index rows : {0, 1, 3, 4, 5, 9}) {
      CAPTURE(width);
      CAPTURE(rows);
      auto x = Noise(std::uint64_t(width)).values<Real>(rows * width);
      for (Real& v : x) v = v * Real(2) + Real(0.5);
      const auto gain = Noise(2).values<Real>(width), dy = Noise(4).values<Real>(rows * width), start = Noise(5).values<Real>(rows * width);
      Guarded<Real> y(rows * width), y_expected(rows * width), rstd(rows), rstd_expected(rows), y_in_place(x);
      kernel::cpu::rms_norm_forward<Isa>(rows, width, epsilon, x.data(), gain.data(), y.data(), rstd.data());
      kernel::rms_norm_forward(rows, width, epsilon, x.data(), gain.data(), y_expected.data(), rstd_expected.data());
      kernel::cpu::rms_norm_forward<Isa>(rows, width, epsilon, static_cast<const Real*>(y_in_place.data()), gain.data(), y_in_place.data(),
                                         rstd.data());
      const double tolerance = rounding<Real>(width == 1 ? 400 : 30);
      CHECK(largest_difference(y.values(), y_expected.values()) <= tolerance);
      CHECK(y_in_place.values() == y.values());
      CHECK(largest_difference(rstd.values(), rstd_expected.values()) <= tolerance);
      CHECK((y.guards_hold() && rstd.guards_hold()));

      for (bool accumulate : {false, true}) {
        Guarded<Real> dx(start), dx_expected(start), dx_in_place(dy), dgain(gain), dgain_expected(gain);
        kernel::cpu::rms_norm_backward<Isa>(rows, width, x.data(), gain.data(), rstd.data(), dy.data(), dx.data(), dgain.data(),
                                            accumulate);
        kernel::rms_norm_backward(rows, width, x.data(), gain.data(), rstd.data(), dy.data(), dx_expected.data(), dgain_expected.data(),
                                  accumulate);
        CHECK(largest_difference(dx.values(), dx_expected.values()) <= (width == 1 ? 1e-1 : tolerance));
        CHECK(largest_difference(dgain.values(), dgain_expected.values()) <= tolerance);
        CHECK((dx.guards_hold() && dgain.guards_hold()));
        if (accumulate) continue;
        Guarded<Real> dgain_again(gain);
        Real* none = nullptr;
        kernel::cpu::rms_norm_backward<Isa>(rows, width, x.data(), gain.data(), rstd.data(), dy.data(), none, dgain_again.data(), false);
        CHECK(dgain_again.values() == dgain.values());
        kernel::cpu::rms_norm_backward<Isa>(rows, width, x.data(), gain.data(), rstd.data(), static_cast<const Real*>(dx_in_place.data()),
                                            dx_in_place.data(), dgain_again.data(), false);
        CHECK(dx_in_place.values() == dx.values());
      }
    }
  }
}

TEST_CASE_TEMPLATE("cpu_rms_norm_row_with_nan_spoils_no_other_row", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  constexpr Index width = 33;
  std::vector<Real> x(3 * width, Real(1)), gain(width, Real(1)), y(3 * width), rstd(3);
  x[width + 32] = std::numeric_limits<Real>::quiet_NaN();
  kernel::cpu::rms_norm_forward<typename T::Isa>(Index(3), width, Real(1e-5), x.data(), gain.data(), y.data(), rstd.data());
  for (Index i = 0; i < 3 * width; ++i) CHECK(std::isnan(y[std::size_t(i)]) == (i / width == 1));
}
