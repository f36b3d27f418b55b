// SPDX-License-Identifier: Apache-2.0
// Compares a model's gradients with finite differences of its loss, in float64: the test that every layer has to pass, also a user's.
#pragma once

#include <cmath>
#include <string>

#include "weft/comm/self/self_communicator.hpp"
#include "weft/kernel/cpu/gemm.hpp"
#include "weft/optim/sgd.hpp"
#include "weft/plan/plan.hpp"
#include "weft/run/engine.hpp"

namespace weft {

struct GradientCheck {
  double worst = 0;   // largest |difference| / max(|gradient| of its parameter, 1e-3 · |gradient| of any), over all parameters
  std::string where;  // the parameter, and the element
  Index num_checked = 0;
};

struct GradientCheckOptions {
  double step = 1e-5;             // of the central difference, relative to 1
  Index most_per_parameter = 24;  // elements that are tried of a parameter, evenly spread
  Index num_micros = 1;
  std::uint64_t seed = 1;
};

// fill(MicroBatchInput<double>&) gives the data; it is called many times and must give the same each time. Every parameter is moved a
// little, so that initial values of zero or one hide nothing. Cost: two steps an element tried.
template <class Model, class Loss, class Fill>
GradientCheck check_gradients(const Batch& batch, Fill&& fill, const GradientCheckOptions& options = {}) {
  using TestRecipe = Recipe<Fp64, Loss, Sgd>;
  using TestEngine = Engine<Cpu<kernel::cpu::Builtin>, double, SelfCommunicator, Sgd>;
  TestEngine engine(plan_at_start<Model, TestRecipe>(mesh(), batch), model_code<typename TestEngine::Kernels, double, Model, Loss>(),
                    SelfCommunicator{}, Sgd{.rate = 0, .momentum = 0}, {.seed = options.seed, .poison = true});
  const auto loss = [&] {
    engine.set_num_steps(0);  // the same random streams
    return engine.step(options.num_micros, fill, 0).loss;
  };
  const random::Stream noise{.seed = options.seed, .purpose = random::Purpose::initial_weights, .step = 1, .layer = 0};
  std::uint64_t drawn = 0;
  std::vector<double> moves;
  engine.for_each_parameter([&](const std::string&, const ParameterFacts& facts, double* data, double* gradient) {
    if (!gradient) return;
    moves.resize(std::size_t(facts.elems()));
    random::fill_normal(noise, drawn, facts.elems(), 0, 0.1, moves.data());
    for (Index e = 0; e < facts.elems(); ++e) data[e] += moves[std::size_t(e)];
    drawn += std::uint64_t(facts.elems());
  });
  loss();
  const std::vector<double> gradients(engine.gradients(), engine.gradients() + engine.plan().graph.parameter_elems);
  const double scale = engine.gradient_scale();
  double largest_of_all = 1e-5;  // a gradient that is zero by construction (a bias before batch norm) is held against the others
  for (double gradient : gradients) largest_of_all = std::max(largest_of_all, std::abs(gradient * scale));
  GradientCheck check;
  engine.for_each_parameter([&](const std::string& path, const ParameterFacts& facts, double* data, double* gradient) {
    if (!gradient) return;
    const double* own = gradients.data() + (gradient - engine.gradients());
    double largest = 1e-3 * largest_of_all;
    for (Index e = 0; e < facts.elems(); ++e) largest = std::max(largest, std::abs(own[e] * scale));
    const Index stride = std::max<Index>(1, facts.elems() / options.most_per_parameter);
    for (Index e = 0; e < facts.elems(); e += stride) {
      const double value = data[e];
      data[e] = value + options.step;
      const double up = loss();
      data[e] = value - options.step;
      const double down = loss();
      data[e] = value;
      const double error = std::abs((up - down) / (2 * options.step) - own[e] * scale) / largest;
      ++check.num_checked;
      if (!(error <= check.worst)) check.worst = error, check.where = path + "[" + std::to_string(e) + "]";
    }
  });
  return check;
}

}  // namespace weft
