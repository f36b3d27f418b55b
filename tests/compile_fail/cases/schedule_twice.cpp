// SPDX-License-Identifier: Apache-2.0
// id: schedule.twice
// A forward that stands there twice.
#include <weft/plan.hpp>

using namespace weft;

// 1F1B, with one change.
struct Mine {
  static constexpr const char* name = "mine";
  static constexpr int version = 1;
  static constexpr ScheduleTable table(ScheduleShape shape) {
    ScheduleTable out = schedule::OneForwardOneBackward::table(shape);
#ifdef WEFT_CONTROL
    out.rows[1].reserve(100);
#else
    out.rows[1].push_back({ActionKind::forward, 1, 2});
#endif
    return out;
  }
};

using Model = Sequential<Repeat<4, Linear<8, 8>>, Linear<8, 3>>;
using Train = Plan<Model, mesh(Pipeline<Mine>{.stages = 2}), Batch{.global = 4, .micro = 1}>;

static_assert(Train::bytes_per_rank() <= 8 * GiB, "a rank may use 8 GiB");
int main() { return Train::num_ranks == 0; }
