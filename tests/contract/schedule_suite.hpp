// SPDX-License-Identifier: Apache-2.0
// What every schedule has to do, as numbered cases. For a schedule of your own, write
//
//   TEST_CASE("my_schedule_conforms") { weft::contract::run_schedule_suite<MySchedule>({.peak = [](ScheduleShape shape, int stage) { … }});
//   }
//
// with doctest, or call the cases. A case throws what is wrong, with the shape. Shapes: 1 to 8 stages, 1 to four micro-batches a stage, and
// as many chunks as the schedule takes. A shape may be refused (an empty table), if not all of them are.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>

#include <weft/schedule/csv.hpp>
#include <weft/schedule/prove.hpp>
#include <weft/schedule/timeline.hpp>

namespace weft::contract {

struct ScheduleSuite {
  int max_stages = 8;
  // What a stage holds at most: chunks of micro-batches between forward and the input part of backward. Without it: whatever there is.
  std::function<int(ScheduleShape, int stage)> peak{};
};

inline std::string shape_text(const char* name, const ScheduleShape& shape) {
  return text_of(name, " on ", shape.stages, " stages, ", shape.chunks_per_stage, " chunks a stage, ", shape.micros, " micro-batches: ");
}

// check(shape, table) for every shape that the schedule takes.
template <class Schedule, class Check>
void for_each_shape(const ScheduleSuite& suite, int times, Check&& check) {
  Index taken = 0;
  for (int p = 1; p <= suite.max_stages; ++p)
    for (Index wanted = 1; wanted <= 3; ++wanted) {
      const int v = int(chunks_per_stage<Schedule>(wanted));
      if (wanted > 1 && chunks_per_stage<Schedule>(wanted - 1) == v) break;  // takes one number only
      for (int m = 1; m <= times * p; ++m) {
        const ScheduleShape shape{p, v, m};
        const ScheduleTable table = Schedule::table(shape);
        if (table.rows.empty()) continue;
        ++taken;
        const std::string wrong = check(shape, table);
        if (!wrong.empty()) throw std::runtime_error(shape_text(Schedule::name, shape) + wrong);
      }
    }
  if (taken == 0) throw std::runtime_error(std::string(Schedule::name) + ": takes no shape");
}

template <class Schedule>
void case_01_is_a_schedule(const ScheduleSuite&) {
  static_assert(explain_schedule<Schedule>(), "weft[schedule]: said by the function itself");
  if (std::string_view(Schedule::name).empty()) throw std::runtime_error("a schedule has a name");
}

template <class Schedule>
void case_02_every_shape_is_proved(const ScheduleSuite& suite) {
  for_each_shape<Schedule>(suite, 4, [](const ScheduleShape& shape, const ScheduleTable& table) -> std::string {
    if (!(table.shape == shape)) return "the table is of another shape";
    for (const ScheduleTable& each : {table, with_communication(table)}) {
      const ScheduleFault fault = verify(each);
      if (fault.rule != ScheduleRule::none) return rule_text(fault.rule) + (" (" + fault_text(fault)) + ")";
    }
    return {};
  });
}

template <class Schedule>
void case_03_every_stage_holds_as_many_chunks(const ScheduleSuite& suite) {
  for_each_shape<Schedule>(suite, 1, [](const ScheduleShape& shape, const ScheduleTable& table) -> std::string {
    std::vector<int> held(std::size_t(shape.stages), 0);
    for (const int stage : table.stage_of_chunk) ++held[std::size_t(stage)];
    for (std::size_t s = 0; s < held.size(); ++s)
      if (held[s] != shape.chunks_per_stage) return text_of("stage ", s, " holds ", held[s], " chunks");
    return {};
  });
}

// By brute force, and by another program than verify's: stages go on in random order, one action at a time; a message passes when both of
// its ends are at the front of what their stages post together. Whatever the order, all come to their end.
template <class Schedule>
void case_04_any_order_of_stages_ends(const ScheduleSuite& suite) {
  std::mt19937 random(1);
  for_each_shape<Schedule>(suite, 2, [&](const ScheduleShape& shape, const ScheduleTable& plain) -> std::string {
    const ScheduleTable table = with_communication(plain);
    std::vector<std::vector<Action>> left;
    for (const ActionRow& row : table.rows) left.emplace_back(row.begin(), row.end());
    std::vector<Action> done;  // what has been computed or has arrived
    const auto has = [&](const Action& action) { return std::find(done.begin(), done.end(), action) != done.end(); };
    const auto on = [&](int chunk) { return std::size_t(table.stage_of_chunk[std::size_t(chunk)]); };
    const auto input_of = [&](int from, int to, ActionKind made, ActionKind message, int micro) {
      return on(from) == on(to) ? has({made, from, micro}) : has({message, to, micro});
    };
    const auto backward_kind = ActionKind::backward_input;
    const int last = shape.num_chunks() - 1;
    const auto try_stage = [&](std::size_t s) {
      std::vector<Action>& row = left[s];
      if (row.empty()) return false;
      const Action action = row.front();
      const int c = action.chunk, m = action.micro;
      if (is_message(action.kind)) {
        for (std::size_t i = 0; i < row.size() && is_message(row[i].kind); ++i) {
          const Action other = other_end(row[i]);
          std::vector<Action>& peer = left[on(other.chunk)];
          for (std::size_t j = 0; j < peer.size() && is_message(peer[j].kind); ++j)
            if (peer[j] == other) {
              done.push_back(is_receive(other.kind) ? other : row[i]);
              peer.erase(peer.begin() + std::ptrdiff_t(j)), row.erase(row.begin() + std::ptrdiff_t(i));
              return true;
            }
        }
        return false;
      }
      bool ready = true;
      if (action.kind == ActionKind::forward)
        ready = c == 0 || input_of(c - 1, c, ActionKind::forward, ActionKind::receive_forward, m);
      else if (action.kind == ActionKind::backward_weight)
        ready = has({backward_kind, c, m});
      else
        ready = has({ActionKind::forward, c, m}) && (c == last || input_of(c + 1, c, backward_kind, ActionKind::receive_backward, m));
      if (!ready) return false;
      done.push_back({action.kind == ActionKind::backward ? backward_kind : action.kind, c, m});
      row.erase(row.begin());
      return true;
    };
    for (Index failures = 0; failures < 200 * shape.stages;) {
      bool any = false;
      for (const auto& row : left) any |= !row.empty();
      if (!any) {
        for (int c = 0; c <= last; ++c)
          for (int m = 0; m < shape.micros; ++m)
            if (!has({ActionKind::forward, c, m}) || !has({backward_kind, c, m}))
              return "all stages have ended, and not everything is computed";
        return {};
      }
      failures = try_stage(random() % left.size()) ? 0 : failures + 1;
    }
    return "stages wait for ever";
  });
}

template <class Schedule>
void case_05_peaks_are_within_their_bound(const ScheduleSuite& suite) {
  for_each_shape<Schedule>(suite, 4, [&](const ScheduleShape& shape, const ScheduleTable& table) -> std::string {
    const Timeline timeline = simulate_schedule(table, ScheduleTimes{});
    for (int s = 0; s < shape.stages; ++s) {
      const int most = suite.peak ? suite.peak(shape, s) : shape.micros * shape.chunks_per_stage, found = timeline.peak[std::size_t(s)];
      if (found > most) return text_of("stage ", s, " holds ", found, " chunks of micro-batches, at most ", most, " are meant");
    }
    return {};
  });
}

// Everything is computed once, whatever the times.
template <class Schedule>
void case_06_times_add_up(const ScheduleSuite& suite) {
  for_each_shape<Schedule>(suite, 2, [](const ScheduleShape& shape, const ScheduleTable& table) -> std::string {
    for (const ScheduleTimes& times :
         {ScheduleTimes{}, ScheduleTimes{.forward = 3, .backward_input = 2, .backward_weight = 4, .communication = 0.5}}) {
      const Timeline timeline = simulate_schedule(table, times);
      const double work = shape.micros * shape.chunks_per_stage * (times.forward + times.backward_input + times.backward_weight);
      if (timeline.busy < work - 1e-9 || timeline.busy > work + 1e-9) return "a stage computes more or less than its chunks";
      if (timeline.makespan < work - 1e-9) return "the schedule ends before its work is done";
    }
    return {};
  });
}

// What the compiler takes from a window of micro-batches is what is true of all.
template <class Schedule>
void case_07_windows_tell_the_truth(const ScheduleSuite& suite) {
  for_each_shape<Schedule>(suite, 7, [](const ScheduleShape& shape, const ScheduleTable& table) -> std::string {
    const ScheduleShape window = proof_window(shape);
    if (window == shape) return {};
    const ScheduleTable seen = Schedule::table(window);
    if (seen.rows.empty()) return {};  // then the compiler looks at all
    const ScheduleFacts facts = schedule_facts(with_communication(table));
    const ScheduleFacts guess = facts_of_all(schedule_facts(with_communication(seen)), shape.micros);
    for (int c = 0; c < shape.num_chunks(); ++c)
      if (!(facts.chunks[std::size_t(c)] == guess.chunks[std::size_t(c)]))
        return text_of("a window of ", window.micros, " micro-batches does not show what chunk ", c,
                       " holds; make its steady state periodic, or use plan_at_start");
    for (int s = 0; s < shape.stages; ++s)
      if (!(facts.stages[std::size_t(s)] == guess.stages[std::size_t(s)]))
        return text_of("a window does not show what stage ", s, " reads");
    return {};
  });
}

template <class Schedule>
void case_08_text_goes_round(const ScheduleSuite& suite) {
  for_each_shape<Schedule>(suite, 2, [](const ScheduleShape& shape, const ScheduleTable& table) -> std::string {
    const ScheduleTable back = schedule_from_csv(schedule_to_csv(table));
    return back.shape == shape && back.rows == table.rows && back.stage_of_chunk == table.stage_of_chunk
               ? ""
               : "it does not come back from text";
  });
}

template <class Schedule>
void run_schedule_suite(const ScheduleSuite& suite = {}) {
  CHECK_NOTHROW(case_01_is_a_schedule<Schedule>(suite));
  CHECK_NOTHROW(case_02_every_shape_is_proved<Schedule>(suite));
  CHECK_NOTHROW(case_03_every_stage_holds_as_many_chunks<Schedule>(suite));
  CHECK_NOTHROW(case_04_any_order_of_stages_ends<Schedule>(suite));
  CHECK_NOTHROW(case_05_peaks_are_within_their_bound<Schedule>(suite));
  CHECK_NOTHROW(case_06_times_add_up<Schedule>(suite));
  CHECK_NOTHROW(case_07_windows_tell_the_truth<Schedule>(suite));
  CHECK_NOTHROW(case_08_text_goes_round<Schedule>(suite));
}

}  // namespace weft::contract
