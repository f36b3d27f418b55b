// SPDX-License-Identifier: Apache-2.0
// Plans GPT-3 and a model three times as large for machines that are not here: what a rank holds, what crosses which link, how long a step
// takes. Nothing is trained and no GPU is needed.
#include <cstdio>

#include <weft/plan.hpp>
#include <weft/report/describe_simulation.hpp>
#include <weft/report/search.hpp>

namespace {

// 175 B: 96 layers. Tensor ranks are the closest (the last axis), so a node of 8 devices is a tensor group; messages of the pipeline and
// sums over data ranks cross nodes.
using Gpt3 = weft::Gpt<weft::GptOptions{.vocabulary = 51200, .sequence = 2048, .width = 12288, .heads = 96, .layers = 96, .dropout = 0.1}>;
using Gpt530 =
    weft::Gpt<weft::GptOptions{.vocabulary = 51200, .sequence = 2048, .width = 20480, .heads = 128, .layers = 105, .dropout = 0.1}>;
using Interleaved = weft::schedule::Interleaved;

constexpr auto gpt3_strategy(weft::Index data) {
  return weft::mesh(weft::DataParallel{.ranks = data, .bucket_bytes = 256 * weft::MiB, .overlap = false},
                    weft::Pipeline<Interleaved>{.stages = 8, .chunks = 3}, weft::TensorParallel{.ranks = 8, .sequence = true},
                    weft::Activations{.recompute = weft::Recompute::selective});
}

// [static]
// The compiler plans it too, in the 32-bit numbers of this library, and proves the schedule.
using Planned = weft::Plan<Gpt3, gpt3_strategy(1), weft::Batch{.global = 64, .micro = 1, .sequence = 2048}>;
constexpr weft::Index message_bytes = 2048 * 12288 / 8 * 4;  // a micro-batch's rows, divided among 8 tensor ranks
static_assert(Planned::num_ranks == 64, "8 stages of 8 tensor ranks");
static_assert(Planned::num_parameters() == 174'615'846'912, "GPT-3");
static_assert(Planned::bytes_per_rank() <= 141'000'000'000, "fits the memory of an H200 even in 32 bits");
static_assert(Planned::ledger(weft::GroupKind::pipe).bytes_per_step() == 64 * 5 * message_bytes,
              "the first stage sends the outputs of its 3 chunks, and the gradients of the inputs of 2 of them");
static_assert(Planned::ledger(weft::GroupKind::data).calls_per_step() == 0, "one copy of the model: nothing is summed over data ranks");
// [static]

// [simulate]
void report(const char* title, const weft::PlanData& plan) {
  const auto& cluster = weft::clusters::a100_selene;
  const auto& convention = weft::conventions::megatron;  // 16-bit weights, stored scores, …: the program that was measured
  std::printf("%s\n%s\n", title, describe(simulate(plan, cluster, convention), plan, cluster, convention).c_str());
}
// [simulate]

}  // namespace

int main() {
  for (weft::Index data : {1, 16})
    report("175 B", weft::plan_at_start<Gpt3>(gpt3_strategy(data), weft::Batch{.global = 64 * data, .micro = 1, .sequence = 2048}));
  for (weft::Index data : {1, 8}) {
    const auto strategy =
        weft::mesh(weft::DataParallel{.ranks = data, .bucket_bytes = 256 * weft::MiB, .overlap = false},
                   weft::Pipeline<Interleaved>{.stages = 35, .chunks = 3}, weft::TensorParallel{.ranks = 8, .sequence = true},
                   weft::Activations{.recompute = weft::Recompute::selective});
    report("530 B", weft::plan_at_start<Gpt530>(strategy, weft::Batch{.global = 280 * data, .micro = 1, .sequence = 2048}));
  }

  // [search]
  // Or let the planner choose: all meshes of 64 devices that train 175 B in 70 of their 80 GB, the fastest first.
  weft::SearchConstraints constraints{.global = 64, .sequence = 2048, .bytes_per_rank = 70'000'000'000};
  constraints.convention = weft::conventions::megatron;
  std::printf("%s", describe(weft::search<Gpt3>(weft::clusters::a100_selene, 64, constraints)).c_str());
  // [search]
}
