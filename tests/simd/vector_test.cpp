// SPDX-License-Identifier: Apache-2.0
#include <weft/simd/vector.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"
#include "simd/isas.hpp"

using namespace weft;

// Memory of exactly `count` elements, so that a sanitizer or the guards see an access beyond them.
TEST_CASE_TEMPLATE("first_lanes_loaded_and_stored_touch_no_others", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  using Isa = typename T::Isa;
  constexpr Index lanes = simd::lanes<Isa, Real>;
  for (Index count = 0; count <= lanes; ++count) {
    const auto from = test::Noise(1).values<Real>(count);
    const auto value = simd::load_first<Isa>(from.data(), count, Real(9));
    for (Index i = 0; i < lanes; ++i) CHECK(value[i] == (i < count ? from[std::size_t(i)] : Real(9)));
    test::Guarded<Real> to(count);
    simd::store_first<Isa>(to.data(), value, count);
    for (Index i = 0; i < count; ++i) CHECK(to[i] == from[std::size_t(i)]);
    CHECK(to.guards_hold());
  }
}

TEST_CASE_TEMPLATE("lanes_summed_and_compared_take_every_lane", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  using Isa = typename T::Isa;
  constexpr Index lanes = simd::lanes<Isa, Real>;
  for (Index special = 0; special < lanes; ++special) {
    Real lane[lanes];
    for (Index i = 0; i < lanes; ++i) lane[i] = Real(i == special ? 100 : -1);
    const auto value = simd::load<Isa>(static_cast<const Real*>(lane));
    CHECK(simd::sum<Isa, Real>(value) == Real(100 - (lanes - 1)));
    CHECK(simd::maximum<Isa, Real>(value) == Real(100));
    const auto larger = simd::select(value > Real(0), value, simd::broadcast<Isa>(Real(3)));
    for (Index i = 0; i < lanes; ++i) CHECK(larger[i] == (i == special ? Real(100) : Real(3)));
  }
}
