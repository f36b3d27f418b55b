// SPDX-License-Identifier: Apache-2.0
#include <weft/graph/models.hpp>
#include <weft/plan/plan.hpp>
#include <weft/report/describe.hpp>

#include <doctest/doctest.h>

using namespace weft;

namespace {

using Tiny = Gpt<GptOptions{.vocabulary = 65, .sequence = 64, .width = 128, .heads = 4, .layers = 4}>;
using Train = Plan<Tiny, mesh(DataParallel{.ranks = 2}), Batch{.global = 12, .micro = 6, .sequence = 64}>;
static_assert(Train::bytes_per_rank() < 64 * MiB, "the small GPT needs less than 64 MiB");
static_assert(Train::num_parameters() == 809856, "counted by hand");
static_assert(Train::ledger().bytes_per_step() >= Train::num_parameters() * 4, "every gradient goes out once");

std::string refusal(const DataParallel& data, const Batch& batch, const Budget& budget = {}) {
  try {
    plan_at_start<Tiny>(mesh(data), batch, budget);
  } catch (const Error& error) { return error.what(); }
  return "";
}

}  // namespace

TEST_CASE("plan_static_and_made_at_start_are_the_same") {
  const PlanData plan = plan_at_start<Tiny>(mesh(DataParallel{.ranks = 2}), Batch{.global = 12, .micro = 6, .sequence = 64});
  CHECK(fingerprint(plan) == Train::fingerprint());
  CHECK(plan.memory.total() == Train::bytes_per_rank());
  CHECK(totals(plan).bytes == Train::ledger().bytes);
}

TEST_CASE("plan_fingerprint_tells_plans_apart") {
  const auto print = [](DataParallel data, Batch batch) { return fingerprint(plan_at_start<Tiny>(mesh(data), batch)); };
  const auto one = print({.ranks = 2}, {12, 6, 64});
  CHECK(one != print({.ranks = 3}, {12, 4, 64}));
  CHECK(one != print({.ranks = 2, .bucket_bytes = 4096}, {12, 6, 64}));
  CHECK(one != print({.ranks = 2}, {12, 3, 64}));
  CHECK(one != print({.ranks = 2}, {12, 6, 32}));
}

TEST_CASE("plan_refusals_name_rule_numbers_and_remedy") {
  const std::string divides = refusal({.ranks = 5}, {12, 6, 64});
  CHECK(divides.find("weft[batch.divides]") == 0);
  CHECK(divides.find("global 12, ranks 5, micro 6") != std::string::npos);
  CHECK(divides.find("change one of the three") != std::string::npos);
  CHECK(refusal({.ranks = 0}, {12, 6, 64}).find("weft[mesh.ranks]") == 0);
  CHECK(refusal({.ranks = 1, .bucket_bytes = 0}, {12, 6, 64}).find("weft[data.bucket_bytes]") == 0);
  CHECK(refusal({.ranks = 1}, {12, 0, 64}).find("weft[batch.positive]") == 0);
  CHECK(refusal({.ranks = 1}, {12, 6, 65}).find("weft[batch.sequence]") == 0);
  const std::string budget = refusal({.ranks = 1}, {12, 6, 64}, {.bytes_per_rank = 1000});
  CHECK(budget.find("weft[memory.budget]") == 0);
  CHECK(budget.find("budget 1000") != std::string::npos);
}

TEST_CASE("plan_buckets_cover_the_arena_once_from_its_end") {
  for (Index bucket_bytes : {Index(1), Index(1000), 64 * KiB, 1 * MiB, 100 * MiB}) {
    const PlanData plan = plan_at_start<Tiny>(mesh(DataParallel{.ranks = 2, .bucket_bytes = bucket_bytes}), Batch{12, 6, 64});
    Index end = plan.graph.parameter_elems;
    for (const Bucket& bucket : plan.stages[0].buckets) {
      CHECK(bucket.elems > 0);
      CHECK(bucket.first + bucket.elems == end);
      end = bucket.first;
    }
    CHECK(end == 0);
  }
}

// BR-33: 100 tensors of 1 KiB in buckets of 25 KiB are at most 5 calls.
TEST_CASE("plan_small_tensors_share_buckets") {
  using Many = Sequential<Repeat<100, Linear<16, 16, Bias::no>>>;
  const PlanData plan =
      plan_at_start<Many, Recipe<Fp32, MeanSquaredError>>(mesh(DataParallel{.ranks = 2, .bucket_bytes = 25 * KiB}), Batch{2, 1, 1});
  CHECK(plan.stages[0].buckets.size() == 4);
  CHECK(totals(plan).calls == 4);
}

TEST_CASE("plan_memory_counts_what_the_element_type_needs") {
  const Batch batch{12, 6, 64};
  const PlanData single = plan_at_start<Tiny, Recipe<Fp32>>(mesh(), batch), twice = plan_at_start<Tiny, Recipe<Fp64>>(mesh(), batch);
  CHECK(twice.memory.parameters == 2 * single.memory.parameters);
  CHECK(single.memory.gradients == single.memory.parameters);
  CHECK(single.memory.optimizer == 2 * single.memory.parameters);
  CHECK(ledger_of(single).empty());  // one rank says nothing to anybody
}

// By hand, for one block of the small GPT (768 rows): what backward needs and nothing else.
TEST_CASE("plan_activations_are_what_backward_needs") {
  const PlanData plan = plan_at_start<Tiny>(mesh(), Batch{12, 12, 64});
  const Index rows = 768, C = 128, H = 4;
  const Index block = rows * 4 *
                      (C /*norm*/ + 3 * C /*qkv*/ + C /*attention*/ + C /*x + …*/ + C /*norm*/ + 4 * C /*up*/ + 4 * C /*gelu*/ +
                       C /*x + …*/ + 4 /*means, deviations*/ + H /*log-sum-exp*/);
  CHECK(plan.activations.frames[2].slot_bytes == block);
  CHECK(plan.depth == 1);
  const PlanData accumulated = plan_at_start<Tiny>(mesh(), Batch{48, 12, 64});
  CHECK(accumulated.memory.activations == plan.memory.activations);  // micro-batches reuse the space
}

TEST_CASE("describe_says_memory_calls_and_ties") {
  const std::string text = describe(plan_at_start<Tiny>(mesh(DataParallel{.ranks = 2}), Batch{12, 6, 64}));
  for (const char* part : {"809856 parameters", "blocks.0.attention.qkv", "tied to wte.table", "framework bytes (exact)", "gradient bucket",
                           "control", "fingerprint"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part);
}

TEST_CASE("plan_takes_a_single_axis_as_a_mesh") {
  using Alone = Plan<Tiny, DataParallel{.ranks = 2}, Batch{.global = 12, .micro = 6, .sequence = 64}>;
  static_assert(Alone::fingerprint() == Train::fingerprint(), "the same plan");
  CHECK(Alone::num_ranks == 2);
}

TEST_CASE("traffic_of_a_layer_is_its_tensors") {
  using Two = Sequential<Linear<4, 6>, Relu, Linear<6, 3>>;
  const PlanData plan = plan_at_start<Two>(mesh(), Batch{.global = 5, .micro = 5});
  const LeafTraffic first = traffic_of(plan, 0, 5), relu = traffic_of(plan, 1, 5), last = traffic_of(plan, 2, 5);
  CHECK(first.forward_bytes == 4 * (5 * 4 + 5 * 6 + 4 * 6 + 6));
  CHECK(first.backward_bytes == 4 * (5 * 4 /*x*/ + 5 * 6 /*dy*/ + 3 * (4 * 6 + 6)));  // nobody needs its dx
  CHECK(relu.forward_bytes == 4 * (5 * 6 + 5 * 6));
  CHECK(relu.backward_bytes == 4 * (5 * 6 /*y*/ + 5 * 6 + 5 * 6));
  CHECK(last.backward_bytes == 4 * (5 * 6 + 5 * 3 + 5 * 6 + 3 * (6 * 3 + 3)));
}
