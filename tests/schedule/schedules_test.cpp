// SPDX-License-Identifier: Apache-2.0
// Bubbles and peaks of the schedules by their formulas, published measurements, and a listing of each.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <weft/schedule/gpipe.hpp>
#include <weft/schedule/interleaved.hpp>
#include <weft/schedule/one_forward_one_backward.hpp>
#include <weft/schedule/timeline.hpp>
#include <weft/schedule/zero_bubble.hpp>

using namespace weft;

namespace {

template <class Schedule>
ScheduleTable proved(int p, int m, int v = 1) {
  const ScheduleTable table = Schedule::table({p, v, m});
  const ScheduleFault fault = verify(table), with_messages = verify(add_communication(table));
  CHECK_MESSAGE(fault.rule == ScheduleRule::none, Schedule::name << ' ' << p << ' ' << v << ' ' << m << ": " << rule_text(fault.rule));
  CHECK_MESSAGE(with_messages.rule == ScheduleRule::none,
                Schedule::name << ' ' << p << ' ' << v << ' ' << m << ", with messages: " << rule_text(with_messages.rule) << " stage "
                               << with_messages.stage << " position " << with_messages.position);
  return table;
}

std::string listing(const ScheduleTable& table) {
  std::string text;
  for (const ActionRow& row : table.rows) {
    for (const Action& action : row) text += std::to_string(action.chunk) + "FBIW"[int(action.kind)] + std::to_string(action.micro) + ' ';
    text.back() = '\n';
  }
  return text;
}

constexpr ScheduleTimes uneven{.forward = 3, .backward_input = 4, .backward_weight = 2};

}  // namespace

TEST_CASE("every_shape_is_proved") {
  for (int p : {1, 2, 3, 4, 8})
    for (int m = 1; m <= 4 * p + 1; ++m) {
      proved<schedule::GPipe>(p, m);
      proved<schedule::OneForwardOneBackward>(p, m);
      proved<schedule::ZeroBubbleH1>(p, m);
      proved<schedule::ZeroBubbleH2>(p, m);
      proved<schedule::ZeroBubbleV>(p, m, 2);
      for (int v : {1, 2, 3}) proved<schedule::Interleaved>(p, m, v);
    }
}

TEST_CASE("bubbles_and_peaks_are_those_of_the_formulas") {
  const double full = uneven.forward + uneven.backward_input + uneven.backward_weight;
  for (int p : {2, 4, 8})
    for (int m = 1; m <= 4 * p; ++m) {
      CAPTURE(p);
      CAPTURE(m);
      const Timeline gpipe = simulate_schedule(schedule::GPipe::table({p, 1, m}), uneven);
      const Timeline one = simulate_schedule(schedule::OneForwardOneBackward::table({p, 1, m}), uneven);
      CHECK(gpipe.bubble() == doctest::Approx((p - 1) * full));
      if (m >= p) CHECK(one.bubble() == doctest::Approx((p - 1) * full));
      const Timeline h1 = simulate_schedule(schedule::ZeroBubbleH1::table({p, 1, m}), uneven);
      const Timeline h2 = simulate_schedule(schedule::ZeroBubbleH2::table({p, 1, m}), uneven);
      const Timeline equal = simulate_schedule(schedule::ZeroBubbleH2::table({p, 1, m}), ScheduleTimes{});
      const Timeline v = simulate_schedule(schedule::ZeroBubbleV::table({p, 2, m}), ScheduleTimes{});
      if (m >= p) CHECK(h1.bubble() == doctest::Approx((p - 1) * (uneven.forward + uneven.backward_input - uneven.backward_weight)));
      if (m >= 2 * p - 1) {
        CHECK(h2.bubble() <= (p - 1) * (uneven.forward + uneven.backward_input - 2 * uneven.backward_weight) + 1e-9);
        CHECK(equal.bubble() == doctest::Approx(0));
        CHECK(v.bubble() == doctest::Approx(0));
        for (int peak : h2.peak_with_weights) CHECK(peak <= 2 * p - 1);
        for (int peak : v.peak_with_weights) CHECK(peak <= 2 * p);  // chunks: p micro-batches
      }
      for (int i = 0; i < p; ++i) {
        CHECK(gpipe.peak[std::size_t(i)] == m);
        CHECK(one.peak[std::size_t(i)] == std::min(m, p - i));
        CHECK(h1.peak[std::size_t(i)] == std::min(m, p - i));
        CHECK(h1.peak_with_weights[std::size_t(i)] <= p);
        CHECK(h2.peak[std::size_t(i)] == std::min(m, 2 * p - 2 * i - 1));
      }
      if (m % p == 0)
        for (int chunks : {2, 3, 4}) {
          const Timeline interleaved = simulate_schedule(schedule::Interleaved::table({p, chunks, m}), uneven);
          CHECK(interleaved.bubble() == doctest::Approx((p - 1) * full));  // of chunk times: a stage's time divided by v
          for (int i = 0; i < p; ++i)
            CHECK(interleaved.peak[std::size_t(i)] == std::min(m * chunks, (chunks - 1) * p + 2 * (p - 1 - i) + 1));
        }
    }
}

// arXiv 2401.10241, tables 5 and 9: 8 stages, measured times, the schedules' bubble rates.
TEST_CASE("published_bubble_rates_come_out_to_four_decimals") {
  struct Row {
    int m;
    ScheduleTimes times;
    double one, h1, h2;
  };
  for (const Row& row :
       {Row{24, {18.522, 18.086, 9.337, 0.601}, .2431, .1585, .1083}, Row{32, {18.513, 18.086, 9.331, 0.626}, .1985, .1242, .0837},
        Row{64, {18.546, 18.097, 9.321, 0.762}, .1240, .0674, .0444}}) {
    const auto rate = [&](const ScheduleTable& table) { return simulate_schedule(table, row.times).bubble_rate(); };
    const auto rounded = [](double x) { return std::round(x * 1e4) / 1e4; };
    CHECK(rounded(rate(schedule::OneForwardOneBackward::table({8, 1, row.m}))) == doctest::Approx(row.one));
    CHECK(rounded(rate(schedule::ZeroBubbleH1::table({8, 1, row.m}))) == doctest::Approx(row.h1));
    CHECK(rounded(rate(schedule::ZeroBubbleH2::table({8, 1, row.m}))) == doctest::Approx(row.h2));
  }
}

TEST_CASE("listings_are_what_the_comments_say") {
  CHECK(listing(schedule::GPipe::table({2, 1, 3})) == "0F0 0F1 0F2 0B0 0B1 0B2\n1F0 1F1 1F2 1B0 1B1 1B2\n");
  CHECK(listing(schedule::OneForwardOneBackward::table({2, 1, 3})) == "0F0 0F1 0B0 0F2 0B1 0B2\n1F0 1B0 1F1 1B1 1F2 1B2\n");
  CHECK(listing(schedule::Interleaved::table({2, 2, 2})) == "0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1\n1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1\n");
  CHECK(listing(schedule::ZeroBubbleH1::table({2, 1, 3})) == "0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2\n1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2\n");
  CHECK(listing(schedule::ZeroBubbleH2::table({2, 1, 3})) == "0F0 0F1 0F2 0I0 0W0 0I1 0W1 0I2 0W2\n1F0 1I0 1F1 1I1 1F2 1I2 1W0 1W1 1W2\n");
  CHECK(listing(schedule::ZeroBubbleV::table({2, 2, 3})) ==
        "0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 3F2 3I2 3W2 0I1 0W1 0I2 0W2\n"
        "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1I1 2I2 1I2 1W1 2W2 1W2\n");
}

// Against all orders, where they can be tried.
TEST_CASE("one_forward_one_backward_is_the_best_of_all_orders_within_its_memory") {
  for (const auto& [p, m] : {std::pair{2, 2}, std::pair{2, 3}, std::pair{2, 4}}) {
    // Every order of a row that keeps forwards and backwards in sequence, in all combinations over the stages.
    std::vector<std::vector<ActionRow>> rows(static_cast<std::size_t>(p));
    for (int s = 0; s < p; ++s)
      for (unsigned pattern = 0; pattern < 1u << (2 * m); ++pattern) {
        ActionRow row;
        int forward = 0, backward = 0;
        bool fits = true;
        for (int i = 0; i < 2 * m && fits; ++i) {
          if (pattern >> i & 1u)
            row.push_back({ActionKind::backward, s, backward++});
          else
            row.push_back({ActionKind::forward, s, forward++});
          fits = backward <= forward && forward <= m && forward - backward <= p - s;
        }
        if (fits && forward == m && backward == m) rows[std::size_t(s)].push_back(row);
      }
    double best = 1e300;
    for (const auto& first : rows[0])
      for (const auto& second : rows[1]) {
        ScheduleTable table = empty_table({p, 1, m});
        table.rows = {first, second};
        if (verify(table).rule != ScheduleRule::none) continue;
        best = std::min(best, simulate_schedule(table, uneven).makespan);
      }
    CHECK(simulate_schedule(schedule::OneForwardOneBackward::table({p, 1, m}), uneven).makespan == doctest::Approx(best));
  }
}

namespace {

// Every order of a stage's row that keeps each kind in sequence, with at most `held` micro-batches between forward and weight part.
void all_rows(int stage, int micros, int held, ActionRow& row, int (&count)[3], std::vector<ActionRow>& out) {
  constexpr ActionKind kinds[] = {ActionKind::forward, ActionKind::backward_input, ActionKind::backward_weight};
  if (count[2] == micros) return out.push_back(row);
  for (int k = 0; k < 3; ++k) {
    if (count[k] == micros || (k > 0 && count[k] == count[k - 1]) || (k == 0 && count[0] - count[2] == held)) continue;
    row.push_back({kinds[k], stage, count[k]++});
    all_rows(stage, micros, held, row, count, out);
    row.erase(row.size() - 1), --count[k];
  }
}

// The shortest makespan of all orders on two stages that hold no more than a schedule does.
double shortest(const Timeline& of, int micros, const ScheduleTimes& times) {
  std::vector<ActionRow> rows[2];
  for (int s = 0; s < 2; ++s) {
    ActionRow row;
    int count[3] = {};
    all_rows(s, micros, of.peak_with_weights[std::size_t(s)], row, count, rows[s]);
  }
  double best = 1e300;
  ScheduleTable table = empty_table({2, 1, micros});
  for (const ActionRow& first : rows[0])
    for (const ActionRow& second : rows[1]) {
      table.rows[0] = first, table.rows[1] = second;
      if (verify(table).rule == ScheduleRule::none) best = std::min(best, simulate_schedule(table, times).makespan);
    }
  return best;
}

}  // namespace

TEST_CASE("zero_bubble_is_the_best_of_all_orders_within_its_memory") {
  for (int m : {2, 3}) {
    const Timeline h1 = simulate_schedule(schedule::ZeroBubbleH1::table({2, 1, m}), ScheduleTimes{});
    const Timeline h2 = simulate_schedule(schedule::ZeroBubbleH2::table({2, 1, m}), ScheduleTimes{});
    CHECK(h1.makespan == doctest::Approx(shortest(h1, m, ScheduleTimes{})));
    CHECK(h2.makespan == doctest::Approx(shortest(h2, m, ScheduleTimes{})));
  }
}

namespace {

// Every order of a stage's row that keeps each kind of each chunk in sequence and has no more in flight than `held`; parts: kinds of a
// backward.
void all_rows_of_chunks(const std::vector<Action>& streams, int micros, int held, ActionRow& row, std::vector<int>& count,
                        std::vector<ActionRow>& out) {
  bool done = true;
  for (std::size_t k = 0; k < streams.size(); ++k) {
    done &= count[k] == micros;
    // Streams of a chunk follow each other: forward, (input part of) backward, weight part.
    const bool first = streams[k].kind == ActionKind::forward;
    int in_flight = 0;
    for (std::size_t other = 0; other < streams.size(); ++other)
      if (streams[other].kind == ActionKind::forward) in_flight += count[other] - count[other + 1];
    if (count[k] == micros || (first && in_flight == held) || (!first && count[k] == count[k - 1])) continue;
    row.push_back({streams[k].kind, streams[k].chunk, count[k]++});
    all_rows_of_chunks(streams, micros, held, row, count, out);
    row.erase(row.size() - 1), --count[k];
  }
  if (done) out.push_back(row);
}

double shortest_of_chunks(const ScheduleTable& like, bool splits) {
  const Timeline timeline = simulate_schedule(like, ScheduleTimes{});
  std::vector<ActionRow> rows[2];
  for (int s = 0; s < 2; ++s) {
    std::vector<Action> streams;
    for (int c = 0; c < like.shape.num_chunks(); ++c) {
      if (like.stage_of_chunk[std::size_t(c)] != s) continue;
      streams.push_back({ActionKind::forward, c, 0});
      streams.push_back({splits ? ActionKind::backward_input : ActionKind::backward, c, 0});
      if (splits) streams.push_back({ActionKind::backward_weight, c, 0});
    }
    ActionRow row;
    std::vector<int> count(streams.size(), 0);
    all_rows_of_chunks(streams, like.shape.micros, timeline.peak[std::size_t(s)], row, count, rows[s]);
  }
  double best = 1e300;
  ScheduleTable table = like;
  for (const ActionRow& first : rows[0])
    for (const ActionRow& second : rows[1]) {
      table.rows[0] = first, table.rows[1] = second;
      if (verify(table).rule == ScheduleRule::none) best = std::min(best, simulate_schedule(table, ScheduleTimes{}).makespan);
    }
  return best;
}

}  // namespace

TEST_CASE("schedules_of_two_chunks_are_the_best_of_all_orders_within_their_memory") {
  for (int m : {1, 2}) {
    const ScheduleTable interleaved = schedule::Interleaved::table({2, 2, m});
    CHECK(simulate_schedule(interleaved, ScheduleTimes{}).makespan == doctest::Approx(shortest_of_chunks(interleaved, false)));
  }
  // The V is made for many micro-batches, where it has no bubble at all; with a single one a weight part stands in the way.
  const ScheduleTable v = schedule::ZeroBubbleV::table({2, 2, 1});
  CHECK(simulate_schedule(v, ScheduleTimes{}).makespan == doctest::Approx(shortest_of_chunks(v, true) + ScheduleTimes{}.backward_weight));
}

TEST_CASE("gpipe_is_the_best_of_all_orders_that_go_forward_first") {
  for (int m : {1, 2, 3, 4}) {
    const double found = simulate_schedule(schedule::GPipe::table({2, 1, m}), uneven).makespan;
    ScheduleTable table = schedule::GPipe::table({2, 1, m});
    for (int i = 0; i < m / 2; ++i)  // also with backwards in the other order
      for (ActionRow& row : table.rows) std::swap(row[std::size_t(m + i)].micro, row[std::size_t(2 * m - 1 - i)].micro);
    REQUIRE(verify(table).rule == ScheduleRule::none);
    CHECK(found <= simulate_schedule(table, uneven).makespan + 1e-9);
    CHECK(found == doctest::Approx((m + 1) * 9.0));
  }
}
