// SPDX-License-Identifier: Apache-2.0
// Volumes that papers state, from the ledger.
#include <weft/plan.hpp>
#include <weft/report/volume.hpp>

#include <doctest/doctest.h>

using namespace weft;

namespace {

using Model = Gpt<GptOptions{.vocabulary = 512, .sequence = 64, .width = 128, .heads = 8, .layers = 6, .tied = false}>;
constexpr double sequence = 64, micro = 2, width = 128;

double sent(const PlanData& plan, GroupKind kind, int stage = 0) {
  return volume(plan, stage, as_planned(plan))[kind] / double(bytes_of(plan.training.type));
}

bool is_block(const PlanData& plan, const LedgerEntry& entry) {
  return plan.graph.frames[std::size_t(plan.units[std::size_t(entry.number)].frame)].count > 1;
}

}  // namespace

// Rajbhandari et al., arXiv 1910.02054, section 7: data parallel, stages 1 and 2 send 2Ψ elements a step, stage 3 sends 3Ψ.
TEST_CASE("volume_of_data_parallelism_is_two_or_three_times_the_parameters") {
  for (Index ranks : {2, 3, 8, 64}) {
    const double rest = double(ranks - 1) / double(ranks);
    for (Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::parameters}) {
      const PlanData plan =
          plan_at_start<Model>(mesh(DataParallel{.ranks = ranks, .shard = shard}), Batch{.global = ranks, .micro = 1, .sequence = 64});
      const double elems = double(plan.stages[0].parameter_elems);  // Ψ, with what aligns it
      CHECK(elems == doctest::Approx(double(plan.graph.num_parameters())).epsilon(0.02));
      const double all = sent(plan, GroupKind::data) + (shard == Shard::none ? 0 : sent(plan, GroupKind::shard));
      CHECK(all == doctest::Approx((shard == Shard::parameters ? 3 : 2) * elems * rest).epsilon(1e-12));
    }
  }
}

// Each further micro-batch gathers parameters twice more and scatters gradients once more.
TEST_CASE("volume_of_sharded_micro_batches_grows_as_documented") {
  const double rest = 0.75;
  for (Index micros : {1, 2, 5}) {
    const auto plan_of = [&](Shard shard) {
      return plan_at_start<Model>(mesh(DataParallel{.ranks = 4, .shard = shard}), Batch{.global = 4 * micros, .micro = 1, .sequence = 64});
    };
    const PlanData gradients = plan_of(Shard::gradients), parameters = plan_of(Shard::parameters);
    const double elems = double(gradients.stages[0].parameter_elems), m = double(micros);
    CHECK(sent(gradients, GroupKind::shard) == doctest::Approx((m + 1) * elems * rest).epsilon(1e-12));
    CHECK(sent(parameters, GroupKind::shard) == doctest::Approx(3 * m * elems * rest).epsilon(1e-12));
  }
}

// A tensor-parallel layer: 8bsh(t-1)/t elements a rank and micro-batch, with sequence parallelism too (arXiv 2104.04473, 2205.05198).
TEST_CASE("volume_of_a_tensor_parallel_layer_is_8bsh_over_t") {
  for (Index ranks : {2, 4, 8})
    for (bool by_rows : {false, true}) {
      const PlanData plan = plan_at_start<Model>(mesh(TensorParallel{.ranks = ranks, .sequence = by_rows}),
                                                 Batch{.global = 6, .micro = Index(micro), .sequence = Index(sequence)});
      double elems = 0;
      for_each_call(plan, 0, [&](const LedgerEntry& entry) {
        const bool layer = entry.phase == LedgerPhase::layer_forward || entry.phase == LedgerPhase::layer_backward;
        if (layer && is_block(plan, entry)) elems += sent_elems(entry.call, ranks_of(plan, entry));
      });
      const double t = double(ranks), layers = 6, micros = 3;
      CHECK(elems / layers / micros == doctest::Approx(8 * micro * sequence * width * (t - 1) / t).epsilon(1e-12));
    }
}

// A stage boundary: bsh elements forward, and as many backward; each tensor rank sends its slice if rows are divided, or by convention.
TEST_CASE("volume_of_a_stage_boundary_is_bsh") {
  const Batch batch{.global = 8, .micro = Index(micro), .sequence = Index(sequence)};
  const double boundary = micro * sequence * width, micros = 4;
  const PlanData pipe = plan_at_start<Model>(mesh(Pipeline<>{.stages = 4}), batch);
  for (int stage = 0; stage < 4; ++stage)
    CHECK(sent(pipe, GroupKind::pipe, stage) == micros * boundary * (stage == 0 || stage == 3 ? 1 : 2));
  const auto both = [&](bool by_rows) {
    return plan_at_start<Model>(mesh(Pipeline<>{.stages = 4}, TensorParallel{.ranks = 2, .sequence = by_rows}), batch);
  };
  CHECK(sent(both(false), GroupKind::pipe, 1) == 2 * micros * boundary);
  CHECK(sent(both(true), GroupKind::pipe, 1) == micros * boundary);
  const PlanData whole = both(false);
  Convention divided = as_planned(whole);
  divided.divides_messages = true;
  const Volume plain = volume(whole, 1, as_planned(whole)), sliced = volume(whole, 1, divided);
  CHECK(sliced[GroupKind::pipe] == plain[GroupKind::pipe] / 2);
  CHECK(sliced[GroupKind::tensor] == plain[GroupKind::tensor] + 4 * 2 * micros * boundary / 2);  // what the others received
}

// Interleaving sends what it saves in bubble: with v chunks, v times the messages.
TEST_CASE("volume_of_interleaved_stages_is_that_of_more_boundaries") {
  const Batch batch{.global = 8, .micro = Index(micro), .sequence = Index(sequence)};
  const PlanData plan = plan_at_start<Model>(mesh(Pipeline<schedule::Interleaved>{.stages = 4, .chunks = 2}), batch);
  double all = 0;
  for (int stage = 0; stage < 4; ++stage) all += sent(plan, GroupKind::pipe, stage);
  CHECK(all == 4 * 7 * 2 * micro * sequence * width);
}
