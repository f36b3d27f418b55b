// SPDX-License-Identifier: Apache-2.0
// Plans that the compiler makes are those of start-up: the same bytes, calls and fingerprint, whatever the strategy.
#pragma once

#include <weft/plan.hpp>

#include <doctest/doctest.h>

namespace weft::test {

using PlannedModel = Gpt<GptOptions{.vocabulary = 65, .sequence = 16, .width = 48, .heads = 6, .layers = 8, .tied = true, .dropout = 0.1}>;

template <auto strategy>
using Of = Plan<PlannedModel, strategy, Batch{.global = 32, .micro = 2, .sequence = 16}>;

// At start-up the schedule is made and proved whole, while the compiler has seen a window of it.
template <class P>
void same_at_start() {
  const PlanData plan = plan_at_start<PlannedModel>(P::strategy, P::batch);
  CHECK(P::fingerprint() == fingerprint(plan));
  CHECK(P::bytes_per_rank() == plan.memory.total());
  CHECK(P::num_ranks == plan.strategy.ranks);
  CHECK(fingerprint(P::data()) == fingerprint(plan));
  for (int stage = 0; stage < int(plan.stages.size()); ++stage) {
    CHECK(P::facts().stages[std::size_t(stage)].memory.total() == plan.stages[std::size_t(stage)].memory.total());
    for (const GroupKind group : {GroupKind::world, GroupKind::data, GroupKind::pipe, GroupKind::tensor, GroupKind::shard,
                                  GroupKind::replica, GroupKind::tie, GroupKind::copies}) {
      CHECK(P::ledger(group, stage).bytes == totals(plan, stage, group).bytes);
      CHECK(P::ledger(group, stage).calls == totals(plan, stage, group).calls);
    }
    CHECK(P::ledger(stage).bytes == totals(plan, stage).bytes);
  }
}
template <class... Plans>
void all_same_at_start_and_different_from_each_other() {
  (same_at_start<Plans>(), ...);
  const std::vector<std::uint64_t> prints{Plans::fingerprint()...};
  for (std::size_t a = 0; a < prints.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) CHECK_MESSAGE(prints[a] != prints[b], "plans " << a << " and " << b);
}

}  // namespace weft::test
