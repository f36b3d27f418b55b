// SPDX-License-Identifier: Apache-2.0
#include <weft/optim/adam.hpp>

#include "optim/update_cases.hpp"

using namespace weft;
using namespace weft::test;

namespace {

constexpr Adam rules[] = {
    {.rate = 0.01}, {.rate = 0.1, .beta1 = 0.5, .beta2 = 0.9, .epsilon = 0.1}, {.rate = 0.1, .beta1 = 0, .beta2 = 0.95, .epsilon = 1e-3}};

}  // namespace

TEST_CASE_TEMPLATE("adam_equals_its_formula", T, WEFT_TEST_ISAS) {
  for (const Adam& rule : rules) {
    compare_rule<typename T::Isa, typename T::Real>(rule, [&](Element& e, long double gradient, double decay, const UpdateStep& step) {
      const long double beta1 = rule.beta1, beta2 = rule.beta2;
      long double g = gradient * step.gradient_scale + decay * e.parameter;
      long double &m = e.states[0], &v = e.states[1];
      m = beta1 * m + (1 - beta1) * g;
      v = beta2 * v + (1 - beta2) * g * g;
      const long double m_corrected = m / (1 - std::pow(beta1, (long double)(step.number)));
      const long double v_corrected = v / (1 - std::pow(beta2, (long double)(step.number)));
      e.parameter -= step.rate * m_corrected / (std::sqrt(v_corrected) + rule.epsilon);
    });
  }
}

TEST_CASE_TEMPLATE("adam_with_a_cut_range_gives_the_same_bits", T, WEFT_TEST_ISAS) {
  for (const Adam& rule : rules) compare_cuts<typename T::Isa, typename T::Real>(rule);
}

// By torch.optim.Adam in float64.
TEST_CASE_TEMPLATE("adam_gives_the_sequences_of_torch", Real, float, double) {
  compare_sequence<Real>(Adam{.rate = 0.1}, {{0.900000002, -0.6500000005},
                                             {0.9442215279138955, -0.5927465433289555},
                                             {0.9102996651190383, -0.5484926276729744},
                                             {0.879539259389576, -0.48003816231963964}});
  compare_sequence<Real>(Adam{.rate = 0.1, .beta2 = 0.99, .decay = 0.05}, {{0.9000000018181817, -0.6500000004907975},
                                                                           {0.9398314604390556, -0.591145308061394},
                                                                           {0.9030437358834048, -0.5446284402954635},
                                                                           {0.8688695199631796, -0.4754168864577094}});
}

// The first step has the size of the rate, whatever the size of the gradient.
TEST_CASE_TEMPLATE("adam_in_its_first_update_moves_by_the_rate", Real, float, double) {
  for (Real gradient : {Real(-1e-4), Real(3), Real(1e6)}) {
    Real p = 1, m = 0, v = 0;
    Real* states[] = {&m, &v};
    Adam{.epsilon = 0}.update<simd::Native>(1, &p, static_cast<const Real*>(&gradient), static_cast<Real* const*>(states), 0,
                                            {.rate = 0.25});
    CHECK(double(p) == doctest::Approx(gradient > 0 ? 0.75 : 1.25).epsilon(rounding<Real>(4)));
  }
}

TEST_CASE("adam_with_senseless_settings_is_refused") {
  CHECK(Adam{}.fault() == nullptr);
  CHECK_THROWS_WITH_AS(require_valid(Adam{.beta2 = 1}), "weft[optim.settings]: adam: beta2 is at least 0 and less than 1", Error);
  CHECK(Adam{.beta1 = -0.1}.fault() != nullptr);
  CHECK(Adam{.epsilon = -1}.fault() != nullptr);
  CHECK(Adam{.rate = -1}.fault() != nullptr);
  CHECK(Adam{.decay = -1}.fault() != nullptr);
}
