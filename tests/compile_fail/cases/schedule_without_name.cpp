// SPDX-License-Identifier: Apache-2.0
// id: schedule.name
// A schedule that does not say its name.
#include <weft/plan.hpp>

using namespace weft;

struct Mine {
#ifdef WEFT_CONTROL
  static constexpr const char* name = "mine";
#endif
  static constexpr int version = 1;
  static constexpr ScheduleTable table(ScheduleShape shape) { return schedule::GPipe::table(shape); }
};

using Model = Sequential<Repeat<4, Linear<8, 8>>, Linear<8, 3>>;
using Train = Plan<Model, mesh(Pipeline<Mine>{.stages = 2}), Batch{.global = 4, .micro = 1}>;

static_assert(Train::bytes_per_rank() <= 8 * GiB, "a rank may use 8 GiB");
int main() { return Train::num_ranks == 0; }
