// SPDX-License-Identifier: Apache-2.0
// The matrix of strategies: what can be chosen, which combinations are legal, all of them, and few that cover every legal pair of choices.
#pragma once

#include <weft/plan.hpp>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

namespace weft::test {

enum class ScheduleChoice : int { none, gpipe, one_forward_one_backward, interleaved, zero_bubble_h1, zero_bubble_h2, zero_bubble_v };
enum class OrderChoice : int { data_first, pipe_first, tensor_first };
enum class TypeChoice : int { f64, f32 };

// One strategy, and the number of micro-batches of every data rank.
struct Cell {
  int data = 1, stages = 1, tensor = 1;
  ScheduleChoice schedule = ScheduleChoice::none;
  Shard shard = Shard::none;
  int replicas = 1;  // of what is sharded
  bool sequence = false;
  Recompute recompute = Recompute::none;
  int micros = 1;
  OrderChoice order = OrderChoice::data_first;
  TypeChoice type = TypeChoice::f64;
  bool reproducible = false;

  int ranks() const { return data * stages * tensor; }
  int chunks() const { return schedule == ScheduleChoice::interleaved || schedule == ScheduleChoice::zero_bubble_v ? 2 : 1; }
  bool splits_backward() const { return schedule >= ScheduleChoice::zero_bubble_h1; }
  bool operator==(const Cell&) const = default;
};

inline const char* name_of(ScheduleChoice schedule) {
  constexpr const char* names[] = {"", "gpipe", "1f1b", "interleaved", "zbh1", "zbh2", "zbv"};
  return names[int(schedule)];
}
inline std::string name_of(const Cell& cell) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : " ") + part; };
  if (cell.data > 1) add("data" + std::to_string(cell.data));
  if (cell.stages > 1) add("pipe" + std::to_string(cell.stages) + "/" + name_of(cell.schedule));
  if (cell.tensor > 1) add("tensor" + std::to_string(cell.tensor) + (cell.sequence ? "/sequence" : ""));
  if (cell.shard != Shard::none) add("zero" + std::to_string(int(cell.shard)) + (cell.replicas > 1 ? "/hybrid" : ""));
  if (cell.recompute != Recompute::none) add(cell.recompute == Recompute::full ? "recompute" : "recompute/selective");
  if (cell.order != OrderChoice::data_first) add(cell.order == OrderChoice::pipe_first ? "pipe outermost" : "tensor outermost");
  add("m" + std::to_string(cell.micros));
  add(cell.type == TypeChoice::f64 ? "f64" : "f32");
  return text;
}

// What makes no sense, or says the same as another cell.
inline bool is_legal(const Cell& c, int most_ranks) {
  if (c.ranks() > most_ranks) return false;
  if ((c.stages > 1) != (c.schedule != ScheduleChoice::none)) return false;
  if (c.schedule == ScheduleChoice::interleaved && c.micros % c.stages != 0) return false;
  if (c.splits_backward() && c.recompute != Recompute::none) return false;
  if (c.shard != Shard::none && c.data == 1) return false;
  if (c.replicas > 1 && (c.shard == Shard::none || c.data % c.replicas != 0 || c.data == c.replicas)) return false;
  if (c.sequence && c.tensor == 1) return false;
  const bool several_axes = (c.data > 1) + (c.stages > 1) + (c.tensor > 1) >= 2;
  return several_axes || c.order == OrderChoice::data_first;
}

// The choices of every factor, by number.
inline constexpr int num_factors = 11;
inline int num_choices(int factor) {
  constexpr int counts[num_factors] = {5, 5, 5, 7, 4, 2, 2, 3, 5, 3, 2};
  return counts[factor];
}
inline Cell cell_of(const int (&choice)[num_factors]) {
  constexpr int degrees[] = {1, 2, 3, 4, 8}, micros[] = {1, 2, 3, 5, 8};
  return {degrees[choice[0]], degrees[choice[1]],   degrees[choice[2]], ScheduleChoice(choice[3]), Shard(choice[4]),      choice[5] + 1,
          choice[6] == 1,     Recompute(choice[7]), micros[choice[8]],  OrderChoice(choice[9]),    TypeChoice(choice[10])};
}

struct NumberedCell {
  Cell cell;
  int choice[num_factors];
};
inline std::vector<NumberedCell> numbered_cells(int most_ranks) {
  std::vector<NumberedCell> out;
  int choice[num_factors]{};
  while (true) {
    const Cell cell = cell_of(choice);
    if (is_legal(cell, most_ranks)) {
      out.push_back({cell, {}});
      std::copy(std::begin(choice), std::end(choice), std::begin(out.back().choice));
    }
    int f = 0;
    for (; f < num_factors && ++choice[f] == num_choices(f); ++f) choice[f] = 0;
    if (f == num_factors) return out;
  }
}
inline int pair_number(const int (&choice)[num_factors], int a, int b) { return ((a * num_factors + b) * 8 + choice[a]) * 8 + choice[b]; }

// A few of the cells such that every pair of choices that stands in some legal cell stands in one of these: greedily, the cell with most
// new pairs first, among a sample that moves on (so that the same list comes out everywhere).
inline std::vector<Cell> covering_cells(int most_ranks) {
  const std::vector<NumberedCell> all = numbered_cells(most_ranks);
  const auto pairs_of = [](const NumberedCell& cell, const auto& visit) {
    for (int a = 0; a < num_factors; ++a)
      for (int b = a + 1; b < num_factors; ++b) visit(pair_number(cell.choice, a, b));
  };
  std::set<int> open;
  for (const NumberedCell& cell : all) pairs_of(cell, [&](int pair) { open.insert(pair); });
  std::vector<Cell> out;
  for (std::size_t start = 0; !open.empty(); start = (start + 7919) % all.size()) {
    const NumberedCell* best = nullptr;
    int most = 0;
    for (std::size_t i = start % 97; i < all.size(); i += 97) {
      int fresh = 0;
      pairs_of(all[i], [&](int pair) { fresh += open.count(pair) > 0; });
      if (fresh > most) most = fresh, best = &all[i];
    }
    if (best == nullptr) continue;
    pairs_of(*best, [&](int pair) { open.erase(pair); });
    out.push_back(best->cell);
  }
  return out;
}

}  // namespace weft::test
