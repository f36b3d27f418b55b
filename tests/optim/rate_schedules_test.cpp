// SPDX-License-Identifier: Apache-2.0
#include <weft/optim/rate_schedules.hpp>

#include <doctest/doctest.h>

using namespace weft;

namespace {

struct NoFactor {
  double factor(Index) const { return 1; }
};
struct FactorThatChanges {
  double factor_at(Index) { return last *= 0.5; }
  double last = 1;
};
struct InverseRoot {  // a user's
  double factor_at(Index applied) const { return 1 / std::sqrt(double(applied + 1)); }
};

static_assert(RateSchedule<ConstantRate> && RateSchedule<LinearRate> && RateSchedule<CosineRate> && RateSchedule<StepRate> &&
                  RateSchedule<InverseRoot>,
              "schedules are schedules");
static_assert(!RateSchedule<NoFactor>, "factor_at is asked for by name");
static_assert(!RateSchedule<FactorThatChanges>, "a schedule has no state");

}  // namespace

TEST_CASE("step_rate_divides_by_ten_after_every_five_updates") {
  const StepRate schedule{.every = 5, .factor = 0.1};
  CHECK(schedule.factor_at(0) == 1);
  CHECK(schedule.factor_at(4) == 1);
  CHECK(schedule.factor_at(5) == doctest::Approx(0.1).epsilon(1e-15));
  CHECK(schedule.factor_at(9) == doctest::Approx(0.1).epsilon(1e-15));
  CHECK(schedule.factor_at(10) == doctest::Approx(0.01).epsilon(1e-15));
  CHECK(schedule.factor_at(Index(1) << 40) == 0);
}

TEST_CASE("linear_rate_warms_up_falls_and_holds_its_last_value") {
  constexpr LinearRate schedule{.warm_up = 3, .steps = 11, .floor = 0.2};
  const double expected[] = {0.25, 0.5, 0.75, 1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.2};
  for (Index n = 0; n < 13; ++n) CHECK(schedule.factor_at(n) == doctest::Approx(expected[n]).epsilon(1e-15));
  CHECK(schedule.factor_at(1000000) == 0.2);
  static_assert(LinearRate{.steps = 4}.factor_at(1) == 0.75, "usable in constant expressions");
}

TEST_CASE("cosine_rate_warms_up_falls_and_holds_its_last_value") {
  const CosineRate schedule{.warm_up = 1, .steps = 7, .floor = 0.1};
  CHECK(schedule.factor_at(0) == 0.5);
  CHECK(schedule.factor_at(1) == 1);
  CHECK(schedule.factor_at(3) == doctest::Approx(0.1 + 0.9 * 0.75).epsilon(1e-15));
  CHECK(schedule.factor_at(4) == doctest::Approx(0.55).epsilon(1e-15));
  CHECK(schedule.factor_at(5) == doctest::Approx(0.1 + 0.9 * 0.25).epsilon(1e-15));
  for (Index n = 2; n < 7; ++n) CHECK(schedule.factor_at(n) < schedule.factor_at(n - 1));
  CHECK(schedule.factor_at(7) == 0.1);
  CHECK(schedule.factor_at(70000) == 0.1);
}

TEST_CASE("schedule_that_is_all_warm_up_ends_at_its_floor") {
  const CosineRate schedule{.warm_up = 4, .steps = 4, .floor = 0.3};
  CHECK(schedule.factor_at(3) == 0.8);
  CHECK(schedule.factor_at(4) == 0.3);
}

TEST_CASE("schedule_without_an_end_is_refused") {
  CHECK_THROWS_WITH_AS(CosineRate{}.factor_at(0), doctest::Contains("weft[optim.schedule]"), Error);
  CHECK_THROWS_WITH_AS((LinearRate{.warm_up = 5, .steps = 4}.factor_at(0)), doctest::Contains("steps 4, warm_up 5"), Error);
  CHECK_THROWS_WITH_AS((LinearRate{.warm_up = -1, .steps = 4}.factor_at(0)), doctest::Contains("weft[optim.schedule]"), Error);
  CHECK_THROWS_WITH_AS((StepRate{.every = 0}.factor_at(0)), doctest::Contains("every 0"), Error);
}
