// SPDX-License-Identifier: Apache-2.0
// A plan and a world that is known at start-up only: whether they fit, and what would.
#pragma once

#include "weft/base/error.hpp"
#include "weft/base/text.hpp"
#include "weft/layout/fit_to_world.hpp"
#include "weft/plan/plan_data.hpp"

namespace weft {

// The divisor of `number` that is nearest to `wanted`, the smaller of two.
constexpr Index nearest_divisor(Index number, Index wanted) {
  if (wanted > 0 && number % wanted == 0) return wanted;
  const NearestDivisors nearest = nearest_divisors(number, wanted);
  return nearest.below == 0 || (nearest.above != 0 && nearest.above - wanted < wanted - nearest.below) ? nearest.above : nearest.below;
}

// Degrees as near to a strategy's as a world of so many ranks allows: tensor ranks first, which the model's layers depend on, then stages;
// data ranks take the rest.
struct WorldDegrees {
  Index data = 1, stages = 1, tensor = 1;
  bool operator==(const WorldDegrees&) const = default;
};
constexpr WorldDegrees nearest_degrees(const StrategyData& strategy, Index world) {
  const Index tensor = nearest_divisor(world, strategy.tensor()), stages = nearest_divisor(world / tensor, strategy.stages());
  return {world / tensor / stages, stages, tensor};
}

inline std::string degrees_text(const WorldDegrees& degrees) {
  return text_of(degrees.data, " data x ", degrees.stages, " pipe x ", degrees.tensor, " tensor");
}

// "plan 6 = 2 data x 1 pipe x 3 tensor, world 8; the nearest that fits: 4 data x 1 pipe x 2 tensor"
inline std::string world_text(const StrategyData& strategy, Index world) {
  return text_of("plan ", strategy.ranks, " = ", degrees_text({strategy.data(), strategy.stages(), strategy.tensor()}), ", world ", world,
                 "; the nearest that fits: ", degrees_text(nearest_degrees(strategy, world)));
}

// To be called before ranks are started, or on each. Errors: weft[mesh.world].
inline void require_world(const StrategyData& strategy, Index world) {
  if (strategy.ranks != world)
    throw Error("mesh.world", "the product of a mesh's degrees is the number of ranks that there are; change one of them (" +
                                  world_text(strategy, world) + ")");
}

}  // namespace weft
