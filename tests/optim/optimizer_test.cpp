// SPDX-License-Identifier: Apache-2.0
// The concept, tried with a user's rule, an archetype and near misses.
#include <weft/optim/optim.hpp>

#include "optim/update_cases.hpp"

using namespace weft;
using namespace weft::test;

namespace {

// A user's optimizer. Source: Chen et al., arXiv 2302.06675: the sign of a mean of gradients, decay apart.
struct Lion {
  static constexpr const char* name = "lion";
  static constexpr int version = 1;
  static constexpr Index num_states = 1;

  double rate = 1e-4, beta1 = 0.9, beta2 = 0.99, decay = 0.1;

  constexpr bool decays(bool weight) const { return weight; }
  constexpr const char* fault() const { return rate >= 0 ? nullptr : "rate is not negative"; }

  template <class Isa, class Real>
  void update(Index n, Real* parameters, const Real* gradients, Real* const* states, double range_decay, const UpdateStep& step) const {
    const Real kept = Real(1 - step.rate * range_decay), scale = Real(step.gradient_scale), move = Real(step.rate);
    const Real b1 = Real(beta1), b2 = Real(beta2);
    Real* m = states[0];
    for (Index i = 0; i < n; ++i) {
      const Real g = gradients[i] * scale, direction = b1 * m[i] + (1 - b1) * g;
      parameters[i] = kept * parameters[i] - move * Real((direction > 0) - (direction < 0));
      m[i] = b2 * m[i] + (1 - b2) * g;
    }
  }
};

// The least that an optimizer is, from which each near miss leaves one thing out.
struct Named {
  static constexpr const char* name = "least";
  static constexpr int version = 1;
};
struct Counted {
  static constexpr Index num_states = 0;
};
struct Rated {
  double rate = 0, decay = 0;
  bool decays(bool) const { return false; }
};
struct Checked {
  const char* fault() const { return nullptr; }
};
struct Updates {
  template <class Isa, class Real>
  void update(Index, Real*, const Real*, Real* const*, double, const UpdateStep&) const {}
};
struct UpdatesFloatOnly {
  template <class Isa>
  void update(Index, float*, const float*, float* const*, double, const UpdateStep&) const {}
};
struct UpdatesItself {
  template <class Isa, class Real>
  void update(Index, Real*, const Real*, Real* const*, double, const UpdateStep&) {}
};
struct CountedByMember {
  Index num_states = 0;
};

template <class... Parts>
struct Joined : Parts... {};

static_assert(Optimizer<Joined<Named, Counted, Rated, Checked, Updates>>, "the archetype is an optimizer");
static_assert(!Optimizer<Joined<Counted, Rated, Checked, Updates>>, "without a name");
static_assert(!Optimizer<Joined<Named, Rated, Checked, Updates>>, "without a number of states");
static_assert(!Optimizer<Joined<Named, CountedByMember, Rated, Checked, Updates>>, "the number of states is static");
static_assert(!Optimizer<Joined<Named, Counted, Checked, Updates>>, "without a rate");
static_assert(!Optimizer<Joined<Named, Counted, Rated, Updates>>, "without a check of its settings");
static_assert(!Optimizer<Joined<Named, Counted, Rated, Checked>>, "without an update");
static_assert(!Optimizer<Joined<Named, Counted, Rated, Checked, UpdatesFloatOnly>>, "for float only");
static_assert(!Optimizer<Joined<Named, Counted, Rated, Checked, UpdatesItself>>, "a rule has no state of its own");
static_assert(!Optimizer<int>, "not even a class");

static_assert(explain_optimizer<Sgd>() && explain_optimizer<Adam>() && explain_optimizer<AdamW>() && explain_optimizer<Lion>(),
              "they all are");

// Values that a template can be given (clang 14 takes floating-point members within a class).
template <AdamW rule>
struct Holds {
  static constexpr double rate = rule.rate;
};
static_assert(Holds<AdamW{.rate = 0.5}>::rate == 0.5, "rules are structural values");
static_assert(AdamW{} == AdamW{} && !(AdamW{} == AdamW{.rate = 2}) && Sgd{} == Sgd{} && Adam{} == Adam{}, "rules can be compared");

}  // namespace

TEST_CASE_TEMPLATE("lion_equals_its_formula", T, WEFT_TEST_ISAS) {
  const Lion rule{.rate = 0.01};
  compare_rule<typename T::Isa, typename T::Real>(rule, [&](Element& e, long double gradient, double decay, const UpdateStep& step) {
    long double& m = e.states[0];
    const long double g = gradient * step.gradient_scale, direction = rule.beta1 * m + (1 - rule.beta1) * g;
    e.parameter = (1 - step.rate * decay) * e.parameter - step.rate * ((direction > 0) - (direction < 0));
    m = rule.beta2 * m + (1 - rule.beta2) * g;
  });
  compare_cuts<typename T::Isa, typename T::Real>(rule);
}

TEST_CASE("decay_is_for_weights_unless_all_is_said") {
  CHECK(AdamW{}.decays(true));
  CHECK_FALSE(AdamW{}.decays(false));
  CHECK(AdamW{.decay_on = DecayOn::all}.decays(false));
  CHECK_FALSE(Adam{}.decays(false));
  CHECK(Adam{.decay_on = DecayOn::all}.decays(false));
  CHECK_FALSE(Sgd{}.decays(false));
  CHECK(Sgd{.decay_on = DecayOn::all}.decays(false));
}

TEST_CASE_TEMPLATE("rule_with_a_gradient_that_is_nan_shows_it", Rule, Sgd, Adam, AdamW) {
  float p[2] = {1, 1}, first[2] = {0, 0}, second[2] = {0, 0};
  const float g[2] = {std::numeric_limits<float>::quiet_NaN(), 0};
  float* states[] = {first, second};
  Rule{}.template update<simd::Native>(2, p, static_cast<const float*>(g), static_cast<float* const*>(states), 0, UpdateStep{.rate = 0.1});
  CHECK(std::isnan(p[0]));
  CHECK(p[1] == 1);
}

TEST_CASE_TEMPLATE("rule_on_an_empty_range_touches_nothing", Rule, Sgd, Adam, AdamW) {
  double* states[2] = {nullptr, nullptr};
  Rule rule{};
  if constexpr (requires { rule.momentum; }) rule.momentum = 0.9;
  rule.template update<simd::Native>(0, static_cast<double*>(nullptr), static_cast<const double*>(nullptr),
                                     static_cast<double* const*>(states), 0.1, UpdateStep{.rate = 0.1});
}

// Gradients of zero for long, as a table has for tokens that no batch holds.
TEST_CASE_TEMPLATE("rule_whose_state_fades_away_ends_at_zero_and_not_at_a_denormal_number", Rule, Sgd, Adam, AdamW) {
  float p[3] = {1, 1, 1}, first[3] = {0, 0, 0}, second[3] = {0, 0, 0};
  float* states[] = {first, second};
  Rule rule{};
  if constexpr (requires { rule.momentum; })
    rule.momentum = 0.9;
  else
    rule.beta2 = 0.9;
  for (int u = 1; u <= 1000; ++u) {
    const float gradient = u == 1 ? 0.5F : 0.0F, g[3] = {gradient, -gradient, 0};
    rule.template update<simd::Native>(3, p, static_cast<const float*>(g), static_cast<float* const*>(states), 0,
                                       UpdateStep{.rate = 0.01, .number = u});
    for (int i : {0, 1, 2}) REQUIRE((first[i] == 0 || std::isnormal(first[i])));
    for (int i : {0, 1, 2}) REQUIRE((second[i] == 0 || std::isnormal(second[i])));
  }
  CHECK((first[0] == 0 && first[1] == 0 && second[0] == 0));
  CHECK(p[0] < 1);
}
