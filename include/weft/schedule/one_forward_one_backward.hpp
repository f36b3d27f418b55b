// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/schedule/table.hpp"

namespace weft::schedule {

// Each backward as soon as it can be (Narayanan et al., arXiv 2006.09503, with a flush a step). Stage s of p holds at most p - s
// micro-batches, however many there are.
//   stage 0   0F0 0F1         0B0 0F2 0B1     0B2
//   stage 1       1F0 1B0 1F1 1B1     1F2 1B2
struct OneForwardOneBackward {
  static constexpr const char* name = "1f1b";
  static constexpr int version = 1;

  static constexpr ScheduleTable table(ScheduleShape shape) {
    ScheduleTable out = empty_table(shape);
    for (int s = 0; s < shape.stages; ++s) {
      ActionRow& row = out.rows[std::size_t(s)];
      const int warm_up = shape.stages - 1 - s < shape.micros ? shape.stages - 1 - s : shape.micros;
      for (int m = 0; m < warm_up; ++m) row.push_back({ActionKind::forward, s, m});
      for (int m = warm_up; m < shape.micros; ++m) {
        row.push_back({ActionKind::forward, s, m});
        row.push_back({ActionKind::backward, s, m - warm_up});
      }
      for (int m = shape.micros - warm_up; m < shape.micros; ++m) row.push_back({ActionKind::backward, s, m});
    }
    return out;
  }
};

}  // namespace weft::schedule
