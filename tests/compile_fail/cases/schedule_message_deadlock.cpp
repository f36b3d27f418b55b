// SPDX-License-Identifier: Apache-2.0
// id: schedule.deadlock
// A table with its own messages: both stages send first, and neither receives.
#include <weft/plan.hpp>

using namespace weft;

// 1F1B, with one change.
struct Mine {
  static constexpr const char* name = "mine";
  static constexpr int version = 1;
  static constexpr ScheduleTable table(ScheduleShape shape) {
    ScheduleTable out = add_communication(schedule::OneForwardOneBackward::table(shape));
#ifdef WEFT_CONTROL
    out.rows[1].reserve(100);
#else
    // Stage 0: 0F0 SEND_F0 0F1 [SEND_F1 RECV_B0] …; now its second send comes after 0B0, which needs what stage 1 sends later.
    std::size_t i = 0, j = 0;
    while (out.rows[1][i].kind != ActionKind::send_backward) ++i;
    while (out.rows[1][j].kind != ActionKind::forward || out.rows[1][j].micro != 1) ++j;
    const Action sent = out.rows[1][i];
    out.rows[1].erase(i), out.rows[1].insert(j, sent);
    i = 0, j = 0;
    while (out.rows[0][i].kind != ActionKind::send_forward || out.rows[0][i].micro != 1) ++i;
    const Action late = out.rows[0][i];
    out.rows[0].erase(i);
    while (out.rows[0][j].kind != ActionKind::backward) ++j;
    out.rows[0].insert(j + 1, late);
#endif
    return out;
  }
};

using Model = Sequential<Repeat<4, Linear<8, 8>>, Linear<8, 3>>;
using Train = Plan<Model, mesh(Pipeline<Mine>{.stages = 2}), Batch{.global = 4, .micro = 1}>;

static_assert(Train::bytes_per_rank() <= 8 * GiB, "a rank may use 8 GiB");
int main() { return Train::num_ranks == 0; }
