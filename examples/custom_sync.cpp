// SPDX-License-Identifier: Apache-2.0
// A synchronisation policy of one's own: local SGD (Stich, arXiv 1805.09767). Every replica trains by itself; every `every` updates all
// take the mean of their parameters. The plan's ledger holds what the policy says, and every step is compared with it.
#include <weft/weft.hpp>

#include <cmath>
#include <cstdio>

// [policy]
struct LocalSgd {
  static constexpr const char* name = "local_sgd";
  static constexpr int version = 1;
  static constexpr bool sums_gradients = false;  // each replica updates from its own gradients

  static constexpr void synchronise(weft::SyncStep& step) {
    if (step.number() % step.every() == 0) step.average(weft::Shared::parameters);
  }
};
// [policy]

using Model = weft::Sequential<weft::Linear<1, 32>, weft::Gelu, weft::Linear<32, 32>, weft::Gelu, weft::Linear<32, 1>>;
using Recipe = weft::Recipe<weft::Fp32, weft::MeanSquaredError, weft::Sgd>;
constexpr weft::Batch batch{.global = 64, .micro = 16};

// [plan]
template <weft::Index every>
using Train = weft::Plan<Model, weft::mesh(weft::Replicas<LocalSgd>{.ranks = 4, .every = every}), batch, Recipe>;
using Parallel = weft::Plan<Model, weft::mesh(weft::DataParallel{.ranks = 4}), batch, Recipe>;

// A step with an exchange says as much as one of data parallelism, which has one in every step.
static_assert(Train<8>::ledger(weft::GroupKind::data).bytes_per_step() >= Parallel::ledger(weft::GroupKind::data).bytes_per_step());
static_assert(weft::totals_at(Train<8>::data(), 0, 3).bytes_per_step() == 0, "no exchange in the third step");
// [plan]

// sin(2 x) over [-2, 2), another part for every rank and step.
void fill(weft::Index step, weft::Index replica, weft::MicroBatchInput<float>& micro) {
  for (int i = 0; i < 16; ++i) {
    const double x = double((step * 64 + replica * 16 + i) * 37 % 400) / 100 - 2;
    micro.values()[i] = float(x), micro.real_targets()[i] = float(std::sin(2 * x));
  }
}

// The mean loss of the last 50 of 400 steps, and the bytes of a rank's calls in all of them.
template <class Plan>
void train(const char* name) {
  double loss = 0;
  weft::Index bytes = 0;
  weft::launch(Plan::num_ranks, [&](auto& rank) {
    auto trainer = weft::make_trainer<Plan>(rank, weft::Sgd{.rate = 0.05, .momentum = 0.9});
    weft::GeneratedLoader loader(1, rank.rank(), fill);
    for (int step = 1; step <= 400; ++step) {
      const weft::StepResult result = trainer.step(loader);
      if (rank.rank() != 0) continue;
      loss = step > 350 ? loss + result.loss / 50 : 0;
      bytes += weft::totals_at(trainer.plan(), 0, step).bytes_per_step();
    }
  });
  std::printf("%-24s loss %.5f   %8.1f KiB\n", name, loss, double(bytes) / 1024);
  if (!(loss < 0.05)) throw weft::Error("custom_sync.loss", "the model has not learnt");
}

int main() {
  std::printf("4 replicas, 400 steps: the loss at the end, and what a rank gives to collectives in all steps\n");
  train<Parallel>("data parallel");
  train<Train<1>>("local SGD, every step");
  train<Train<8>>("local SGD, every 8");
  train<Train<32>>("local SGD, every 32");
}
