// SPDX-License-Identifier: Apache-2.0
// The reproducible mode: the same bits in losses, norms, gradients and parameters for every layout of the same global micro-batches.
#include "matrix/run_cell.hpp"

#include <weft/base/exact_sum.hpp>
#include <weft/base/hash.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>

using namespace weft;
using namespace weft::test;

namespace {

Trained run(const Cell& cell) { return cell.type == TypeChoice::f64 ? run_cell<double>(cell) : run_cell<float>(cell); }

std::uint64_t bits_of(const std::vector<double>& values, std::uint64_t hash = 0xcbf29ce484222325u) {
  for (double value : values) {
    const auto bits = std::bit_cast<std::uint64_t>(value == 0 ? 0.0 : value);  // the sign of zero is lost where zeros are added
    for (int byte = 0; byte < 8; ++byte) hash = (hash ^ (bits >> (8 * byte) & 0xff)) * 0x100000001b3u;
  }
  return hash;
}
std::uint64_t bits_of(const std::vector<Trained::Tensor>& tensors) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const Trained::Tensor& tensor : tensors) hash = bits_of(tensor.data, hash);
  return hash;
}

// All layouts of `micros` global micro-batches over up to `most_ranks` ranks, but for tensor ranks.
std::vector<Cell> layouts(int micros, int most_ranks, TypeChoice type) {
  std::vector<Cell> cells;
  for (const NumberedCell& numbered : numbered_cells(most_ranks)) {
    Cell cell = numbered.cell;
    if (cell.tensor > 1 || cell.type != type || cell.micros != 1 || micros % cell.data != 0) continue;
    cell.micros = micros / cell.data, cell.reproducible = true;
    if (cell.schedule == ScheduleChoice::interleaved && cell.micros % cell.stages != 0) continue;
    cells.push_back(cell);
  }
  return cells;
}

void compare_layouts(int micros, int most_ranks, TypeChoice type, std::size_t every) {
  const Trained one = run({.micros = micros, .type = type, .reproducible = true});
  REQUIRE(one.refused.empty());
  int count = 0;
  const std::vector<Cell> cells = layouts(micros, most_ranks, type);
  for (std::size_t c = 0; c < cells.size(); c += every) {
    const std::string name = name_of(cells[c]);
    CAPTURE(name);
    const Trained trained = run(cells[c]);
    CHECK(trained.refused.empty());
    CHECK(bits_of(trained.losses) == bits_of(one.losses));
    CHECK(bits_of(trained.norms) == bits_of(one.norms));
    CHECK(bits_of(trained.gradients) == bits_of(one.gradients));
    CHECK(bits_of(trained.parameters) == bits_of(one.parameters));
    CHECK(bits_of(trained.first_moments) == bits_of(one.first_moments));
    ++count;
  }
  MESSAGE(count << " of " << cells.size() << " layouts of " << micros << " micro-batches");
  CHECK(count > 5);
}

}  // namespace

TEST_CASE("the_same_bits_for_every_layout_in_float64") {
  const std::size_t every = std::getenv("WEFT_MATRIX") ? 1 : 17;
  compare_layouts(12, 8, TypeChoice::f64, every);
  compare_layouts(8, 8, TypeChoice::f64, every);
}
TEST_CASE("the_same_bits_for_every_layout_in_float32") {
  const std::size_t every = std::getenv("WEFT_MATRIX") ? 1 : 13;
  compare_layouts(12, 8, TypeChoice::f32, every);
  compare_layouts(10, 8, TypeChoice::f32, every);
}

TEST_CASE("without_the_mode_the_bits_differ") {
  const Trained one = run({.micros = 12, .type = TypeChoice::f32}), three = run({.data = 3, .micros = 4, .type = TypeChoice::f32});
  CHECK(bits_of(one.parameters) != bits_of(three.parameters));
}

TEST_CASE("the_mode_computes_the_same_training") {
  const Trained usual = run({.data = 2, .micros = 4}), fixed = run({.data = 2, .micros = 4, .reproducible = true});
  for (std::size_t s = 0; s < usual.losses.size(); ++s) {
    CHECK(std::abs(usual.losses[s] - fixed.losses[s]) < 1e-12);
    CHECK(std::abs(usual.norms[s] - fixed.norms[s]) < 1e-12);
  }
}

TEST_CASE("what_the_mode_does_not_cover_is_refused") {
  CHECK(run({.tensor = 2, .micros = 2, .reproducible = true}).refused == "reproducible.tensor");
}

TEST_CASE("exact_sums_do_not_depend_on_the_order") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> values;
    for (int i = 0; i < 300; ++i)
      values.push_back(
          std::ldexp(double(random() >> 11) - double(std::uint64_t(1) << 52), int(random() % 400) - 250 - int(round % 3 == 0) * 700));
    ExactSum all, shuffled, parts[3];
    long double plain = 0;
    for (double value : values) all.add(value), plain += value;
    std::shuffle(values.begin(), values.end(), random);
    for (double value : values) shuffled.add(value), parts[random() % 3].add(value);
    CHECK(all.value() == shuffled.value());
    double stored[3][ExactSum::num_limbs], sum[ExactSum::num_limbs]{};
    for (int p = 0; p < 3; ++p) {
      parts[p].store(stored[p]);
      for (int i = 0; i < ExactSum::num_limbs; ++i) sum[i] += stored[p][i];
    }
    CHECK(ExactSum::load(sum).value() == all.value());
    if (round % 3 != 0) CHECK(std::abs(all.value() - double(plain)) <= 1e-9 * std::abs(double(plain)) + 1e-300);
  }
  ExactSum sum;  // what a plain sum loses
  for (double value : {1.0, 1e100, 1.0, -1e100}) sum.add(value);
  CHECK(sum.value() == 2);
  ExactSum tiny;
  for (double value : {5e-324, 5e-324, -1.0, 1.0}) tiny.add(value);
  CHECK(tiny.value() == 1e-323);
  ExactSum halfway;  // 2^53 + 1 is rounded to even; with a little more, up
  for (double value : {9007199254740992.0, 1.0}) halfway.add(value);
  CHECK(halfway.value() == 9007199254740992.0);
  halfway.add(1e-30);
  CHECK(halfway.value() == 9007199254740994.0);
  ExactSum negative;
  for (double value : {-3.0, 1.5}) negative.add(value);
  CHECK(negative.value() == -1.5);
  ExactSum broken;
  broken.add(INFINITY);
  CHECK(std::isnan(broken.value()));
}
