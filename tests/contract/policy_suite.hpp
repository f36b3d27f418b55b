// SPDX-License-Identifier: Apache-2.0
// What every synchronisation policy has to do, as numbered cases. For a policy of your own, write
//
//   TEST_CASE("my_policy_conforms") { weft::contract::run_policy_suite<MyPolicy>(); }
//
// with doctest, or call the cases. A case throws what is wrong. Policies are tried with `every` from 1 to 4, on 2 to 4 replicas.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string_view>

#include "contract/train_small.hpp"

namespace weft::contract {

using PolicyModel = Sequential<Linear<3, 8>, Gelu, Repeat<2, Residual<LayerNorm<8>, Linear<8, 8>, Gelu>>, Linear<8, 2>>;
inline constexpr Index policy_steps = 9, policy_items = 12;

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
    const PlanData plan = plan_at_start<PolicyModel, SmallRecipe>(mesh(Replicas<Policy>{.ranks = 2, .every = every}),
                                                                  Batch{.global = policy_items, .micro = 2});
    const Index part = plan.stages[0].parameter_elems * Index(sizeof(double)), gradients = Policy::sums_gradients ? part : 0;
    for (Index number = 1; number <= 12; ++number) {
      SyncStep step(number, every);
      Policy::synchronise(step);
      Index wanted = gradients;
      for (const SyncEntry& entry : step.entries()) wanted += part * (entry.what == Shared::parameters ? 1 : small_states);
      if (const Index found = totals_at(plan, 0, number).bytes; found != wanted)
        policy_fails<Policy>(every, text_of("step ", number, " has ", found, " bytes in the ledger, and the policy says ", wanted));
    }
  }
}

// What comes out of policies that leave replicas alone, by replicas that know nothing of each other and means taken by hand.
template <class Policy>
SmallTraining train_by_hand(Index replicas, Index every, double clip_norm) {
  const Batch batch{.global = policy_items / replicas, .micro = 2};
  const PlanData plan = plan_at_start<PolicyModel, SmallRecipe>(mesh(), batch),
                 whole = plan_at_start<PolicyModel, SmallRecipe>(mesh(DataParallel{.ranks = replicas}),
                                                                 Batch{.global = policy_items, .micro = 2});
  using Alone = Engine<Cpu<kernel::cpu::Builtin>, double, SelfCommunicator, Sgd>;
  std::vector<std::unique_ptr<Alone>> all;
  for (Index r = 0; r < replicas; ++r)
    all.push_back(std::make_unique<Alone>(plan, model_code<typename Alone::Kernels, double, PolicyModel, MeanSquaredError>(),
                                          SelfCommunicator{}, small_rule, EngineOptions{.seed = 5, .clip_norm = clip_norm}));
  const auto take_mean = [&](auto&& data_of) {
    for (Index e = 0; e < plan.graph.parameter_elems; ++e) {
      double mean = 0;
      for (auto& each : all) mean += data_of(*each)[e] / double(replicas);
      for (auto& each : all) data_of(*each)[e] = mean;
    }
  };
  SmallTraining out;
  for (Index number = 1; number <= policy_steps; ++number) {
    double loss = 0;
    for (Index r = 0; r < replicas; ++r) {
      Alone& engine = *all[std::size_t(r)];
      const StepResult result = engine.step(
          plan.micros, [&](auto& micro) { fill_small(micro, whole, number - 1, r); }, small_rule.rate);
      loss += result.loss / double(replicas);
      if (r == 0) out.norms.push_back(result.gradient_norm);
    }
    out.losses.push_back(loss);
    SyncStep step(number, every);
    Policy::synchronise(step);
    for (const SyncEntry& entry : step.entries()) {
      if (entry.what == Shared::parameters)
        take_mean([](auto& engine) { return engine.parameters(); });
      else
        for (int state = 0; state < small_states; ++state) take_mean([state](auto& engine) { return engine.optimizer_state(state); });
    }
  }
  // What rank 0 has: replicas may differ after the last step.
  out.model = all[0]->collect();
  return out;
}

// The engine does what the policy says, clipping included. Policies that sum gradients: as data parallelism with the same means, which
// change nothing where all are equal.
template <class Policy>
void case_04_trains_as_by_hand() {
  for (const Index replicas : {2, 3})
    for (Index every = 1; every <= 4; ++every) {
      const Batch batch{.global = policy_items, .micro = 2};
      const SmallTraining found =
          train_small<PolicyModel>(mesh(Replicas<Policy>{.ranks = replicas, .every = every}), batch, policy_steps, 0.5);
      const SmallTraining wanted = Policy::sums_gradients
                                       ? train_small<PolicyModel>(mesh(DataParallel{.ranks = replicas}), batch, policy_steps, 0.5)
                                       : train_by_hand<Policy>(replicas, every, 0.5);
      if (const std::string wrong = difference(found, wanted, 1e-10); !wrong.empty())
        policy_fails<Policy>(every, text_of("on ", replicas, " replicas, ", wrong.c_str(), " are not those that come out by hand"));
    }
}

// Replicas of several ranks each train as replicas of one.
template <class Policy>
void case_05_works_with_pipelines_and_tensor_ranks() {
  for (const Index every : {1, 3}) {
    const Replicas<Policy> replicas{.ranks = 2, .every = every};
    const Batch batch{.global = policy_items, .micro = 2};
    const SmallTraining plain = train_small<PolicyModel>(mesh(replicas), batch, policy_steps, 0.5);
    const auto check = [&](const char* with, const SmallTraining& found) {
      if (const std::string wrong = difference(found, plain, 1e-10); !wrong.empty())
        policy_fails<Policy>(every, text_of("with ", with, ", ", wrong.c_str(), " differ"));
    };
    check("a pipeline behind it", train_small<PolicyModel>(mesh(replicas, Pipeline<>{.stages = 2}), batch, policy_steps, 0.5));
    check("a pipeline before it", train_small<PolicyModel>(mesh(Pipeline<>{.stages = 3}, replicas), batch, policy_steps, 0.5));
    check("tensor ranks", train_small<PolicyModel, 2>(mesh(replicas, TensorParallel{.ranks = 2}), batch, policy_steps, 0.5));
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
