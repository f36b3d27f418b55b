// SPDX-License-Identifier: Apache-2.0
#include <weft/optim/adamw.hpp>

#include "optim/update_cases.hpp"

using namespace weft;
using namespace weft::test;

namespace {

constexpr AdamW rules[] = {
    {.rate = 0.01}, {.rate = 0.1, .beta1 = 0.5, .beta2 = 0.9, .epsilon = 0.1}, {.rate = 0.1, .beta1 = 0, .beta2 = 0.95, .epsilon = 1e-3}};

}  // namespace

TEST_CASE_TEMPLATE("adamw_equals_its_formula", T, WEFT_TEST_ISAS) {
  for (const AdamW& rule : rules) {
    compare_rule<typename T::Isa, typename T::Real>(rule, [&](Element& e, long double gradient, double decay, const UpdateStep& step) {
      const long double beta1 = rule.beta1, beta2 = rule.beta2;
      long double g = gradient * step.gradient_scale;
      e.parameter *= 1 - (long double)(step.rate) * decay;
      long double &m = e.states[0], &v = e.states[1];
      m = beta1 * m + (1 - beta1) * g;
      v = beta2 * v + (1 - beta2) * g * g;
      const long double m_corrected = m / (1 - std::pow(beta1, (long double)(step.number)));
      const long double v_corrected = v / (1 - std::pow(beta2, (long double)(step.number)));
      e.parameter -= step.rate * m_corrected / (std::sqrt(v_corrected) + rule.epsilon);
    });
  }
}

TEST_CASE_TEMPLATE("adamw_with_a_cut_range_gives_the_same_bits", T, WEFT_TEST_ISAS) {
  for (const AdamW& rule : rules) compare_cuts<typename T::Isa, typename T::Real>(rule);
}

// By torch.optim.AdamW in float64.
TEST_CASE_TEMPLATE("adamw_gives_the_sequences_of_torch", Real, float, double) {
  compare_sequence<Real>(AdamW{.rate = 0.1, .beta2 = 0.99, .decay = 0.05}, {{0.895000002, -0.6462500005},
                                                                            {0.9346742826906113, -0.5856392707833553},
                                                                            {0.8961776341407618, -0.5382588302484774},
                                                                            {0.8609563274898417, -0.4672910682166661}});
  compare_sequence<Real>(AdamW{.rate = 0.1, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 0.5, .decay = 0.2},
                         {{0.93, -0.655},
                          {0.9437269625223953, -0.6025794184548934},
                          {0.896600165055384, -0.563445067387257},
                          {0.8552853235451603, -0.49610908713188673}});
}

// The first step has the size of the rate, whatever the size of the gradient.
TEST_CASE_TEMPLATE("adamw_in_its_first_update_moves_by_the_rate", Real, float, double) {
  for (Real gradient : {Real(-1e-4), Real(3), Real(1e6)}) {
    Real p = 1, m = 0, v = 0;
    Real* states[] = {&m, &v};
    AdamW{.epsilon = 0}.update<simd::Native>(1, &p, static_cast<const Real*>(&gradient), static_cast<Real* const*>(states), 0,
                                             {.rate = 0.25});
    CHECK(double(p) == doctest::Approx(gradient > 0 ? 0.75 : 1.25).epsilon(rounding<Real>(4)));
  }
}

TEST_CASE("adamw_with_senseless_settings_is_refused") {
  CHECK(AdamW{}.fault() == nullptr);
  CHECK_THROWS_WITH_AS(require_valid(AdamW{.beta2 = 1}), "weft[optim.settings]: adamw: beta2 is at least 0 and less than 1", Error);
  CHECK(AdamW{.beta1 = -0.1}.fault() != nullptr);
  CHECK(AdamW{.epsilon = -1}.fault() != nullptr);
  CHECK(AdamW{.rate = -1}.fault() != nullptr);
  CHECK(AdamW{.decay = -1}.fault() != nullptr);
}

TEST_CASE("adamw_without_a_gradient_decays_and_keeps_its_moments") {
  const double zero = 0;
  double p = 2, m = 0, v = 0;
  double* states[] = {&m, &v};
  AdamW{}.update<simd::Native>(1, &p, &zero, static_cast<double* const*>(states), 0.5, {.rate = 0.1});
  CHECK(p == doctest::Approx(2 * (1 - 0.1 * 0.5)).epsilon(1e-15));
  CHECK((m == 0 && v == 0));
}
