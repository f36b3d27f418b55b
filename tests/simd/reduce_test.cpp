// SPDX-License-Identifier: Apache-2.0
#include <weft/simd/reduce.hpp>

#include <doctest/doctest.h>

#include "simd/isas.hpp"

using namespace weft;

TEST_CASE_TEMPLATE("folds_of_a_register_take_every_lane", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  using Isa = typename T::Isa;
  constexpr Index lanes = simd::lanes<Isa, Real>;
  for (Index special = 0; special < lanes; ++special) {
    Real lane[lanes];
    for (Index i = 0; i < lanes; ++i) lane[i] = Real(i == special ? 100 : -(1 << i % 6));
    Real total = 0;
    for (Real value : lane) total += value;
    const auto loaded = simd::load<Isa>(static_cast<const Real*>(lane));
    CHECK(simd::folded_sum<Isa, Real>(loaded) == total);  // exact: small integers
    CHECK(simd::folded_maximum<Isa, Real>(loaded) == Real(100));
  }
}
