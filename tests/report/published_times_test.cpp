// SPDX-License-Identifier: Apache-2.0
// The simulator against times that others measured on up to 3072 GPUs.
#include "gpt_rows.hpp"

#include <weft/report/simulate.hpp>

#include <doctest/doctest.h>

using namespace weft;

namespace {

// Flops that the papers count: matrix products of the model, with one more forward of the blocks where they are recomputed.
double published_flops(const PlanData& plan, double layers, double h, bool recomputed) {
  const double B = double(plan.batch.global), s = 2048, V = 51200;
  return recomputed ? 96 * B * s * layers * h * h * (1 + s / (6 * h) + V / (16 * layers * h))
                    : 72 * B * s * layers * h * h * (1 + s / (6 * h) + V / (12 * layers * h));
}

struct Outcome {
  Simulation simulation{};
  double teraflops = 0;  // a second and GPU, as the papers count
};

template <Index layers, Index width, Index heads>
Outcome outcome(const PublishedRun& run) {
  const PlanData plan = published_plan<published_gpt(layers, width, heads)>(run);
  Outcome out{simulate(plan, clusters::a100_selene, conventions::megatron)};
  const double flops = published_flops(plan, double(layers), double(width), run.recompute == Recompute::full);
  out.teraflops = flops / out.simulation.step_seconds / double(run.gpus) / 1e12;
  const double own = out.simulation.model_flops + (run.recompute == Recompute::full ? out.simulation.recomputed_flops : 0);
  CHECK(own == doctest::Approx(flops).epsilon(0.004));  // the plan counts norms and the like too
  return out;
}

void within(double found, double published, double tolerance) {
  const double off = found / published - 1;
  CHECK_MESSAGE((off <= tolerance && off >= -tolerance), "found " << found << ", published " << published);
}

}  // namespace

// arXiv 2104.04473, table 1; micro-batches and chunks from that program's examples/sc21/run_table_1.sh. Constants are fitted on these four.
TEST_CASE("published_times_of_the_rows_that_constants_are_fitted_on") {
  within(outcome<24, 2304, 24>({.tensor = 1, .gpus = 32, .global = 512, .micro = 16}).teraflops, 137, 0.04);
  within(outcome<40, 6144, 48>({.tensor = 8, .gpus = 256, .global = 1024, .micro = 8}).teraflops, 135, 0.04);
  within(outcome<60, 10240, 80>({.tensor = 8, .stages = 4, .gpus = 1024, .global = 1792, .micro = 2, .chunks = 3}).teraflops, 140, 0.04);
  within(outcome<105, 20480, 128>({.tensor = 8, .stages = 35, .gpus = 2520, .global = 2520, .micro = 1, .chunks = 3}).teraflops, 163, 0.04);
}

// The two constants are where the squares of these four are least.
TEST_CASE("published_times_are_fitted_best_by_the_constants") {
  const PlanData plans[] = {
      published_plan<published_gpt(24, 2304, 24)>({.tensor = 1, .gpus = 32, .global = 512, .micro = 16}),
      published_plan<published_gpt(40, 6144, 48)>({.tensor = 8, .gpus = 256, .global = 1024, .micro = 8}),
      published_plan<published_gpt(60, 10240, 80)>({.tensor = 8, .stages = 4, .gpus = 1024, .global = 1792, .micro = 2, .chunks = 3}),
      published_plan<published_gpt(105, 20480, 128)>({.tensor = 8, .stages = 35, .gpus = 2520, .global = 2520, .micro = 1, .chunks = 3})};
  const double layers[] = {24, 40, 60, 105}, widths[] = {2304, 6144, 10240, 20480}, published[] = {137, 135, 140, 163};
  const auto squares = [&](double fraction, Index start_k) {
    Cluster cluster = clusters::a100_selene;
    cluster.kernels.product_fraction += fraction, cluster.kernels.tile_start_k += start_k;
    double sum = 0;
    for (int i = 0; i < 4; ++i) {
      const double seconds = simulate(plans[i], cluster, conventions::megatron).step_seconds;
      const double found = published_flops(plans[i], layers[i], widths[i], true) / seconds / double(plans[i].strategy.ranks) / 1e12;
      sum += (found / published[i] - 1) * (found / published[i] - 1);
    }
    return sum;
  };
  const double best = squares(0, 0);
  CHECK(best < 4 * 0.02 * 0.02);
  for (const double fraction : {-0.02, 0.0, 0.02})
    for (const Index start_k : {-64, 0, 64})
      if (fraction != 0 || start_k != 0) CHECK_MESSAGE(squares(fraction, start_k) > best, fraction << " " << start_k);
}

TEST_CASE("published_times_of_the_other_rows_of_the_same_table") {
  within(outcome<30, 3072, 32>({.tensor = 2, .gpus = 64, .global = 512, .micro = 16}).teraflops, 138, 0.1);
  within(outcome<36, 4096, 32>({.tensor = 4, .gpus = 128, .global = 512, .micro = 16}).teraflops, 142, 0.1);
  within(outcome<48, 8192, 64>({.tensor = 8, .stages = 2, .gpus = 512, .global = 1536, .micro = 4}).teraflops, 138, 0.1);
  within(outcome<80, 12288, 96>({.tensor = 8, .stages = 8, .gpus = 1536, .global = 2304, .micro = 2, .chunks = 2}).teraflops, 148, 0.1);
  within(outcome<96, 16384, 128>({.tensor = 8, .stages = 16, .gpus = 1920, .global = 2160, .micro = 1, .chunks = 2}).teraflops, 155, 0.1);
  within(outcome<128, 25600, 160>({.tensor = 8, .stages = 64, .gpus = 3072, .global = 3072, .micro = 1}).teraflops, 163, 0.1);
}

// The same paper, table 2: 175 B with tensor and pipeline parallelism, and with ZeRO-3 instead.
TEST_CASE("published_times_of_175b_scale_as_measured") {
  double both[2][3]{};
  const Index gpus[] = {384, 768, 1536}, micro[] = {4, 2, 1};
  const double published[2][3] = {{153, 149, 141}, {144, 88, 44}};
  for (int i = 0; i < 3; ++i) {
    both[0][i] = outcome<96, 12288, 96>({.tensor = 8, .stages = 12, .gpus = gpus[i], .global = 1536}).teraflops;
    both[1][i] = outcome<96, 12288, 96>({.gpus = gpus[i], .global = 1536, .micro = micro[i], .shard = Shard::parameters}).teraflops;
    for (int way = 0; way < 2; ++way) within(both[way][i], published[way][i], 0.15);
    CHECK(both[0][i] > both[1][i]);
    if (i > 0) CHECK((both[0][i] < both[0][i - 1] && both[1][i] < both[1][i - 1]));
  }
}

// arXiv 2205.05198: sequence parallelism and selective recompute.
TEST_CASE("published_times_of_iterations_with_sequence_parallelism") {
  const Outcome small =
      outcome<48, 6144, 64>({.tensor = 8, .gpus = 8, .global = 4, .micro = 4, .recompute = Recompute::selective, .sequence = true});
  const Outcome large = outcome<96, 12288, 96>(
      {.tensor = 8, .stages = 8, .gpus = 64, .global = 64, .micro = 1, .chunks = 3, .recompute = Recompute::selective, .sequence = true});
  within(small.simulation.step_seconds, 1.10, 0.15);
  within(large.simulation.step_seconds, 13.75, 0.15);
  CHECK(large.teraflops > small.teraflops);
  within(small.simulation.model_flops_per_rank() / 312e12, 0.415, 0.15);
  within(large.simulation.model_flops_per_rank() / 312e12, 0.514, 0.15);
  within(small.simulation.flops_per_rank() / 312e12, 0.437, 0.15);
  within(large.simulation.flops_per_rank() / 312e12, 0.528, 0.15);
}

// The same paper: one layer of the 22 B model, 8 tensor ranks, micro-batch 4.
TEST_CASE("published_times_of_one_layer") {
  struct Layer {
    double forward, backward, again;  // milliseconds
  };
  const auto layer = [](Recompute recompute, bool sequence) {
    const PlanData plan = published_plan<published_gpt(48, 6144, 64)>(
        {.tensor = 8, .gpus = 8, .global = 4, .micro = 4, .recompute = recompute, .sequence = sequence});
    int block = 0;
    while (plan.graph.frames[std::size_t(block)].count == 1) ++block;
    const GroupRoutes routes(plan, clusters::a100_selene);
    const FrameSeconds s = FrameClock(plan, block, clusters::a100_selene, conventions::megatron, routes[GroupKind::tensor]).seconds();
    return Layer{1e3 * (s.forward + s.forward_exposed), 1e3 * (s.backward_input + s.backward_weight + s.backward_exposed),
                 1e3 * s.recomputed};
  };
  const Layer plain = layer(Recompute::none, false), sequence = layer(Recompute::none, true);
  within(plain.forward, 7.7, 0.15);
  within(plain.backward, 11.9, 0.15);
  within(sequence.forward, 7.2, 0.15);
  within(sequence.backward, 11.8, 0.15);
  CHECK((sequence.forward < plain.forward && sequence.backward < plain.backward));
  const double full = layer(Recompute::full, false).backward - plain.backward;
  const double selective = layer(Recompute::selective, false).backward - plain.backward;
  within(full, 7.6, 0.15);
  within(selective, 1.3, 0.15);
}
