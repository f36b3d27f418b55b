// SPDX-License-Identifier: Apache-2.0
#include "gpt_rows.hpp"

#include <weft/report/convention_memory.hpp>

#include <doctest/doctest.h>

using namespace weft;

namespace {

// 7.5 B parameters: a published width and depth, with a vocabulary that makes up the sum.
constexpr GptOptions seven_and_a_half{.vocabulary = 59065, .sequence = 2048, .width = 4096, .heads = 32, .layers = 36, .tied = true};

int block_of(const PlanData& plan) {
  int block = 0;
  while (plan.graph.frames[std::size_t(block)].count == 1) ++block;
  return block;
}

struct Setting {
  Recompute recompute = Recompute::none;
  Index tensor = 1;
  bool sequence = false;
};

// One layer of the 22 B model of arXiv 2205.05198, micro-batch 4.
constexpr double s = 2048, b = 4, h = 6144, a = 64;
PlanData layer_plan(const Setting& setting) {
  return published_plan<published_gpt(48, 6144, 64)>({.tensor = setting.tensor,
                                                      .gpus = setting.tensor,
                                                      .global = 4,
                                                      .micro = 4,
                                                      .recompute = setting.recompute,
                                                      .sequence = setting.sequence});
}
double layer_bytes(const Setting& setting, const Convention& convention = conventions::megatron) {
  const PlanData plan = layer_plan(setting);
  return unit_activations(plan, block_of(plan), convention).kept;
}

}  // namespace

// Rajbhandari et al., arXiv 1910.02054, table 1: GB per device. The paper truncates large cells and rounds small ones.
TEST_CASE("convention_memory_gives_the_table_of_zero") {
  struct Row {
    Index ranks;
    double gigabytes[3];
  };
  const Row rows[] = {{1, {120, 120, 120}},     {4, {52.5, 41.3, 30}},     {16, {35.6, 21.6, 7.5}},
                      {64, {31.4, 16.6, 1.88}}, {256, {30.4, 15.4, 0.47}}, {1024, {30.1, 15.1, 0.12}}};
  for (const Row& row : rows)
    for (int stage = 1; stage <= 3; ++stage) {
      const PlanData plan = plan_at_start<Gpt<seven_and_a_half>>(mesh(DataParallel{.ranks = row.ranks, .shard = Shard(stage)}),
                                                                 Batch{.global = row.ranks, .micro = 1, .sequence = 2048});
      CHECK(plan.graph.num_parameters() == doctest::Approx(7.5e9).epsilon(1e-5));
      const double found = convention_memory(plan, 0, conventions::mixed_precision).model_states() / 1e9;
      const double published = row.gigabytes[stage - 1], digit = published < 1 ? 0.01 : published < 2 ? 0.01 : 0.1;
      CHECK_MESSAGE((found > published - 0.6 * digit && found < published + digit), found << " GB, published " << published);
    }
}

// Korthikanti et al., arXiv 2205.05198, section 4.
TEST_CASE("convention_memory_gives_the_activations_of_a_transformer_layer") {
  const double sbh = s * b * h, scores = 5 * a * s / h, t = 8;
  const auto exactly = [](double bytes) { return doctest::Approx(bytes).epsilon(1e-12); };
  CHECK(layer_bytes({}) == exactly(sbh * (34 + scores)));
  CHECK(layer_bytes({.tensor = 8}) == exactly(sbh * (10 + 24 / t + scores / t)));
  CHECK(layer_bytes({.tensor = 8, .sequence = true}) == exactly(sbh * (34 / t + scores / t)));
  CHECK(layer_bytes({.recompute = Recompute::selective}) == exactly(sbh * 34));
  CHECK(layer_bytes({.recompute = Recompute::selective, .tensor = 8}) == exactly(sbh * (10 + 24 / t)));
  CHECK(layer_bytes({.recompute = Recompute::selective, .tensor = 8, .sequence = true}) == exactly(sbh * 34 / t));
  CHECK(layer_bytes({.recompute = Recompute::full}) == exactly(sbh * 2));
}

// What the options are for: this library keeps neither scores nor masks, but one number a row and head, and of each norm two a row.
TEST_CASE("convention_memory_as_planned_is_what_is_allocated") {
  for (const Setting& setting : {Setting{}, Setting{.tensor = 8}, Setting{.tensor = 8, .sequence = true},
                                 Setting{.recompute = Recompute::selective}, Setting{.recompute = Recompute::full}}) {
    const PlanData plan = layer_plan(setting);
    const FrameMemory& memory = plan.activations.frames[std::size_t(block_of(plan))];
    const UnitActivations unit = unit_activations(plan, block_of(plan), as_planned(plan));
    CHECK(unit.kept == double(memory.slot_bytes));  // every tensor is a multiple of the alignment here
    CHECK(unit.live == double(memory.live_bytes));
  }
  const PlanData split = plan_at_start<Gpt<published_gpt(48, 6144, 64)>>(mesh(Pipeline<schedule::ZeroBubbleH1>{.stages = 4}),
                                                                         Batch{.global = 16, .micro = 4, .sequence = 2048});
  const FrameMemory& parts = split.activations.frames[std::size_t(block_of(split))];
  CHECK(parts.weight_slot_bytes > 0);
  CHECK(unit_activations(split, block_of(split), as_planned(split)).weights == double(parts.weight_slot_bytes));
  const double without_scores = layer_bytes({}, as_planned(layer_plan({})));
  CHECK(without_scores == 4 * s * b * (16 * h + a + 4));
}

// The first stage holds L layers whatever the number of stages; interleaved L·(1 + (p-1)/(p·v)); and what stands before its layers.
TEST_CASE("convention_memory_of_the_first_stage_follows_the_schedule") {
  const double layers = 96, width = 12288, layer = s * width * (34.0 + 5 * 96 * s / width);
  const auto first_stage = [&](Index stages, Index chunks) {
    const PlanData plan = published_plan<published_gpt(96, 12288, 96)>(
        {.stages = stages, .gpus = stages, .global = 64, .micro = 1, .chunks = chunks, .recompute = Recompute::none});
    const int block = block_of(plan);
    double before = 0;
    for (int f = 0; f < block; ++f) before += unit_activations(plan, f, conventions::megatron).kept;
    CHECK(before == 3 * s * width);  // the first layer's input, and the mask of the dropout before it
    const double total = convention_memory(plan, 0, conventions::megatron).activations;
    const double in_flight = double(chunks > 1 ? 2 * stages : stages);  // of the first chunk, when all is most
    return (total - before * in_flight) / layer;
  };
  for (Index stages : {2, 4, 8, 16}) CHECK(first_stage(stages, 1) == doctest::Approx(layers).epsilon(1e-12));
  for (Index chunks : {2, 3, 4})
    CHECK(first_stage(8, chunks) == doctest::Approx(layers * (1 + 7.0 / (8.0 * double(chunks)))).epsilon(1e-12));
}
