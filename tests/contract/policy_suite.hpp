// SPDX-License-Identifier: Apache-2.0
// What every synchronisation policy has to do, as numbered cases. For a policy of your own, write
//
//   TEST_CASE("my_policy_conforms") { weft::contract::run_policy_suite<MyPolicy>(); }
//
// with doctest, or call the cases. A case throws what is wrong. Policies are tried with `every` from 1 to 4, on 2 to 4 replicas.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <string_view>

#include <weft/run/check_strategy.hpp>
#include <weft/weft.hpp>

namespace weft::contract {

using PolicyModel = Sequential<Linear<3, 8>, Gelu, Repeat<2, Residual<LayerNorm<8>, Linear<8, 8>, Gelu>>, Linear<8, 2>>;
inline constexpr Batch policy_batch{.global = 12, .micro = 2};

template <class Policy>
[[noreturn]] void policy_fails(Index every, const std::string& what) {
  throw std::runtime_error(text_of(Policy::name, ", every ", every, ": ", what.c_str()));
}

template <class Policy>
void case_01_is_a_policy() {
  static_assert(SyncPolicy<Policy>, "weft[contract.policy]: a policy has name, version, sums_gradients and synchronise(SyncStep&)");
  if (std::string_view(Policy::name).empty()) throw std::runtime_error("a policy has a name");
}

// All ranks ask it: it says the same for the same step, however often and in whatever order it is asked.
template <class Policy>
void case_02_says_the_same_for_the_same_step() {
  for (Index every = 1; every <= 4; ++every) {
    const auto said = [&](Index number) {
      SyncStep step(number, every);
      Policy::synchronise(step);
      std::vector<int> out;
      for (const SyncEntry& entry : step.entries()) out.push_back(int(entry.what) * 100 + int(entry.reduction));
      return out;
    };
    std::vector<std::vector<int>> forth;
    for (Index number = 1; number <= 64; ++number) forth.push_back(said(number));
    for (Index number = 64; number >= 1; --number)
      if (said(number) != forth[std::size_t(number - 1)])
        policy_fails<Policy>(every, text_of("step ", number, " is another when it is asked for again"));
  }
}

// The ledger of every step is what the policy says for it: an all-reduce of the rank's part for each entry, in buckets or not.
template <class Policy>
void case_03_is_in_the_ledger() {
  for (Index every = 1; every <= 4; ++every) {
    const PlanData plan =
        plan_at_start<PolicyModel, Recipe<Fp64, MeanSquaredError, Sgd>>(mesh(Replicas<Policy>{.ranks = 2, .every = every}), policy_batch);
    const Index part = plan.stages[0].parameter_elems * Index(sizeof(double)), gradients = Policy::sums_gradients ? part : 0;
    for (Index number = 1; number <= 12; ++number) {
      SyncStep step(number, every);
      Policy::synchronise(step);
      Index wanted = gradients;
      for (const SyncEntry& entry : step.entries()) wanted += part * (entry.what == Shared::parameters ? 1 : Sgd::num_states);
      if (const Index found = totals_at(plan, 0, number).bytes; found != wanted)
        policy_fails<Policy>(every, text_of("step ", number, " has ", found, " bytes in the ledger, and the policy says ", wanted));
    }
  }
}

// Replicas whose policy leaves them alone are held against models of one rank, between which the means are taken by hand; others against
// one rank. Losses, clipped norms, gradients, parameters, optimizer states; calls, copies and memory too.
template <class Policy, Index... tensor_ranks, class MeshType>
void trains_as_by_hand(Index every, const char* how, const MeshType& axes) {
  const auto fill = [](auto& micro, Index step) {
    for (Index r = 0; r < micro.leading.batch; ++r) {
      const double place = double(step * policy_batch.global + micro.first_item + r);
      for (Index i = 0; i < 3; ++i) micro.values()[r * 3 + i] = std::sin(place * 7 + double(i * 3));
      for (Index i = 0; i < 2; ++i) micro.real_targets()[r * 2 + i] = std::cos(place * 5 + double(i));
    }
  };
  const StrategyCheck found =
      check_strategy<PolicyModel, MeanSquaredError, tensor_ranks...>(axes, policy_batch, fill, {.steps = 2 * every + 1});
  if (!found.passes()) policy_fails<Policy>(every, text_of(how, ": ", found.text()));
}

template <class Policy>
void case_04_trains_as_by_hand() {
  for (Index every = 1; every <= 4; ++every)
    for (const Index replicas : {2, 3})
      trains_as_by_hand<Policy>(every, "replicas of one rank", mesh(Replicas<Policy>{.ranks = replicas, .every = every}));
}

template <class Policy>
void case_05_works_with_pipelines_and_tensor_ranks() {
  for (const Index every : {1, 3}) {
    const Replicas<Policy> replicas{.ranks = 2, .every = every};
    trains_as_by_hand<Policy>(every, "with a pipeline behind it", mesh(replicas, Pipeline<>{.stages = 2}));
    trains_as_by_hand<Policy>(every, "with a pipeline before it", mesh(Pipeline<>{.stages = 3}, replicas));
    trains_as_by_hand<Policy, 2>(every, "with tensor ranks", mesh(replicas, TensorParallel{.ranks = 2}));
  }
}

template <class Policy>
void run_policy_suite() {
  CHECK_NOTHROW(case_01_is_a_policy<Policy>());
  CHECK_NOTHROW(case_02_says_the_same_for_the_same_step<Policy>());
  CHECK_NOTHROW(case_03_is_in_the_ledger<Policy>());
  CHECK_NOTHROW(case_04_trains_as_by_hand<Policy>());
  CHECK_NOTHROW(case_05_works_with_pipelines_and_tensor_ranks<Policy>());
}

}  // namespace weft::contract
