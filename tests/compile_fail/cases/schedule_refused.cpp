// SPDX-License-Identifier: Apache-2.0
// id: schedule.shape_refused
// A user's schedule that takes multiples of the stages only, and 6 micro-batches on 4 stages.
#include <weft/plan.hpp>

using namespace weft;

struct Strict : schedule::Interleaved {
  static constexpr ScheduleTable table(ScheduleShape shape) {
    if (shape.micros % shape.stages != 0) return {};
    return schedule::Interleaved::table(shape);
  }
};
using Model = Sequential<Repeat<8, Linear<8, 8>>, Linear<8, 3>>;

#ifdef WEFT_CONTROL
using Train = Plan<Model, mesh(Pipeline<Strict>{.stages = 4, .chunks = 2}), Batch{.global = 8, .micro = 1}>;
#else
using Train = Plan<Model, mesh(Pipeline<Strict>{.stages = 4, .chunks = 2}), Batch{.global = 6, .micro = 1}>;
#endif

static_assert(Train::bytes_per_rank() <= 8 * GiB, "a rank may use 8 GiB");
int main() { return Train::num_ranks == 0; }
