// SPDX-License-Identifier: Apache-2.0
// What an optimizer is: an update rule as a value, with no state of its own. The engine owns parameters, gradients and states as flat
// ranges, decides which part of them a rank updates, and calls the rule once for every range that is decayed alike.
//
// A user's optimizer is a struct with
//   static constexpr const char* name; static constexpr int version;   kept in checkpoints; the version goes up when states change meaning
//   static constexpr Index num_states;                                 numbers that are kept for every parameter; zero at the start
//   double rate;                                                       times the schedule's factor: UpdateStep::rate
//   double decay;                                                      what the engine passes to update for a range that is decayed
//   bool decays(bool weight) const;                                    whether a parameter is: weight says that it is a weight or table
//   const char* fault() const;                                         null, or the rule that the settings break, in words
//   template <class Isa, class Real> void update(Index n, Real* parameters, const Real* gradients, Real* const* states, double decay,
//                                                const UpdateStep&) const;
// states: num_states pointers to n numbers each. An element's result must not depend on where a range starts or ends: ranks and buckets
// cut ranges anywhere. What does not depend on the element is best computed once, in double. No allocation. n may be 0.
// Example: tests/optim/optimizer_test.cpp writes Lion.
#pragma once

#include <concepts>
#include <type_traits>

#include "weft/base/error.hpp"
#include "weft/optim/clip.hpp"
#include "weft/optim/rate_schedules.hpp"
#include "weft/optim/update_step.hpp"
#include "weft/simd/isa.hpp"

namespace weft {

template <class Rule, class Real>
concept UpdatesRangesOf = requires(const Rule& rule, Index n, Real* parameters, const Real* gradients, Real* const* states, double decay,
                                   const UpdateStep& step) {
  { rule.template update<simd::Native>(n, parameters, gradients, states, decay, step) } -> std::same_as<void>;
};

// num_states belongs to the type, not to its values: the plan counts memory from it.
template <class Rule>
concept CountsStates = requires {
  { Rule::num_states } -> std::convertible_to<Index>;
  requires !std::is_member_object_pointer_v<decltype(&Rule::num_states)>;
};

template <class Rule>
concept Optimizer = std::copyable<Rule> && CountsStates<Rule> && UpdatesRangesOf<Rule, float> && UpdatesRangesOf<Rule, double> &&
    requires(const Rule& rule) {
  { Rule::name } -> std::convertible_to<const char*>;
  { Rule::version } -> std::convertible_to<int>;
  { rule.rate } -> std::convertible_to<double>;
  { rule.decay } -> std::convertible_to<double>;
  { rule.decays(true) } -> std::same_as<bool>;
  { rule.fault() } -> std::same_as<const char*>;
};

// Says which part of the concept a type lacks: the first one, as one error. True for an optimizer.
template <class Rule>
constexpr bool explain_optimizer() {
  constexpr bool named = requires {
    { Rule::name } -> std::convertible_to<const char*>;
    { Rule::version } -> std::convertible_to<int>;
  };
  constexpr bool counted = CountsStates<Rule>;
  constexpr bool rated = requires(const Rule& rule) {
    { rule.rate } -> std::convertible_to<double>;
    { rule.decay } -> std::convertible_to<double>;
    { rule.decays(true) } -> std::same_as<bool>;
  };
  constexpr bool checked = requires(const Rule& rule) {
    { rule.fault() } -> std::same_as<const char*>;
  };
  constexpr bool updates = UpdatesRangesOf<Rule, float> && UpdatesRangesOf<Rule, double>;
  if constexpr (!named) {
    static_assert(
        named,
        "weft[optim.name]: an optimizer has a name and a version for checkpoints; add static constexpr const char* name, int version");
  } else if constexpr (!counted) {
    static_assert(counted,
                  "weft[optim.states]: an optimizer says how many numbers it keeps for a parameter; add static constexpr Index num_states");
  } else if constexpr (!rated) {
    static_assert(
        rated, "weft[optim.rate]: an optimizer has double rate, double decay and bool decays(bool weight) const; see optim/optimizer.hpp");
  } else if constexpr (!checked) {
    static_assert(checked,
                  "weft[optim.fault]: an optimizer says what is wrong with its settings; add const char* fault() const (null: nothing)");
  } else if constexpr (!updates) {
    static_assert(
        updates,
        "weft[optim.update]: an optimizer updates a range of float or double; add template <class Isa, class Real> void update(Index n, "
        "Real* parameters, const Real* gradients, Real* const* states, double decay, const UpdateStep&) const");
  } else {
    static_assert(Optimizer<Rule>, "weft[optim.copy]: an optimizer is a value that can be copied");
  }
  return Optimizer<Rule>;
}

// Errors: weft[optim.settings].
template <Optimizer Rule>
void require_valid(const Rule& rule) {
  if (const char* fault = rule.fault()) throw Error("optim.settings", std::string(Rule::name) + ": " + fault);
}

}  // namespace weft
