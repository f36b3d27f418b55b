// SPDX-License-Identifier: Apache-2.0
// How the learning rate goes over the updates. A schedule is a function of the number of updates that were applied so far, without state:
// it cannot tick twice, nor on a step that was skipped, and it is the same on every rank and after a restart.
#pragma once

#include <cmath>
#include <concepts>
#include <numbers>
#include <string>

#include "weft/base/config.hpp"
#include "weft/base/error.hpp"

namespace weft {

// factor_at(applied): what the rule's rate is multiplied with for the update that follows `applied` updates (0 for the first).
// A user's schedule is any such type.
template <class T>
concept RateSchedule = std::copyable<T> && requires(const T& schedule, Index applied) {
  { schedule.factor_at(applied) } -> std::convertible_to<double>;
};

struct ConstantRate {
  constexpr double factor_at(Index) const { return 1; }
  bool operator==(const ConstantRate&) const = default;
};

// The factor of a linear warm-up: update n of the first `warm_up` has (n + 1) / (warm_up + 1), so none is lost at rate 0 and the first
// update after the warm-up is the first at the full rate.
constexpr double warm_up_factor(Index applied, Index warm_up) { return double(applied + 1) / double(warm_up + 1); }

// Errors: weft[optim.schedule].
constexpr void require_span(Index warm_up, Index steps) {
  if (warm_up < 0 || steps < 1 || warm_up > steps)
    throw Error("optim.schedule", "a schedule that ends needs steps >= 1 and 0 <= warm_up <= steps (steps " + std::to_string(steps) +
                                      ", warm_up " + std::to_string(warm_up) + ")");
}

// Warm-up, then a straight line from 1 down to `floor` at `steps` updates, counted with the warm-up; `floor` from there on.
// Errors: weft[optim.schedule].
struct LinearRate {
  Index warm_up = 0;
  Index steps = 0;
  double floor = 0;  // a factor, as 1 is the full rate

  constexpr double factor_at(Index applied) const {
    require_span(warm_up, steps);
    if (applied >= steps) return floor;
    if (applied < warm_up) return warm_up_factor(applied, warm_up);
    return 1 + (floor - 1) * double(applied - warm_up) / double(steps - warm_up);
  }
  bool operator==(const LinearRate&) const = default;
};

// Warm-up, then half a cosine from 1 down to `floor` at `steps` updates, counted with the warm-up; `floor` from there on.
// Errors: weft[optim.schedule]. Source: Loshchilov and Hutter, arXiv 1608.03983, without restarts.
struct CosineRate {
  Index warm_up = 0;
  Index steps = 0;
  double floor = 0;

  double factor_at(Index applied) const {
    require_span(warm_up, steps);
    if (applied >= steps) return floor;
    if (applied < warm_up) return warm_up_factor(applied, warm_up);
    const double part = double(applied - warm_up) / double(steps - warm_up);
    return floor + (1 - floor) * 0.5 * (1 + std::cos(std::numbers::pi * part));
  }
  bool operator==(const CosineRate&) const = default;
};

// Multiplied by `factor` after every `every` updates: factor^(applied / every), rounded down. Errors: weft[optim.schedule].
struct StepRate {
  Index every = 1;
  double factor = 0.1;

  double factor_at(Index applied) const {
    if (every < 1 || !(factor >= 0))
      throw Error("optim.schedule", "a rate that steps needs every >= 1 and factor >= 0 (every " + std::to_string(every) + ", factor " +
                                        std::to_string(factor) + ")");
    return std::pow(factor, double(applied / every));
  }
  bool operator==(const StepRate&) const = default;
};

}  // namespace weft
