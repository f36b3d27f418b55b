// SPDX-License-Identifier: Apache-2.0
// BR-34, heavy first and last stage: parts are cut by cost, contiguous, with the smallest possible maximum.
#include <weft/plan.hpp>
#include <weft/report/describe.hpp>

#include <doctest/doctest.h>

#include <algorithm>

using namespace weft;

namespace {

// The cost of the largest part; -1 if the parts are no partition.
double largest_part(const std::vector<double>& costs, const std::vector<Index>& starts, Index parts) {
  if (Index(starts.size()) != parts || starts[0] != 0) return -1;
  double largest = 0;
  for (std::size_t p = 0; p < starts.size(); ++p) {
    const Index end = p + 1 < starts.size() ? starts[p + 1] : Index(costs.size());
    if (end <= starts[p]) return -1;
    double sum = 0;
    for (Index i = starts[p]; i < end; ++i) sum += costs[std::size_t(i)];
    largest = std::max(largest, sum);
  }
  return largest;
}

// Of all ways to cut.
double best_by_trying(const std::vector<double>& costs, std::size_t from, Index parts) {
  double sum = 0, best = 1e300;
  for (std::size_t i = from; i < costs.size(); ++i) sum += costs[i];
  if (parts == 1) return sum;
  sum = 0;
  for (std::size_t end = from + 1; end + std::size_t(parts) - 1 <= costs.size(); ++end) {
    sum += costs[end - 1];
    best = std::min(best, std::max(sum, best_by_trying(costs, end, parts - 1)));
  }
  return best;
}

// Costs 5, 1, 1, 1 (and more) as products of these features.
using Heavy =
    Sequential<Linear<8, 40, Bias::no>, Linear<40, 1, Bias::no>, Linear<1, 8, Bias::no>, Linear<8, 8, Bias::no>, Linear<8, 4, Bias::no>>;

}  // namespace

TEST_CASE("br34_costs_at_both_ends_give_stages_of_equal_cost") {
  const std::vector<double> ends{2, 1, 1, 1, 1, 2};
  const std::vector<Index> starts = partition(ends, 4);
  CHECK(starts == std::vector<Index>{0, 1, 3, 5});
  CHECK(largest_part(ends, starts, 4) == 2);
  const std::vector<double> front{5, 1, 1, 1};
  CHECK(largest_part(front, partition(front, 2), 2) == 5);
  static_assert(partition({2, 1, 1, 1, 1, 2}, 4)[2] == 3, "by the compiler, too");
}

TEST_CASE("br34_no_cut_has_a_smaller_maximum") {
  std::uint32_t state = 7;
  const auto next = [&] { return state = state * 1664525u + 1013904223u, state >> 16; };
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<double> costs(1 + next() % 9);
    for (double& cost : costs) cost = double(next() % 7);
    for (Index parts = 1; parts <= Index(costs.size()); ++parts)
      CHECK(largest_part(costs, partition(costs, parts), parts) == doctest::Approx(best_by_trying(costs, 0, parts)));
    CHECK(partition(costs, Index(costs.size()) + 1).empty());
  }
}

TEST_CASE("br34_plans_cut_models_by_cost_unless_the_user_does_and_report_the_heaviest_stage") {
  const Batch batch{.global = 8, .micro = 2};
  const auto plan_of = [&](const auto& strategy) { return plan_data<Heavy>(lower_strategy(strategy), batch); };
  const auto cost_of = [](const PlanData& plan, const ChunkData& chunk) {
    double cost = 0;
    for (Index u = chunk.first_unit; u < chunk.end_unit; ++u)
      cost += unit_cost(plan.graph, plan.graph.frames[std::size_t(plan.units[std::size_t(u)].frame)]);
    return cost;
  };
  const PlanData chosen = plan_of(mesh(Pipeline<>{.stages = 2}));
  std::vector<double> costs;
  for (const FrameSite& frame : chosen.graph.frames) costs.push_back(unit_cost(chosen.graph, frame));
  CHECK(std::max(cost_of(chosen, chosen.chunks[0]), cost_of(chosen, chosen.chunks[1])) == doctest::Approx(best_by_trying(costs, 0, 2)));
  CHECK(chosen.chunks[1].first_unit == 1);  // not 2 or 3, as counting would have it

  const PlanData fixed = plan_of(mesh(Pipeline<>{.stages = 2, .chunk_starts = chunk_starts(3)}));
  CHECK(fixed.chunks[1].first_unit == 3);
  CHECK(plan_of(mesh(Pipeline<>{.stages = 2, .chunk_starts = chunk_starts(5)})).fault.rule == PlanRule::stages_fixed);
  CHECK(plan_of(mesh(Pipeline<>{.stages = 2, .chunk_starts = chunk_starts(1, 3)})).fault.rule == PlanRule::stages_fixed);

  const Index heaviest = std::max(chosen.stages[0].memory.total(), chosen.stages[1].memory.total());
  CHECK(chosen.memory.total() == heaviest);
  const std::string text = describe(chosen);
  CHECK(text.find("memory of a rank of the stage that needs most") != std::string::npos);
  CHECK(text.find("memory of a rank of stage  1") != std::string::npos);
}
