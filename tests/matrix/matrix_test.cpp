// SPDX-License-Identifier: Apache-2.0
// Every strategy computes the same training: losses, norms, gradients, parameters and moments of one rank. A few cells by default, such
// that every pair of choices stands in one; all of them with WEFT_MATRIX=full (a table on stdout), a part with WEFT_MATRIX=N/M. For
// sanitizers: WEFT_MATRIX=small, up to 4 ranks and 3 micro-batches, in float64; and a part of these with small/N/M.
#include "matrix/run_cell.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <map>

using namespace weft;
using namespace weft::test;

namespace {

Trained run(const Cell& cell) { return cell.type == TypeChoice::f64 ? run_cell<double>(cell) : run_cell<float>(cell); }

// One rank, all items at once, in float64: what everything is held against. By the size of the global batch.
const Trained& reference(int items) {
  static std::map<int, Trained> known;
  Trained& trained = known[items];
  if (trained.losses.empty()) trained = run_cell<double>(Cell{.micros = items});
  return trained;
}

struct Difference {
  double worst = 0;  // largest |a - b| / largest |b|
  std::string where{};

  void see(double difference, const std::string& what) {
    if (!(difference <= worst)) worst = difference, where = what;
  }
};

void compare(Difference& out, const std::vector<Trained::Tensor>& a, const std::vector<Trained::Tensor>& b, const std::string& what) {
  if (a.size() != b.size()) return out.see(INFINITY, what + ": other tensors");
  for (std::size_t t = 0; t < a.size(); ++t) {
    if (a[t].path != b[t].path || a[t].data.size() != b[t].data.size()) return out.see(INFINITY, what + " " + a[t].path);
    double largest = 1e-300, worst = 0;
    for (double value : b[t].data) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < a[t].data.size(); ++i) {
      const double difference = std::abs(a[t].data[i] - b[t].data[i]);
      if (!(difference <= worst)) worst = difference;
    }
    out.see(worst / largest, what + " " + a[t].path);
  }
}

Difference compare(const Trained& trained, const Trained& one) {
  Difference out;
  for (std::size_t s = 0; s < one.losses.size(); ++s) {
    out.see(std::abs(trained.losses[s] - one.losses[s]) / std::abs(one.losses[s]), "loss");
    out.see(std::abs(trained.norms[s] - one.norms[s]) / std::abs(one.norms[s]), "norm");
  }
  compare(out, trained.gradients, one.gradients, "gradient");
  compare(out, trained.parameters, one.parameters, "parameter");
  compare(out, trained.first_moments, one.first_moments, "moment");
  return out;
}

// Which arenas of which stages were not used to their last byte.
std::string wrong_memory(const Trained& trained) {
  constexpr const char* names[] = {"activations", "live", "boundaries", "workspace", "messages", "inputs"};
  std::string text;
  for (std::size_t s = 0; s < trained.memory.size(); ++s)
    for (std::size_t a = 0; a < 6; ++a)
      if (const auto& used = trained.memory[s][a]; used.measured != used.planned)
        text += "stage " + std::to_string(s) + " " + names[a] + " " + std::to_string(used.measured) + " of " +
                std::to_string(used.planned) + "; ";
  return text;
}

double tolerance(const Cell& cell) { return cell.type == TypeChoice::f64 ? 1e-10 : 1e-4; }

std::vector<Cell> chosen_cells() {
  const char* wanted = std::getenv("WEFT_MATRIX");
  if (wanted == nullptr) return covering_cells(8);
  std::vector<Cell> cells;
  int part = 0, parts = 1;
  if (const std::string text = wanted; text.starts_with("small")) {
    std::sscanf(wanted, "small/%d/%d", &part, &parts);
    int number = 0;
    for (const Cell& cell : covering_cells(4))
      if (cell.micros <= 3 && cell.type == TypeChoice::f64 && number++ % parts == part) cells.push_back(cell);
    return cells;
  }
  if (std::sscanf(wanted, "%d/%d", &part, &parts) != 2) part = 0, parts = 1;
  const std::vector<NumberedCell> all = numbered_cells(16);
  for (std::size_t i = std::size_t(part); i < all.size(); i += std::size_t(parts)) cells.push_back(all[i].cell);
  return cells;
}

// What came out, by schedule and sharding, as a table for bench/README.md.
class Summary {
 public:
  void add(const Cell& cell, double worst) {
    Entry& entry = entries_[int(cell.type)][int(cell.schedule)][int(cell.shard)];
    ++entry.cells, entry.worst = std::max(entry.worst, worst);
  }
  void print_totals() const {
    for (const TypeChoice type : {TypeChoice::f64, TypeChoice::f32}) {
      Entry all;
      for (const auto& row : entries_[int(type)])
        for (const Entry& entry : row) all.cells += entry.cells, all.worst = std::max(all.worst, entry.worst);
      std::printf("%d cells in %s, worst %.1e\n", all.cells, type == TypeChoice::f64 ? "float64" : "float32", all.worst);
    }
  }
  void print_table() const {
    for (const TypeChoice type : {TypeChoice::f64, TypeChoice::f32}) {
      std::printf("\n| %s: cells, worst | no sharding | optimizer | gradients | parameters |\n| --- | --- | --- | --- | --- |\n",
                  type == TypeChoice::f64 ? "float64" : "float32");
      for (int schedule = 0; schedule < 7; ++schedule) {
        std::printf("| %s |", schedule == 0 ? "no pipeline" : name_of(ScheduleChoice(schedule)));
        for (const Entry& entry : entries_[int(type)][schedule]) std::printf(" %d, %.1e |", entry.cells, entry.worst);
        std::printf("\n");
      }
    }
  }

 private:
  struct Entry {
    int cells = 0;
    double worst = 0;
  };
  Entry entries_[2][7][4]{};
};

}  // namespace

TEST_CASE("every_strategy_computes_the_training_of_one_rank") {
  CHECK(reference(8).losses[1] < reference(8).losses[0]);
  const bool speaks = std::getenv("WEFT_MATRIX") != nullptr;
  Summary summary;
  for (const Cell& cell : chosen_cells()) {
    const std::string name = name_of(cell);
    CAPTURE(name);
    const Trained trained = run(cell);
    if (!trained.refused.empty()) {
      FAIL_CHECK("refused: " << trained.refused);
      continue;
    }
    const Difference difference = compare(trained, reference(cell.data * cell.micros));
    CHECK_MESSAGE(difference.worst <= tolerance(cell), difference.where << " differs by " << difference.worst);
    CHECK_MESSAGE(wrong_memory(trained).empty(), wrong_memory(trained));
    summary.add(cell, difference.worst);
    if (speaks) std::printf("%-80s %9.2e  %s\n", name.c_str(), difference.worst, difference.where.c_str()), std::fflush(stdout);
  }
  if (speaks) summary.print_table();
  summary.print_totals();
}

TEST_CASE("other_data_is_another_training") { CHECK(compare(reference(7), reference(8)).worst > 1e-2); }
