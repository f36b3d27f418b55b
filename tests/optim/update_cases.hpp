// SPDX-License-Identifier: Apache-2.0
// Update rules against their formulas, element by element in long double, and against PyTorch; what every rule must keep.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include <weft/optim/optimizer.hpp>

#include "kernel/guarded.hpp"
#include "simd/isas.hpp"

namespace weft::test {

// One parameter, as the reference sees it.
struct Element {
  long double parameter = 0, states[2] = {0, 0};
};

// A rule's memory: a range of n elements, with guards around all of it.
template <class Rule, class Real>
struct UpdateRange {
  Guarded<Real> parameters;
  std::vector<Guarded<Real>> states;

  explicit UpdateRange(Index n) : parameters(Noise(7).values<Real>(n)) {
    for (Index s = 0; s < Rule::num_states; ++s) states.emplace_back(n, Real(0));
  }
  // Of the elements from `first` on.
  template <class Isa>
  void update(const Rule& rule, Index first, Index n, const std::vector<Real>& gradients, double decay, const UpdateStep& step) {
    Real* at[Rule::num_states + 1]{};
    for (Index s = 0; s < Rule::num_states; ++s) at[s] = states[std::size_t(s)].data() + first;
    rule.template update<Isa>(n, parameters.data() + first, gradients.data() + first, static_cast<Real* const*>(at), decay, step);
  }
  bool guards_hold() const {
    bool hold = parameters.guards_hold();
    for (const auto& state : states) hold = hold && state.guards_hold();
    return hold;
  }
  bool same_bits(const UpdateRange& other) const {
    const auto same = [](const std::vector<Real>& a, const std::vector<Real>& b) {
      return std::memcmp(a.data(), b.data(), a.size() * sizeof(Real)) == 0;
    };
    bool all = same(parameters.values(), other.parameters.values());
    for (std::size_t s = 0; s < states.size(); ++s) all = all && same(states[s].values(), other.states[s].values());
    return all;
  }
};

// reference(Element&, gradient, decay, step): one update of one element.
template <class Isa, class Real, class Rule, class Reference>
void compare_rule(const Rule& rule, Reference reference) {
  constexpr int updates = 12;
  for (Index n : {0, 1, 2, 3, 5, 8, 15, 16, 17, 33, 64, 131}) {
    for (double decay : {0.0, 0.1}) {
      UpdateRange<Rule, Real> range(n);
      std::vector<Element> expected(std::size_t(n), Element{});
      for (Index i = 0; i < n; ++i) expected[std::size_t(i)].parameter = range.parameters[i];
      Noise noise(std::uint64_t(n + 3));
      for (int u = 1; u <= updates; ++u) {
        const auto gradients = noise.values<Real>(n);
        const UpdateStep step{.rate = rule.rate / u, .gradient_scale = u % 2 ? 0.75 : 3.0, .number = u};
        range.template update<Isa>(rule, 0, n, gradients, decay, step);
        for (Index i = 0; i < n; ++i) reference(expected[std::size_t(i)], (long double)(gradients[std::size_t(i)]), decay, step);
      }
      std::vector<double> parameters, states[2];
      for (const Element& e : expected) {
        parameters.push_back(double(e.parameter));
        for (int s : {0, 1}) states[s].push_back(double(e.states[s]));
      }
      CHECK(largest_difference(range.parameters.values(), parameters) <= rounding<Real>(updates));
      for (Index s = 0; s < Rule::num_states; ++s)
        CHECK(largest_difference(range.states[std::size_t(s)].values(), states[s]) <= rounding<Real>(updates));
      CHECK(range.guards_hold());
    }
  }
}

// A range in one piece, and cut in three ways: the same bits.
template <class Isa, class Real, class Rule>
void compare_cuts(const Rule& rule) {
  constexpr Index n = 211;
  const std::vector<std::vector<Index>> cuts = {{0, 1, n}, {0, 16, 32, 33, 34, 67, 128, 200, n}, {0, 5, 10, 15, 20, 107, 108, 210, n}};
  for (const auto& cut : cuts) {
    UpdateRange<Rule, Real> whole(n), pieces(n);
    Noise noise(11);
    for (int u = 1; u <= 6; ++u) {
      const auto gradients = noise.values<Real>(n);
      const UpdateStep step{.rate = rule.rate, .gradient_scale = 0.3, .number = u};
      whole.template update<Isa>(rule, 0, n, gradients, 0.05, step);
      for (std::size_t c = 0; c + 1 < cut.size(); ++c)
        pieces.template update<Isa>(rule, cut[c], cut[c + 1] - cut[c], gradients, 0.05, step);
    }
    CHECK(whole.same_bits(pieces));
  }
}

// The gradients of the sequences below: four updates of two parameters that start at 1 and -0.75.
inline constexpr double sequence_gradients[4][2] = {{0.5, -2.0}, {-1.25, 0.25}, {2.0, 1e-4}, {0.125, -3.0}};

template <class Real, class Rule>
void compare_sequence(const Rule& rule, const double (&expected)[4][2]) {
  std::vector<Real> p{Real(1), Real(-0.75)}, first(2, Real(0)), second(2, Real(0));
  Real* states[2] = {first.data(), second.data()};
  for (int u = 0; u < 4; ++u) {
    const Real gradients[2] = {Real(sequence_gradients[u][0]), Real(sequence_gradients[u][1])};
    rule.template update<simd::Native>(2, p.data(), static_cast<const Real*>(gradients), static_cast<Real* const*>(states), rule.decay,
                                       UpdateStep{.rate = rule.rate, .gradient_scale = 1, .number = u + 1});
    for (int i : {0, 1}) CHECK(double(p[std::size_t(i)]) == doctest::Approx(expected[u][i]).epsilon(rounding<Real>(4)));
  }
}

}  // namespace weft::test
