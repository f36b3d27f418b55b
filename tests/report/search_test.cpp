// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include <weft/plan.hpp>
#include <weft/report/search.hpp>

#include <doctest/doctest.h>

using namespace weft;

namespace {

using Small = Gpt<GptOptions{.vocabulary = 100, .sequence = 32, .width = 48, .heads = 6, .layers = 4}>;
constexpr Index ranks = 12, sequence = 32, global = 24;

constexpr SearchConstraints constraints() {
  SearchConstraints out{.global = global, .sequence = sequence, .most_tensor = ranks, .most_stages = ranks};
  for (Index micro : {1, 2, 5}) out.micros.push(micro);
  out.shards.push(Shard::none), out.shards.push(Shard::parameters);
  out.recomputes.push(Recompute::none), out.recomputes.push(Recompute::full);
  out.schedules.push(schedule_choice<schedule::OneForwardOneBackward>());
  out.schedules.push(schedule_choice<schedule::Interleaved>(2));
  out.schedules.push(schedule_choice<schedule::ZeroBubbleH1>());
  return out;
}

const SearchResult& small_search() {
  static const SearchResult result = search<Small>(clusters::a100_selene, ranks, constraints());
  return result;
}

// The plan that a user would write for a candidate.
template <class Schedule>
PlanData written_with(const SearchCandidate& c) {
  const auto strategy = mesh(DataParallel{.ranks = c.data, .bucket_bytes = 64 * MiB, .shard = c.shard},
                             Pipeline<Schedule>{.stages = c.stages, .chunks = c.schedule.chunks},
                             TensorParallel{.ranks = c.tensor, .sequence = c.sequence}, Activations{.recompute = c.recompute});
  return plan_data<Small>(lower_strategy(strategy), Batch{.global = global, .micro = c.micro, .sequence = sequence});
}
PlanData written(const SearchCandidate& c) {
  const std::string name = c.schedule.name;
  return name == "interleaved"      ? written_with<schedule::Interleaved>(c)
         : name == "zero_bubble_h1" ? written_with<schedule::ZeroBubbleH1>(c)
                                    : written_with<schedule::OneForwardOneBackward>(c);
}

bool has(const std::vector<SearchRow>& rows, const SearchCandidate& candidate) {
  return std::any_of(rows.begin(), rows.end(), [&](const SearchRow& row) { return row.candidate == candidate; });
}

// Two layers on two ranks, in the compiler.
using Two = Sequential<Linear<16, 16>, Linear<16, 16>>;
constexpr SearchConstraints few() {
  SearchConstraints out{.global = 4, .sequence = 1};
  out.micros.push(1), out.shards.push(Shard::none), out.recomputes.push(Recompute::none), out.sequences.push(false);
  out.schedules.push(schedule_choice<schedule::OneForwardOneBackward>());
  return out;
}
constexpr SearchRow fastest_of_two = search<Two, Recipe<Fp32, MeanSquaredError>>(clusters::a100_selene, 2, few()).ranked.front();
static_assert(fastest_of_two.candidate.data == 2, "nothing is said in forward and backward but in the two other ways");

}  // namespace

// Every triple of extents, and every setting that makes a difference to it, by loops of another kind.
TEST_CASE("search_finds_what_brute_force_finds") {
  const SearchConstraints all = constraints();
  std::size_t legal = 0, refused = 0;
  for (Index data = 1; data <= ranks; ++data)
    for (Index stages = 1; stages <= ranks; ++stages)
      for (Index tensor = 1; tensor <= ranks; ++tensor) {
        if (data * stages * tensor != ranks) continue;
        for (const Index micro : all.micros)
          for (int by_rows = 0; by_rows < (tensor > 1 ? 2 : 1); ++by_rows)
            for (int shard = 0; shard < (data > 1 ? 2 : 1); ++shard)
              for (const Recompute recompute : all.recomputes)
                for (int s = 0; s < (stages > 1 ? 3 : 1); ++s) {
                  const SearchCandidate c{data,         stages,
                                          tensor,       micro,
                                          by_rows == 1, shard == 1 ? Shard::parameters : Shard::none,
                                          recompute,    stages > 1 ? all.schedules[s] : ScheduleChoice{}};
                  const bool is_legal = written(c).fault.rule == PlanRule::none;
                  (is_legal ? legal : refused) += 1;
                  CHECK(has(is_legal ? small_search().ranked : small_search().refused, c));
                }
      }
  CHECK(small_search().ranked.size() == legal);
  CHECK(small_search().refused.size() == refused);
  CHECK((legal > 50 && refused > 50));
}

TEST_CASE("search_ranks_by_the_simulated_time_of_the_plan") {
  double before = 0;
  for (const SearchRow& row : small_search().ranked) {
    const PlanData plan = written(row.candidate);
    const Simulation simulation = simulate(plan, clusters::a100_selene);
    CHECK(row.step_seconds == simulation.step_seconds);
    CHECK(row.memory_bytes == double(plan.memory.total()));
    CHECK(row.step_seconds >= before);
    before = row.step_seconds;
  }
}

TEST_CASE("search_says_which_rule_refused") {
  int by_batch = 0, by_tensor = 0, by_schedule = 0, by_stages = 0;
  for (const SearchRow& row : small_search().refused) {
    CHECK(row.fault.rule == written(row.candidate).fault.rule);
    by_batch += row.fault.rule == PlanRule::batch_divides;
    by_tensor += row.fault.rule == PlanRule::tensor_divides;
    by_schedule += row.fault.rule == PlanRule::recompute_splits;
    by_stages += row.fault.rule == PlanRule::stages_fit;
  }
  CHECK(by_batch > 0);     // micro-batches of 5
  CHECK(by_tensor > 0);    // 6 heads on 4 or 12 ranks
  CHECK(by_schedule > 0);  // zero bubble and recompute
  CHECK(by_stages > 0);    // 12 chunks of 8 units
}

TEST_CASE("search_refuses_what_does_not_fit_the_device") {
  SearchConstraints small = constraints();
  small.bytes_per_rank = 5 * MiB;
  const SearchResult result = search<Small>(clusters::a100_selene, ranks, small);
  CHECK((!result.ranked.empty() && result.ranked.size() < small_search().ranked.size()));
  CHECK(result.ranked.size() + result.refused.size() == small_search().ranked.size() + small_search().refused.size());
  for (const SearchRow& row : result.ranked) CHECK(row.memory_bytes <= double(5 * MiB));
  for (const SearchRow& row : result.refused)
    if (row.fault.rule == PlanRule::over_budget) CHECK(Index(row.fault.found) > 5 * MiB);
}

// Korthikanti et al. ran 175 B on 64 devices with 8 tensor ranks, 8 stages and 3 chunks a stage. A search over everything finds the same
// mesh.
TEST_CASE("search_of_175b_on_64_devices_finds_the_published_mesh") {
  using Large = Gpt<GptOptions{.vocabulary = 51200, .sequence = 2048, .width = 12288, .heads = 96, .layers = 96, .dropout = 0.1}>;
  SearchConstraints all{.global = 64, .sequence = 2048, .convention = conventions::megatron};
  all.bytes_per_rank = 70'000'000'000;
  for (Index micro : {1, 2}) all.micros.push(micro);
  all.schedules.push(schedule_choice<schedule::OneForwardOneBackward>());
  all.schedules.push(schedule_choice<schedule::Interleaved>(3));
  const SearchResult result = search<Large>(clusters::a100_selene, 64, all);
  const SearchCandidate& best = result.ranked.front().candidate;
  CHECK((best.tensor == 8 && best.stages == 8 && best.data == 1));
  CHECK((best.sequence && best.recompute == Recompute::selective && best.schedule.chunks == 3));
}

TEST_CASE("search_can_be_printed") {
  const std::string text = describe(small_search(), 3);
  CHECK(text.find("1.") != std::string::npos);
  CHECK(text.find("weft[batch.divides]") != std::string::npos);
  CHECK(text.find("data x") != std::string::npos);
}
