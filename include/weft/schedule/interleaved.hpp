// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/schedule/table.hpp"

namespace weft::schedule {

// 1F1B over several chunks a stage, in groups of micro-batches that go through one chunk after the other (Narayanan et al.,
// arXiv 2104.04473): with v chunks the bubble is 1F1B's divided by v, for v times the messages. Stage i of p holds
// (v-1)·p + 2·(p-1-i) + 1 chunks' activations. Best when p divides the micro-batches; else the groups are larger than p.
//   2 stages, 2 chunks, 2 micro-batches:
//   stage 0   0F0 0F1 2F0 2F1         2B0     2B1 0B0     0B1
//   stage 1       1F0 1F1 3F0 3B0 3F1 3B1 1B0     1B1
struct Interleaved {
  static constexpr const char* name = "interleaved";
  static constexpr int version = 1;
  static constexpr bool interleaves = true;

  static constexpr ScheduleTable table(ScheduleShape shape) {
    ScheduleTable out = empty_table(shape);
    const int p = shape.stages, v = shape.chunks_per_stage, m = shape.micros;
    const int rounds = m / p > 1 ? m / p : 1, first_group = (m + rounds - 1) / rounds;
    // Pass and micro-batch of a stage's i-th forward, i-th backward.
    ActionRow forwards, backwards;
    for (int round = 0, begin = 0; round < rounds; ++round) {
      const int size = m / rounds + (round < m % rounds ? 1 : 0);
      for (int pass = 0; pass < v; ++pass)
        for (int i = 0; i < size; ++i) {
          forwards.push_back({ActionKind::forward, pass * p, begin + i});
          backwards.push_back({ActionKind::backward, (v - 1 - pass) * p, begin + i});
        }
      begin += size;
    }
    const int total = m * v;
    for (int s = 0; s < p; ++s) {
      ActionRow& row = out.rows[std::size_t(s)];
      const auto add = [&](Action action) {
        action.chunk += s;
        row.push_back(action);
      };
      const int wanted = 2 * (p - 1 - s) + (v - 1) * first_group, warm_up = wanted < total ? wanted : total;
      for (int i = 0; i < total + warm_up; ++i) {
        if (i < total) add(forwards[std::size_t(i)]);
        if (i >= warm_up) add(backwards[std::size_t(i - warm_up)]);
      }
    }
    return out;
  }
};

}  // namespace weft::schedule
