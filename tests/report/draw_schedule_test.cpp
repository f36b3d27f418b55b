// SPDX-License-Identifier: Apache-2.0
// Pictures of schedules: the text to the letter, the SVG by its boxes, which must tile each row as the timeline says.
#include <doctest/doctest.h>

#include <weft/report/draw_schedule.hpp>
#include <weft/schedule/gpipe.hpp>
#include <weft/schedule/interleaved.hpp>
#include <weft/schedule/one_forward_one_backward.hpp>
#include <weft/schedule/zero_bubble.hpp>

using namespace weft;

namespace {

struct Box {
  double x = 0, y = 0, width = 0;
  std::string fill, title;
};

double number_of(const std::string& line, const std::string& name) {
  return std::stod(line.substr(line.find(name + "=\"") + name.size() + 2));
}

// The boxes of actions, in the order of the file.
std::vector<Box> boxes_of(const std::string& svg) {
  std::vector<Box> out;
  for (std::size_t at = svg.find("<g><title>"); at != std::string::npos; at = svg.find("<g><title>", at + 1)) {
    const std::string line = svg.substr(at, svg.find('\n', at) - at), rect = line.substr(line.find("<rect"));
    const std::size_t fill = rect.find("fill=\"") + 6;
    out.push_back({number_of(rect, " x"), number_of(rect, " y"), number_of(rect, "width"), rect.substr(fill, 7),
                   line.substr(10, line.find("</title>") - 10)});
  }
  return out;
}

void is_drawn_right(const ScheduleTable& table, const ScheduleTimes& times) {
  const SvgOptions options{.title = "a < b & c", .width = 1000};
  const std::string svg = draw_schedule_svg(table, times, options);
  const Timeline timeline = simulate_schedule(table, times);
  CHECK(svg.find("a &lt; b &amp; c") != std::string::npos);
  CHECK(svg.find(timeline_text(timeline)) != std::string::npos);
  const std::vector<Box> boxes = boxes_of(svg);
  std::size_t next = 0;
  const double left = boxes.at(0).x;  // the first action begins at 0
  for (std::size_t s = 0; s < timeline.rows.size(); ++s) {
    double end = 0;
    for (const TimedAction& each : timeline.rows[s]) {
      REQUIRE(next < boxes.size());
      const Box& box = boxes[next++];
      CHECK(box.y == doctest::Approx(boxes[0].y + double(s) * options.row_height));
      CHECK(box.x == doctest::Approx(left + each.begin / timeline.makespan * options.width).epsilon(1e-3));
      CHECK(box.width == doctest::Approx((each.end - each.begin) / timeline.makespan * options.width).epsilon(0.02));
      CHECK(box.x >= end - 0.02);  // none lies over the one before
      CHECK(box.title.rfind(action_text(each.action) + ",", 0) == 0);
      end = box.x + box.width;
    }
    CHECK(end <= left + options.width + 0.02);
  }
  CHECK(next == boxes.size());
}

}  // namespace

TEST_CASE("text_is_a_grid_of_time") {
  CHECK(draw_schedule_text(schedule::OneForwardOneBackward::table({2, 1, 3})) ==
        "stage 0 |F0 F1       B0--- F2 B1---    B2---  | 2 in flight\n"
        "stage 1 |   F0 B0--- F1 B1--- F2 B2---        | 1\n"
        "makespan 12, bubble 3 of 12 (25.0 %)\n");
  CHECK(draw_schedule_text(schedule::ZeroBubbleH1::table({2, 1, 2})) ==
        "stage 0 |F0 F1    I0 W0 I1 W1  | 2 in flight\n"
        "stage 1 |   F0 I0 F1 I1 W0 W1  | 1 (2)\n"
        "makespan 7, bubble 1 of 7 (14.3 %)\n");
  // The second chunk of a stage is written small.
  CHECK(draw_schedule_text(schedule::Interleaved::table({2, 2, 2})).substr(0, 52) ==
        "stage 0 |F0 F1 f0 f1       b0---    b1--- B0--- B1--");
}

TEST_CASE("text_keeps_to_its_columns") {
  const std::string text = draw_schedule_text(schedule::GPipe::table({4, 1, 100}), {}, 80);
  for (std::size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1) CHECK(text.find('\n', begin) - begin <= 80);
  CHECK(text.find("F0") == std::string::npos);  // no room for numbers
}

TEST_CASE("boxes_are_where_the_timeline_says") {
  const ScheduleTimes uneven{.forward = 3, .backward_input = 4, .backward_weight = 2, .communication = 0.5};
  is_drawn_right(schedule::OneForwardOneBackward::table({4, 1, 8}), uneven);
  is_drawn_right(schedule::ZeroBubbleV::table({4, 2, 10}), uneven);
  is_drawn_right(schedule::Interleaved::table({3, 3, 6}), {});
  is_drawn_right(schedule::GPipe::table({1, 1, 1}), {});
}

TEST_CASE("colours_tell_kinds_and_chunks") {
  std::vector<std::string> seen;
  for (const Box& box : boxes_of(draw_schedule_svg(schedule::ZeroBubbleV::table({2, 2, 4}))))
    if (std::find(seen.begin(), seen.end(), box.fill) == seen.end()) seen.push_back(box.fill);
  CHECK(seen.size() == 6);  // three kinds, two chunks
}
