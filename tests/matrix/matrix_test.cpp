// SPDX-License-Identifier: Apache-2.0
// Every strategy computes the same training: losses, norms, gradients, parameters and moments of one rank. A few cells by default, such
// that every pair of choices stands in one; all of them with WEFT_MATRIX=full (a table on stdout), a part with WEFT_MATRIX=N/M. For
// sanitizers: WEFT_MATRIX=small, up to 4 ranks and 3 micro-batches, in float64; and a part of these with small/N/M.
#include "matrix/run_cell.hpp"

#include <doctest/doctest.h>

#include <chrono>
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

}  // namespace

TEST_CASE("every_strategy_computes_the_training_of_one_rank") {
  CHECK(reference(8).losses[1] < reference(8).losses[0]);
  const bool speaks = std::getenv("WEFT_MATRIX") != nullptr;
  double worst[2] = {0, 0};
  int count[2] = {0, 0};
  for (const Cell& cell : chosen_cells()) {
    const std::string name = name_of(cell);
    CAPTURE(name);
    const auto start = std::chrono::steady_clock::now();
    const Trained trained = run(cell);
    if (!trained.refused.empty()) {
      FAIL_CHECK("refused: " << trained.refused);
      continue;
    }
    const Difference difference = compare(trained, reference(cell.data * cell.micros));
    CHECK_MESSAGE(difference.worst <= tolerance(cell), difference.where << " differs by " << difference.worst);
    CHECK_MESSAGE(wrong_memory(trained).empty(), wrong_memory(trained));
    worst[int(cell.type)] = std::max(worst[int(cell.type)], difference.worst), ++count[int(cell.type)];
    if (speaks)
      std::printf("%-72s %9.2e  %5.2f s  %s\n", name.c_str(), difference.worst,
                  std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), difference.where.c_str()),
          std::fflush(stdout);
  }
  std::printf("%d cells in float64, worst %.1e; %d in float32, worst %.1e\n", count[0], worst[0], count[1], worst[1]);
}

TEST_CASE("other_data_is_another_training") { CHECK(compare(reference(7), reference(8)).worst > 1e-2); }
