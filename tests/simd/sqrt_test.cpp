// SPDX-License-Identifier: Apache-2.0
#include <weft/simd/sqrt.hpp>

#include <doctest/doctest.h>

#include <limits>

#include "kernel/guarded.hpp"
#include "simd/isas.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE_TEMPLATE("simd_sqrt_equals_the_standard_library_to_the_bit", T, WEFT_TEST_ISAS) {
  using Isa = typename T::Isa;
  using Real = typename T::Real;
  constexpr Index lanes = simd::lanes<Isa, Real>;
  Noise noise(3);
  for (int trial = 0; trial < 200; ++trial) {
    auto x = noise.values<Real>(lanes);
    for (Real& v : x) v = std::ldexp(std::abs(v), int(noise.between(-140, 120)));
    const auto root = simd::sqrt<Isa, Real>(simd::load<Isa>(static_cast<const Real*>(x.data())));
    for (Index i = 0; i < lanes; ++i) REQUIRE(root[i] == std::sqrt(x[std::size_t(i)]));
  }
}

TEST_CASE_TEMPLATE("simd_sqrt_of_special_values_is_that_of_ieee_754", T, WEFT_TEST_ISAS) {
  using Isa = typename T::Isa;
  using Real = typename T::Real;
  const auto of = [](Real x) { return simd::sqrt<Isa, Real>(simd::broadcast<Isa>(x))[simd::lanes<Isa, Real> - 1]; };
  CHECK(of(0) == 0);
  CHECK(std::isnan(of(-1)));
  CHECK(std::isnan(of(std::numeric_limits<Real>::quiet_NaN())));
  CHECK(of(std::numeric_limits<Real>::infinity()) == std::numeric_limits<Real>::infinity());
  CHECK(of(std::numeric_limits<Real>::denorm_min()) == std::sqrt(std::numeric_limits<Real>::denorm_min()));
}
