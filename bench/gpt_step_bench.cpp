// SPDX-License-Identifier: Apache-2.0
// A training step of nanoGPT's CPU configuration (4 layers, 4 heads, width 128, 64 tokens, batch 12, vocabulary 65) on one core and on two,
// held against the time of its own matrix products and against two ranks that do not communicate.
//
//   gpt_step_bench [--steps 100] [--rounds 5]
//
// Flops of a step: PlanData::training_flops_per_row() · 768 rows. Limits: the core's multiply-add peak, measured in the same run; the
// products of the step, timed in place (a policy around the products policy reads the clock); attention's products at the rate that the
// same run reaches on the step's other products. Everything is printed as ratios within a round; the median over rounds counts.
#include <weft/weft.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using Clock = std::chrono::steady_clock;
double now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

thread_local double product_seconds = 0, product_flops = 0;

// Another products policy, with a clock around every call.
template <class Inner>
struct Timed {
  static constexpr const char* name = Inner::name;
  struct Clocked {
    double start = now();
    explicit Clocked(double flops) { product_flops += flops; }
    ~Clocked() { product_seconds += now() - start; }
  };
  template <class Isa, class Real, class... A>
  static void gemm(weft::kernel::Transpose ta, weft::kernel::Transpose tb, weft::Index m, weft::Index n, weft::Index k, A... a) {
    const Clocked clock(2.0 * double(m) * double(n) * double(k));
    Inner::template gemm<Isa, Real>(ta, tb, m, n, k, a...);
  }
  template <class Isa, class Real, class... A>
  requires requires(A... a) {
    Inner::template gemm_add<Isa, Real>(weft::kernel::Transpose::no, weft::kernel::Transpose::no, 0, 0, 0, a...);
  }
  static void gemm_add(weft::kernel::Transpose ta, weft::kernel::Transpose tb, weft::Index m, weft::Index n, weft::Index k, A... a) {
    const Clocked clock(2.0 * double(m) * double(n) * double(k));
    Inner::template gemm_add<Isa, Real>(ta, tb, m, n, k, a...);
  }
};

using Model = weft::Gpt<weft::GptOptions{.vocabulary = 65, .sequence = 64, .width = 128, .heads = 4, .layers = 4}>;
using Recipe = weft::Recipe<weft::Fp32, weft::SoftmaxCrossEntropy<>, weft::AdamW>;
constexpr weft::Index rows = 768;
constexpr double attention_flops = 4 * 3.5 * 2.0 * 64 * 128 * rows;  // layers · (forward + backward) · causal 2·S·C a row

struct Result {
  double seconds = 0, products = 0, flops = 0;
};

// `ranks` ranks of 12 windows each; `connected`: they train together, else each for itself.
template <class Products>
Result steps(int ranks, bool connected, int count) {
  Result result;
  const auto plan = weft::plan_at_start<Model, Recipe>(weft::mesh(weft::DataParallel{.ranks = connected ? ranks : 1}),
                                                       {.global = connected ? 12 * ranks : 12, .micro = 12, .sequence = 64});
  weft::launch(ranks, [&](auto& comm) {
    auto own = comm.split(connected ? 0 : comm.rank(), comm.rank());
    auto trainer = weft::make_trainer<Model, Recipe, weft::Cpu<Products>>(plan, own, weft::AdamW{.rate = 1e-3}, weft::ConstantRate{},
                                                                          {.clip_norm = 1});
    weft::GeneratedLoader data(1, comm.rank(), [](weft::Index step, int rank, auto& micro) {
      for (int i = 0; i < rows; ++i)
        micro.tokens()[i] = int((step * 31 + rank * 7 + i * 13) % 65),
        micro.integer_targets()[i] = int((step * 31 + rank * 7 + i * 13 + 5) % 65);
    });
    for (int i = 0; i < 5; ++i) trainer.step(data);
    comm.barrier();
    product_seconds = product_flops = 0;
    const double start = now();
    for (int i = 0; i < count; ++i) trainer.step(data);
    comm.barrier();
    if (comm.rank() == 0) result = {(now() - start) / count, product_seconds / count, product_flops / count};
  });
  return result;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  int count = 100, rounds = 5;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--steps") == 0) count = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--rounds") == 0) rounds = std::atoi(argv[i + 1]);
  }
  using Products = weft::kernel::cpu::Builtin;
  const double peak = weft::measure_peak_flops<weft::simd::Native, float>(0.2);
  const double flops =
      weft::plan_at_start<Model, Recipe>(weft::mesh(), {.global = 12, .micro = 12, .sequence = 64}).training_flops_per_row() * double(rows);
  std::printf("isa %s, products %s, peak of a core %.1f GFLOP/s, %.2f GFLOP a step\n", weft::simd::Native::name, Products::name, peak / 1e9,
              flops / 1e9);
  std::vector<double> over_products, scaling, one_ms;
  for (int round = 0; round < rounds; ++round) {
    const Result one = steps<Products>(1, false, count), timed = steps<Timed<Products>>(1, false, count);
    const Result apart = steps<Products>(2, false, count), together = steps<Products>(2, true, count);
    const double attention = attention_flops / (timed.flops / timed.products);
    over_products.push_back(timed.seconds / (timed.products + attention));
    scaling.push_back(apart.seconds / together.seconds);
    one_ms.push_back(one.seconds * 1e3);
    std::printf(
        "round %d: one rank %.2f ms, %.0f tokens/s, %.0f %% of peak | products in place %.2f ms (%.1f GFLOP/s) + attention's %.2f ms: step / products %.3f"
        " | two ranks apart %.2f ms, together %.2f ms: %.3f of their tokens/s\n",
        round, one.seconds * 1e3, double(rows) / one.seconds, 100 * flops / one.seconds / peak, timed.products * 1e3,
        timed.flops / timed.products / 1e9, attention * 1e3, over_products.back(), apart.seconds * 1e3, together.seconds * 1e3,
        scaling.back());
    std::fflush(stdout);
  }
  std::printf("median: step_ms %.2f step_over_products %.3f (goal at most 1.2) together_over_apart %.3f (goal at least 0.92)\n",
              median(one_ms), median(over_products), median(scaling));
}
