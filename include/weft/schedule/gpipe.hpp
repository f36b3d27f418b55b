// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/schedule/table.hpp"

namespace weft::schedule {

// All forwards, then all backwards (Huang et al., arXiv 1811.06965). Holds every micro-batch.
//   stage 0   0F0 0F1 0F2          0B0 0B1 0B2
//   stage 1       1F0 1F1 1F2 1B0 1B1 1B2
struct GPipe {
  static constexpr const char* name = "gpipe";
  static constexpr int version = 1;

  static constexpr ScheduleTable table(ScheduleShape shape) {
    ScheduleTable out = empty_table(shape);
    for (int s = 0; s < shape.stages; ++s)
      for (const ActionKind kind : {ActionKind::forward, ActionKind::backward})
        for (int m = 0; m < shape.micros; ++m) out.rows[std::size_t(s)].push_back({kind, s, m});
    return out;
  }
};

}  // namespace weft::schedule
