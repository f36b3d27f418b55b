// SPDX-License-Identifier: Apache-2.0
// Schedules in the csv syntax of PyTorch's torch.distributed.pipelining: a line a rank, a cell an action, "2F0,2SEND_F0,,2B0". What is a
// stage there is a chunk here. A table that was read drives a plan as TablePipeline{.table = &table}.
#pragma once

#include <cstdio>
#include <memory>
#include <string_view>

#include "weft/base/error.hpp"
#include "weft/schedule/state.hpp"
#include "weft/schedule/text.hpp"

namespace weft {

class ScheduleReader {
 public:
  explicit ScheduleReader(std::string_view text) : text_(text) {}

  ScheduleTable read() {
    while (!text_.empty() && (text_.back() == '\n' || text_.back() == '\r')) text_.remove_suffix(1);
    if (text_.empty()) throw Error("schedule.csv", "a schedule has a line for every rank; the text is empty");
    std::string_view rest = text_;
    for (bool more = true; more; ++rank_) {
      const std::size_t end = rest.find('\n');
      more = end != rest.npos;
      read_line(rest.substr(0, end));
      if (more) rest.remove_prefix(end + 1);
    }
    place_chunks();
    return std::move(table_);
  }

 private:
  static constexpr int most = 999'999;  // of chunks and micro-batches

  [[noreturn]] void refuse(std::string_view cell, std::string_view expected) const {
    throw Error("schedule.csv",
                text_of("a cell is a chunk, a kind and a micro-batch, such as 2F0, 0RECV_B3, 1UNSHARD, or empty; fix it (line ", rank_ + 1,
                        ", cell ", cell_ + 1, ": \"", cell, "\"; expected ", expected, ")"));
  }

  void read_line(std::string_view line) {
    table_.rows.push_back({});
    for (cell_ = 0;; ++cell_) {
      const std::size_t end = line.find(',');
      read_cell(trimmed(line.substr(0, end)));
      if (end == line.npos) return;
      line.remove_prefix(end + 1);
    }
  }
  static std::string_view trimmed(std::string_view cell) {
    constexpr std::string_view blank = " \t\r\"";
    while (!cell.empty() && blank.find(cell.front()) != blank.npos) cell.remove_prefix(1);
    while (!cell.empty() && blank.find(cell.back()) != blank.npos) cell.remove_suffix(1);
    return cell;
  }

  // "(3F1;0B0)OVERLAP_F_B": two actions at once there, one after the other here.
  void read_cell(std::string_view cell) {
    if (cell.empty()) return;
    if (cell.front() != '(') return read_action(cell, cell);
    const std::size_t close = cell.find(')');
    if (close == cell.npos || cell.substr(close + 1) != "OVERLAP_F_B") refuse(cell, "OVERLAP_F_B behind the actions in brackets");
    for (std::string_view rest = cell.substr(1, close - 1);;) {
      const std::size_t end = rest.find(';');
      read_action(trimmed(rest.substr(0, end)), cell);
      if (end == rest.npos) return;
      rest.remove_prefix(end + 1);
    }
  }

  void read_action(std::string_view text, std::string_view cell) {
    Action action{ActionKind::forward, number(text, cell, "the number of a chunk first"), -1};
    std::size_t length = 0;
    while (length < text.size() && (text[length] == '_' || (text[length] >= 'A' && text[length] <= 'Z'))) ++length;
    int kind = 0;
    while (kind <= int(ActionKind::reduce_gradients) && text.substr(0, length) != symbol_of(ActionKind(kind))) ++kind;
    if (kind > int(ActionKind::reduce_gradients))
      refuse(cell, "one of F, B, I, W, SEND_F, RECV_F, SEND_B, RECV_B, UNSHARD, RESHARD, REDUCE_GRAD behind the chunk");
    action.kind = ActionKind(kind);
    text.remove_prefix(length);
    const bool of_micro_batch = action.kind < ActionKind::gather;
    if (of_micro_batch) action.micro = number(text, cell, "the number of a micro-batch behind the kind");
    if (!text.empty()) refuse(cell, of_micro_batch ? "nothing behind the micro-batch" : "nothing behind the kind");
    table_.rows.back().push_back(action);
  }

  // Takes a number off the front.
  int number(std::string_view& text, std::string_view cell, std::string_view expected) const {
    int value = 0;
    std::size_t length = 0;
    for (; length < text.size() && text[length] >= '0' && text[length] <= '9'; ++length) {
      value = 10 * value + (text[length] - '0');
      if (value > most) refuse(cell, "numbers of at most six digits");
    }
    if (length == 0) refuse(cell, expected);
    text.remove_prefix(length);
    return value;
  }

  // The shape, from what was met. A chunk is where it goes forward.
  void place_chunks() {
    int num_chunks = 0, micros = 0;
    for (const ActionRow& row : table_.rows)
      for (const Action& action : row) {
        num_chunks = action.chunk >= num_chunks ? action.chunk + 1 : num_chunks;
        micros = action.micro >= micros ? action.micro + 1 : micros;
      }
    const int stages = int(table_.rows.size());
    if (num_chunks == 0 || num_chunks % stages != 0)
      throw Error("schedule.csv_chunks", text_of("every rank holds as many chunks of the model; add or remove ranks or chunks (ranks ",
                                                 stages, ", chunks ", num_chunks, ")"));
    table_.shape = {stages, num_chunks / stages, micros};
    table_.stage_of_chunk.assign(std::size_t(num_chunks), -1);
    for (int s = 0; s < stages; ++s)
      for (const Action& action : table_.rows[std::size_t(s)])
        if (int& stage = table_.stage_of_chunk[std::size_t(action.chunk)]; action.kind == ActionKind::forward && stage < 0) stage = s;
    for (int c = 0; c < num_chunks; ++c)
      if (table_.stage_of_chunk[std::size_t(c)] < 0)
        throw Error("schedule.csv_chunks",
                    text_of("every chunk goes forward on some rank; add its actions (chunk ", c, " of ", num_chunks, ")"));
  }

  std::string_view text_;
  ScheduleTable table_{};
  int rank_ = 0, cell_ = 0;
};

// Not yet proved: verify() and plan_at_start do that. Errors: weft[schedule.csv] (names line and cell, from 1), weft[schedule.csv_chunks].
inline ScheduleTable schedule_from_csv(std::string_view text) { return ScheduleReader(text).read(); }

enum class IdleCells : char { no, yes };

// The table as text. IdleCells::yes: all actions take a column, and a rank that waits has an empty cell (of proved tables without
// messages).
inline std::string schedule_to_csv(const ScheduleTable& table, IdleCells idle = IdleCells::no) {
  const std::size_t ranks = table.rows.size();
  std::vector<std::string> lines(ranks);
  std::vector<std::size_t> next(ranks, 0);
  ScheduleState state(table, false);
  const bool waits = idle == IdleCells::yes && !table.has_messages();
  for (std::size_t column = 0, num_left = 1; num_left > 0; ++column) {
    num_left = 0;
    std::vector<const Action*> done;
    for (std::size_t r = 0; r < ranks; ++r) {
      if (next[r] == table.rows[r].size()) continue;
      if (column > 0) lines[r] += ',';
      const Action& action = table.rows[r][next[r]];
      if (!waits || action.micro < 0 || state.is_ready(action)) {
        lines[r] += action_text(action);
        if (waits && action.micro >= 0) done.push_back(&action);
        ++next[r], ++num_left;
      }
    }
    for (const Action* action : done) state.finish(*action);
  }
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

// Errors: weft[schedule.file], and those of schedule_from_csv.
inline ScheduleTable read_schedule_csv(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) throw Error("schedule.file", "the file of a schedule cannot be read; check its name (" + path + ")");
  std::string text;
  char block[4096];
  for (std::size_t count = 0; (count = std::fread(block, 1, sizeof block, file.get())) > 0;) text.append(block, count);
  return schedule_from_csv(text);
}

// Writes text, such as schedule_to_csv or draw_schedule_svg gives, to a file. Errors: weft[schedule.file].
inline void write_schedule_file(const std::string& path, std::string_view text) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  const bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = file && std::fclose(file) == 0;
  if (!written || !closed)
    throw Error("schedule.file", "the file of a schedule cannot be written; check its folder and the space there (" + path + ")");
}

}  // namespace weft
