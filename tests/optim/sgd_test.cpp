// SPDX-License-Identifier: Apache-2.0
#include <weft/optim/sgd.hpp>

#include "optim/update_cases.hpp"

using namespace weft;
using namespace weft::test;

namespace {

constexpr Sgd sgds[] = {{.rate = 0.1}, {.rate = 0.1, .momentum = 0.9}, {.rate = 0.1, .momentum = 0.5, .nesterov = true}};

}  // namespace

TEST_CASE_TEMPLATE("sgd_equals_its_formula", T, WEFT_TEST_ISAS) {
  for (const Sgd& rule : sgds) {
    compare_rule<typename T::Isa, typename T::Real>(rule, [&](Element& e, long double gradient, double decay, const UpdateStep& step) {
      long double g = gradient * step.gradient_scale + decay * e.parameter;
      if (rule.momentum != 0) {
        long double& b = e.states[0];
        b = step.number == 1 ? g : rule.momentum * b + g;
        g = rule.nesterov ? g + rule.momentum * b : b;
      }
      e.parameter -= step.rate * g;
    });
  }
}

TEST_CASE_TEMPLATE("sgd_with_a_cut_range_gives_the_same_bits", T, WEFT_TEST_ISAS) {
  for (const Sgd& rule : sgds) compare_cuts<typename T::Isa, typename T::Real>(rule);
}

// By torch.optim.SGD in float64; the first row of each by hand as well: 1 - 0.1 (0.5 + 0.05) = 0.945, with Nesterov
// 1 - 0.1 (0.55 + 0.9 · 0.55) = 0.8955.
TEST_CASE_TEMPLATE("sgd_gives_the_sequences_of_torch", Real, float, double) {
  compare_sequence<Real>(Sgd{.rate = 0.1}, {{0.95, -0.55}, {1.075, -0.575}, {0.875, -0.57501}, {0.8625, -0.27501}});
  compare_sequence<Real>(Sgd{.rate = 0.1, .decay = 0.05},
                         {{0.945, -0.54625}, {1.065275, -0.56851875}, {0.859948625, -0.56568615625}, {0.843148881875, -0.26285772546875}});
  compare_sequence<Real>(Sgd{.rate = 0.1, .momentum = 0.9, .decay = 0.05},
                         {{0.945, -0.54625}, {1.015775, -0.38514375}, {0.874393625, -0.23823240625}, {0.730278419375, 0.19517896515625}});
  compare_sequence<Real>(
      Sgd{.rate = 0.1, .momentum = 0.9, .nesterov = true, .decay = 0.05},
      {{0.8955, -0.362875}, {1.07994275, -0.2418901875}, {0.747211518875, -0.10985783696875}, {0.6017646438081875, 0.5789354221168284}});
}

TEST_CASE("sgd_without_momentum_leaves_its_state_alone") {
  float p = 1;
  const float g = 1;
  Sgd{}.update<simd::Native>(1, &p, &g, static_cast<float* const*>(nullptr), 0, {.rate = 0.5});
  CHECK(p == 0.5F);
}

TEST_CASE("sgd_in_its_first_update_does_not_read_the_buffer") {
  Guarded<float> buffer(3);  // NaN
  float p[3] = {1, 2, 3};
  const float g[3] = {1, -1, 0.5F};
  float* states[] = {buffer.data()};
  Sgd{.momentum = 0.9}.update<simd::Native>(3, p, static_cast<const float*>(g), static_cast<float* const*>(states), 0, {.rate = 1});
  CHECK((p[0] == 0 && p[1] == 3 && p[2] == 2.5F));
  CHECK((buffer[0] == 1 && buffer[1] == -1 && buffer[2] == 0.5F));
}

TEST_CASE("sgd_with_senseless_settings_is_refused") {
  CHECK(Sgd{}.fault() == nullptr);
  CHECK_THROWS_WITH_AS(require_valid(Sgd{.nesterov = true}), "weft[optim.settings]: sgd: nesterov needs momentum > 0", Error);
  CHECK(Sgd{.rate = -1}.fault() != nullptr);
  CHECK(Sgd{.momentum = -0.1}.fault() != nullptr);
  CHECK(Sgd{.decay = std::numeric_limits<double>::quiet_NaN()}.fault() != nullptr);
}
