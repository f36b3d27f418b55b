// SPDX-License-Identifier: Apache-2.0
// What strategies cost on two cores: training steps of nanoGPT's GPU configuration (6 layers, 6 heads, width 384, 256 tokens, vocabulary
// 65), 16 windows a step, by two ranks.
//
//   strategies_bench [--steps 2] [--rounds 5] [--only NAME]
//
// Flops of a step: PlanData::training_flops_per_row() · 4096 rows. Each strategy's tokens/s is held against that of data parallelism in the
// same round; the median over rounds counts. The reproducible mode is to be held against "data2, micro-batches of 1". Limits: pipe2 idles
// for (p-1)/(m+p-1) of a step, 1/17 here; tensor2 and zero3_2 send Plan::ledger().bytes_per_step() a rank, which two cores copy through
// their shared memory.
#include <weft/weft.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

using Model = weft::Gpt<weft::GptOptions{.vocabulary = 65, .sequence = 256, .width = 384, .heads = 6, .layers = 6, .bias = false}>;
using Recipe = weft::Recipe<weft::Fp32, weft::SoftmaxCrossEntropy<>, weft::AdamW>;
constexpr weft::Index windows = 16, tokens = windows * 256;

struct Case {
  const char* name;
  weft::Index micro;  // windows
  weft::StrategyData strategy;
};
using weft::DataParallel, weft::Pipeline, weft::TensorParallel, weft::Activations, weft::Shard, weft::mesh, weft::lower_strategy;
namespace schedule = weft::schedule;

const Case cases[] = {
    {"data2", 8, lower_strategy(mesh(DataParallel{.ranks = 2}))},
    {"data2, micro-batches of 1", 1, lower_strategy(mesh(DataParallel{.ranks = 2}))},
    {"pipe2 (1F1B)", 1, lower_strategy(mesh(Pipeline<>{.stages = 2}))},
    {"pipe2 (zero bubble H1)", 1, lower_strategy(mesh(Pipeline<schedule::ZeroBubbleH1>{.stages = 2}))},
    {"pipe2 (interleaved)", 1, lower_strategy(mesh(Pipeline<schedule::Interleaved>{.stages = 2, .chunks = 2}))},
    {"tensor2", 16, lower_strategy(mesh(TensorParallel{.ranks = 2}))},
    {"tensor2, sequence", 16, lower_strategy(mesh(TensorParallel{.ranks = 2, .sequence = true}))},
    {"zero1_2", 8, lower_strategy(mesh(DataParallel{.ranks = 2, .shard = Shard::optimizer}))},
    {"zero3_2", 8, lower_strategy(mesh(DataParallel{.ranks = 2, .shard = Shard::parameters}))},
    {"data2, 8 a rank, reproducible", 1, lower_strategy(mesh(DataParallel{.ranks = 2}, weft::Reproducible{}))},
    {"data2, recompute", 8, lower_strategy(mesh(DataParallel{.ranks = 2}, Activations{.recompute = weft::Recompute::full}))},
};

// Seconds of one step.
double time_step(const Case& one, int steps) {
  const weft::PlanData plan = weft::plan_at_start<Model, Recipe>(one.strategy, {.global = windows, .micro = one.micro, .sequence = 256});
  double seconds = 0;
  weft::launch(2, [&](weft::ThreadCommunicator& comm) {
    using Engine = weft::Engine<weft::Cpu<weft::kernel::cpu::Builtin>, float, weft::ThreadCommunicator, weft::AdamW>;
    const auto code =
        weft::model_code_for<Engine::Kernels, float, Model, weft::SoftmaxCrossEntropy<>, 2>(plan.strategy.tensor(), plan.strategy.sequence);
    Engine engine(plan, code, comm, weft::AdamW{.rate = 1e-4});
    const auto fill = [&](weft::MicroBatchInput<float>& to) {
      for (weft::Index i = 0; i < to.leading.rows(); ++i)
        to.tokens()[i] = std::int32_t((i * 7 + to.number) % 65), to.integer_targets()[i] = std::int32_t((i * 7 + 7) % 65);
    };
    engine.step(plan.micros, fill, 1e-4);
    comm.barrier();
    const double start = now();
    for (int s = 0; s < steps; ++s) engine.step(plan.micros, fill, 1e-4);
    comm.barrier();
    if (comm.rank() == 0) seconds = (now() - start) / steps;
  });
  return seconds;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  int steps = 2, rounds = 5;
  const char* only = nullptr;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--steps") == 0) steps = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--rounds") == 0) rounds = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--only") == 0) only = argv[i + 1];
  }
  constexpr std::size_t count = std::size(cases);
  std::vector<double> seconds[count], ratios[count];
  for (int round = 0; round < rounds; ++round)
    for (std::size_t c = 0; c < count; ++c) {
      if (only && c > 0 && std::strstr(cases[c].name, only) == nullptr) continue;
      seconds[c].push_back(time_step(cases[c], steps));
      ratios[c].push_back(seconds[0].back() / seconds[c].back());
    }
  const double flops =
      weft::plan_at_start<Model, Recipe>(cases[0].strategy, {.global = windows, .micro = 8, .sequence = 256}).training_flops_per_row() *
      double(tokens);
  std::printf("%-28s %10s %10s %10s   %s\n", "strategy", "tokens/s", "GFLOP/s", "of data2", "MiB a rank and step said");
  for (std::size_t c = 0; c < count; ++c) {
    if (seconds[c].empty()) continue;
    const weft::PlanData plan =
        weft::plan_at_start<Model, Recipe>(cases[c].strategy, {.global = windows, .micro = cases[c].micro, .sequence = 256});
    const double s = median(seconds[c]);
    std::printf("%-28s %10.0f %10.1f %9.3f    %.1f\n", cases[c].name, double(tokens) / s, flops / s / 1e9, median(ratios[c]),
                double(weft::totals(plan).bytes) / double(weft::MiB));
  }
}
