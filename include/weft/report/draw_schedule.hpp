// SPDX-License-Identifier: Apache-2.0
// A schedule as a picture: a row a stage, a box an action, time from left to right. As text for terminals and as SVG.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>

#include "weft/schedule/text.hpp"
#include "weft/schedule/timeline.hpp"

namespace weft {

// What text and picture say besides the boxes: "makespan 21, bubble 9 of 21 (42.9 %)".
inline std::string timeline_text(const Timeline& timeline) {
  char text[128];
  std::snprintf(text, sizeof text, "makespan %.4g, bubble %.4g of %.4g (%.1f %%)", timeline.makespan, timeline.bubble(), timeline.span,
                100 * timeline.bubble_rate());
  return text;
}
// "4 (5)": chunks of micro-batches between forward and (the input part of) backward; in brackets until the weight part, where that is more.
inline std::string peak_text(const Timeline& timeline, std::size_t stage) {
  const int peak = timeline.peak[stage], with_weights = timeline.peak_with_weights[stage];
  std::string text = std::to_string(peak);
  if (with_weights != peak) text += " (" + std::to_string(with_weights) + ")";
  return text;
}

// Of a proved table. columns: the most that a line may have; if boxes are too small for their labels, they show their kind only.
//   stage 0 |F0 F1       B0--- B1--- |  2 in flight
//   stage 1 |   F0 B0--- F1 B1---    |  1
//   makespan …
// A stage's second chunk is written small: f0; of more than two chunks, a label begins with the chunk: 5F0.
inline std::string draw_schedule_text(const ScheduleTable& table, const ScheduleTimes& times = {}, int columns = 160) {
  const Timeline timeline = simulate_schedule(table, times);
  // Of two chunks a stage, the second is written small; of more, the chunk's number comes first.
  const bool numbers = table.shape.chunks_per_stage > 2;
  const auto letter = [&](const Action& action) {
    const char kind = symbol_of(action.kind)[0];
    return table.shape.chunks_per_stage == 2 && action.chunk >= table.shape.stages ? char(kind - 'A' + 'a') : kind;
  };
  const auto label = [&](const Action& action) {
    return (numbers ? std::to_string(action.chunk) : std::string()) + letter(action) + std::to_string(action.micro);
  };
  // As wide as the longest label and a blank need in the shortest box, if there are columns enough.
  double shortest = timeline.makespan;
  std::size_t longest = 0;
  for (const auto& row : timeline.rows)
    for (const TimedAction& each : row) {
      if (each.end > each.begin) shortest = std::min(shortest, each.end - each.begin);
      longest = std::max(longest, label(each.action).size());
    }
  const std::string name = "stage ";
  const std::size_t digits = std::to_string(table.rows.size()).size();
  const double room = std::max(20.0, double(columns) - double(name.size() + digits) - 20.0);
  const double wanted = shortest > 0 ? double(longest + 1) / shortest : 1;
  const double scale = timeline.makespan > 0 ? std::min(wanted, room / timeline.makespan) : 1;
  const auto column = [&](double time) { return std::size_t(std::lround(time * scale)); };
  const bool has_room = shortest * scale + 1e-9 >= double(longest);

  std::string out;
  for (std::size_t s = 0; s < timeline.rows.size(); ++s) {
    std::string line(column(timeline.makespan) + 1, ' ');
    for (const TimedAction& each : timeline.rows[s]) {
      const std::size_t begin = column(each.begin), end = std::max(column(each.end), begin + 1);
      const std::string text = has_room ? label(each.action) : std::string(1, letter(each.action));
      for (std::size_t i = begin; i < end && i < line.size(); ++i)
        line[i] = i - begin < text.size() ? text[i - begin] : i + 1 < end ? '-' : ' ';
    }
    const std::string number = std::to_string(s);
    out += name + std::string(digits - number.size(), ' ') + number + " |" + line + "| " + peak_text(timeline, s);
    out += s == 0 ? " in flight\n" : "\n";
  }
  return out + timeline_text(timeline) + "\n";
}

struct SvgOptions {
  std::string title{};
  double width = 1200;  // of the rows, in pixels
  double row_height = 28;
};

// Writes the picture of a proved table. Colours tell the kinds, shades the chunks of a stage; a box says when it begins and ends.
class ScheduleSvg {
 public:
  ScheduleSvg(const ScheduleTable& table, const ScheduleTimes& times, const SvgOptions& options)
      : table_(table), timeline_(simulate_schedule(table, times)), options_(options) {}

  std::string draw() {
    const double top = options_.title.empty() ? 12 : 40, rows = double(timeline_.rows.size()) * options_.row_height;
    const double width = left + options_.width + right, height = top + rows + 64;
    print(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" font-size=\"12\">\n",
        width, height, width, height);
    print("<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n", width, height);
    if (!options_.title.empty()) {
      print("<text x=\"%.0f\" y=\"24\" font-size=\"15\" font-weight=\"bold\">", left);
      text_ += escaped(options_.title) + "</text>\n";
    }
    print("<text x=\"%.0f\" y=\"%.0f\" fill=\"#555555\">in flight</text>\n", left + options_.width + 10, top - 2);
    for (std::size_t s = 0; s < timeline_.rows.size(); ++s) draw_row(s, top + double(s) * options_.row_height);
    draw_axis(top + rows);
    draw_legend(top + rows + 36);
    return std::move(text_ += "</svg>\n");
  }

 private:
  static constexpr double left = 64, right = 84;

  template <class... Values>
  void print(const char* format, Values... values) {
    char line[400];
    std::snprintf(line, sizeof line, format, values...);
    text_ += line;
  }
  static std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
    return out;
  }
  double x_of(double time) const { return left + (timeline_.makespan > 0 ? time / timeline_.makespan * options_.width : 0); }

  struct Colour {
    int red, green, blue;
  };
  // Chunks of later passes are lighter.
  Colour colour_of(ActionKind kind, int pass) const {
    const Colour plain = kind == ActionKind::forward          ? Colour{0x2f, 0x6d, 0xb5}
                         : kind == ActionKind::backward       ? Colour{0x2e, 0x8b, 0x57}
                         : kind == ActionKind::backward_input ? Colour{0x1f, 0x9a, 0x9a}
                                                              : Colour{0xc9, 0x6a, 0x12};
    const int passes = table_.shape.chunks_per_stage;
    const double white = passes > 1 ? 0.62 * pass / (passes - 1) : 0;
    const auto mix = [&](int part) { return int(std::lround(part + (255 - part) * white)); };
    return {mix(plain.red), mix(plain.green), mix(plain.blue)};
  }
  static const char* ink_on(Colour colour) { return 3 * colour.red + 6 * colour.green + colour.blue > 1500 ? "#111111" : "#ffffff"; }
  // The how-manieth of its stage a chunk is.
  int pass_of(int chunk) const {
    int pass = 0;
    for (int c = 0; c < chunk; ++c) pass += table_.stage_of_chunk[std::size_t(c)] == table_.stage_of_chunk[std::size_t(chunk)];
    return pass;
  }

  void draw_row(std::size_t s, double y) {
    print("<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">stage %zu</text>\n", left - 8, y + options_.row_height / 2 + 3, s);
    print("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#f1f1f1\"/>\n", left, y + 1, options_.width,
          options_.row_height - 2);
    for (const TimedAction& each : timeline_.rows[s]) {
      const double x = x_of(each.begin), width = x_of(each.end) - x;
      const Colour colour = colour_of(each.action.kind, pass_of(each.action.chunk));
      print("<g><title>%s, %.6g to %.6g</title>", action_text(each.action).c_str(), each.begin, each.end);
      print("<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"#%02x%02x%02x\" stroke=\"#ffffff\" stroke-width=\"%.1f\"/>",
            x, y + 1, width, options_.row_height - 2, unsigned(colour.red), unsigned(colour.green), unsigned(colour.blue),
            width > 4 ? 1.0 : 0.2);
      const std::string label = std::to_string(each.action.micro);
      const double size = std::min(12.0, (width - 2) / (0.6 * double(label.size())));
      if (size >= 6)
        print("<text x=\"%.2f\" y=\"%.1f\" font-size=\"%.1f\" text-anchor=\"middle\" fill=\"%s\">%s</text>", x + width / 2,
              y + options_.row_height / 2 + size / 3, size, ink_on(colour), label.c_str());
      text_ += "</g>\n";
    }
    print("<text x=\"%.0f\" y=\"%.1f\">%s</text>\n", left + options_.width + 10, y + options_.row_height / 2 + 4,
          peak_text(timeline_, s).c_str());
  }

  void draw_axis(double y) {
    double step = 1;  // 1, 2, 5, 10, …: at most twelve steps
    while (step * 12 < timeline_.makespan) step *= 10;
    while (step > 0 && timeline_.makespan > 0 && step / 10 * 12 >= timeline_.makespan) step /= 10;
    for (const double finer : {5.0, 2.0})
      if (step / finer * 12 >= timeline_.makespan) {
        step /= finer;
        break;
      }
    for (int i = 0; timeline_.makespan > 0 && i * step <= timeline_.makespan * (1 + 1e-9); ++i)
      print("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" fill=\"#555555\">%.6g</text>\n", x_of(i * step), y + 15, i * step);
  }

  void draw_legend(double y) {
    double x = left;
    const bool splits = has(ActionKind::backward_input);
    for (const ActionKind kind : {ActionKind::forward, ActionKind::backward, ActionKind::backward_input, ActionKind::backward_weight}) {
      if (!has(kind)) continue;
      const char* name = kind == ActionKind::forward          ? "forward"
                         : kind == ActionKind::backward       ? "backward"
                         : kind == ActionKind::backward_input ? "backward, input"
                                                              : "backward, weights";
      for (int pass = 0; pass < table_.shape.chunks_per_stage; ++pass, x += 16) {
        const Colour colour = colour_of(kind, pass);
        print("<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"14\" fill=\"#%02x%02x%02x\"/>\n", x, y, unsigned(colour.red),
              unsigned(colour.green), unsigned(colour.blue));
      }
      print("<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", x + 4, y + 12, name);
      x += 24 + 7 * double(std::string_view(name).size());
    }
    print("<text x=\"%.1f\" y=\"%.1f\">%s%s</text>\n", x + 8, y + 12, timeline_text(timeline_).c_str(),
          splits ? "; in flight: chunks until the input part (weight part) of backward" : "");
  }
  bool has(ActionKind kind) const {
    for (const auto& row : timeline_.rows)
      for (const TimedAction& each : row)
        if (each.action.kind == kind) return true;
    return false;
  }

  const ScheduleTable& table_;
  Timeline timeline_;
  const SvgOptions& options_;
  std::string text_{};
};

inline std::string draw_schedule_svg(const ScheduleTable& table, const ScheduleTimes& times = {}, const SvgOptions& options = {}) {
  return ScheduleSvg(table, times, options).draw();
}

}  // namespace weft
