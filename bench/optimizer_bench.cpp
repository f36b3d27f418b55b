// SPDX-License-Identifier: Apache-2.0
// Update rules over ranges that lie in memory, and in the second-level cache. GB/s = bytes a rule must move / time:
//   SGD: p, g read, p written: 3 numbers an element; with momentum p, g, b read, p, b written: 5; Adam and AdamW: p, g, m, v read,
//   p, m, v written: 7 (28 B an element in float, 56 B in double).
// Held against the triad a = a + s·b, read 2 and written 1: it writes what it has read, as the rules do, so there is no hidden traffic.
// Rule and triad take turns within each round, on arrays of the same size; `of_triad` is the median over rounds of the ratio of GB/s, in
// percent, and `GB/s` that of the rule. One thread. 2^24 elements lie in memory, where the rules run at the triad's speed; 2^14 lie in the
// second-level cache, where Adam's limit is the unit that divides and takes roots: one of each for every register.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include <weft/optim/optim.hpp>
#include <weft/tensor/buffer.hpp>

namespace {

using namespace weft;
using Isa = simd::Native;

template <class Work>
double seconds_of(Index times, Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  for (Index t = 0; t < times; ++t) work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ptrdiff_t(values.size() / 2), values.end());
  return values[values.size() / 2];
}

template <class Real>
void triad(Index n, Real* a, const Real* b, Real s) {
  kernel::cpu::map<Isa>(n, static_cast<const Real*>(a), b, a, [=](auto x, auto y) WEFT_ALWAYS_INLINE { return x + s * y; });
}

template <class Real, class Rule>
void run(benchmark::State& state, Rule rule, Index numbers_moved) {
  const Index n = state.range(0), bytes = n * Index(sizeof(Real));
  Buffer buffers[] = {Buffer(bytes), Buffer(bytes), Buffer(bytes), Buffer(bytes)};
  Real* at[4];
  for (int i = 0; i < 4; ++i) at[i] = buffers[i].template as<Real>();
  for (Index e = 0; e < n; ++e) at[0][e] = Real(1), at[1][e] = Real(0.01) * Real(e % 7 - 3), at[2][e] = at[3][e] = Real(0.1);
  const Index repeats = std::max<Index>(1, (Index(1) << 22) / n);
  UpdateStep step{.rate = 1e-4, .gradient_scale = 0.5, .number = 2};
  std::vector<double> speeds, ratios;
  for (auto _ : state) {
    const double rule_seconds = seconds_of(repeats, [&] {
      rule.template update<Isa>(n, at[0], static_cast<const Real*>(at[1]), static_cast<Real* const*>(at + 2), 0.01, step);
      ++step.number;
      benchmark::ClobberMemory();
    });
    const double triad_seconds = seconds_of(repeats, [&] {
      triad<Real>(n, at[0], at[1], Real(1e-6));
      benchmark::ClobberMemory();
    });
    speeds.push_back(double(numbers_moved * bytes * repeats) / rule_seconds / 1e9);
    ratios.push_back(speeds.back() / (double(3 * bytes * repeats) / triad_seconds / 1e9));
    state.SetIterationTime(rule_seconds);
  }
  state.counters["GB/s"] = median(speeds);
  state.counters["of_triad_%"] = 100 * median(ratios);
  state.counters["ns/elem"] = double(numbers_moved) * double(sizeof(Real)) / median(speeds);
}

template <class Real>
void add_all(const char* type) {
  const std::string suffix = std::string("/") + type;
  const auto add = [&](const char* name, auto rule, Index moved) {
    benchmark::RegisterBenchmark((name + suffix).c_str(), [=](benchmark::State& state) { run<Real>(state, rule, moved); })
        ->Arg(Index(1) << 14)
        ->Arg(Index(1) << 24)
        ->UseManualTime();
  };
  add("sgd", Sgd{}, 3);
  add("sgd_nesterov", Sgd{.momentum = 0.9, .nesterov = true}, 5);
  add("adam", Adam{}, 7);
  add("adamw", AdamW{}, 7);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  add_all<float>("float");
  add_all<double>("double");
  benchmark::RunSpecifiedBenchmarks();
}
