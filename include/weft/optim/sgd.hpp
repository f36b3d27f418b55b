// SPDX-License-Identifier: Apache-2.0
// Stochastic gradient descent with momentum.
#pragma once

#include "weft/kernel/cpu/lanes.hpp"
#include "weft/optim/faded.hpp"
#include "weft/optim/optimizer.hpp"

namespace weft {

// With g the scaled gradient, as torch.optim.SGD with dampening 0:
//   g += decay · p;   momentum ≠ 0:  b = g in the first update, else momentum · b + g;   g = nesterov ? g + momentum · b : b;
//   p -= rate · g
// Cost: an element is read 3 times and written twice (momentum 0: read twice, written once; the state is not touched).
struct Sgd {
  static constexpr const char* name = "sgd";
  static constexpr int version = 1;
  static constexpr Index num_states = 1;  // b

  double rate = 1e-2;
  double momentum = 0;
  bool nesterov = false;
  double decay = 0;
  DecayOn decay_on = DecayOn::weights;

  constexpr bool decays(bool weight) const { return weight || decay_on == DecayOn::all; }
  constexpr const char* fault() const {
    if (!(rate >= 0)) return "rate is not negative";
    if (!(momentum >= 0)) return "momentum is not negative";
    if (nesterov && momentum == 0) return "nesterov needs momentum > 0";
    if (!(decay >= 0)) return "decay is not negative";
    return nullptr;
  }
  bool operator==(const Sgd&) const = default;

  template <class Isa, class Real>
  void update(Index n, Real* parameters, const Real* gradients, Real* const* states, double range_decay, const UpdateStep& step) const {
    using kernel::cpu::get, kernel::cpu::put;
    const Real step_rate = Real(step.rate), gradient_scale = Real(step.gradient_scale), decay_rate = Real(range_decay),
               kept = Real(momentum);
    if (momentum == 0) {
      kernel::cpu::for_lanes<Isa, Real>(n, [=](Index i, auto count) WEFT_ALWAYS_INLINE {
        const auto p = get<Isa>(static_cast<const Real*>(parameters + i), count);
        const auto g = get<Isa>(gradients + i, count) * gradient_scale + decay_rate * p;
        put<Isa>(parameters + i, p - step_rate * g, count);
      });
      return;
    }
    Real* const buffer = states[0];
    constexpr Real least = std::numeric_limits<Real>::min();
    const bool first = step.number == 1, looks_ahead = nesterov;
    kernel::cpu::for_lanes<Isa, Real>(n, [=](Index i, auto count) WEFT_ALWAYS_INLINE {
      const auto p = get<Isa>(static_cast<const Real*>(parameters + i), count);
      const auto g = get<Isa>(gradients + i, count) * gradient_scale + decay_rate * p;
      const auto b = first ? g : faded_to_zero(kept * get<Isa>(static_cast<const Real*>(buffer + i), count) + g, least);
      put<Isa>(buffer + i, b, count);
      put<Isa>(parameters + i, p - step_rate * (looks_ahead ? g + kept * b : b), count);
    });
  }
};

}  // namespace weft
