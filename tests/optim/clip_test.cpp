// SPDX-License-Identifier: Apache-2.0
#include <weft/optim/clip.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace weft;

TEST_CASE("clip_factor_above_the_limit_brings_the_norm_to_it") {
  CHECK(5 * clip_factor(5, 1) == doctest::Approx(1).epsilon(1e-6));
  CHECK(clip_factor(5, 1) == 1 / (5 + 1e-6));  // torch's formula, to the last bit
}

TEST_CASE("clip_factor_below_the_limit_is_one") {
  CHECK(clip_factor(0, 1) == 1);
  CHECK(clip_factor(0.5, 1) == 1);
  CHECK(clip_factor(1, 1) == 1 / (1 + 1e-6));  // as torch
}

TEST_CASE("clip_factor_of_a_norm_that_is_not_finite_does_not_hide_it") {
  CHECK(std::isnan(clip_factor(std::numeric_limits<double>::quiet_NaN(), 1)));
  CHECK(clip_factor(std::numeric_limits<double>::infinity(), 1) == 0);
}

TEST_CASE("clip_of_zero_is_none") {
  static_assert(Clip{}.factor(1e30) == 1, "no clipping by default");
  CHECK(Clip{.norm = 2}.factor(8) == clip_factor(8, 2));
  CHECK_NOTHROW(require_valid(Clip{}));
  CHECK_THROWS_WITH_AS(require_valid(Clip{.norm = -1}), doctest::Contains("weft[optim.clip]"), Error);
}
