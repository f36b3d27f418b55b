// SPDX-License-Identifier: Apache-2.0
// Adam: steps of the size of the rate, by running means of gradient and squared gradient.
#pragma once

#include "weft/optim/moments.hpp"

namespace weft {

// g += decay · p (an L2 penalty, which the moments then rescale), then update_moments, as torch.optim.Adam.
// Source: Kingma and Ba, arXiv 1412.6980, algorithm 1.
struct Adam {
  static constexpr const char* name = "adam";
  static constexpr int version = 1;
  static constexpr Index num_states = 2;  // means of gradient and squared gradient, not corrected

  double rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double decay = 0;
  DecayOn decay_on = DecayOn::weights;

  constexpr bool decays(bool weight) const { return weight || decay_on == DecayOn::all; }
  constexpr const char* fault() const {
    if (!(rate >= 0)) return "rate is not negative";
    if (!(decay >= 0)) return "decay is not negative";
    return Moments{beta1, beta2, epsilon}.fault();
  }
  bool operator==(const Adam&) const = default;

  template <class Isa, class Real>
  void update(Index n, Real* parameters, const Real* gradients, Real* const* states, double range_decay, const UpdateStep& step) const {
    update_moments<DecayBy::gradient, Isa>({beta1, beta2, epsilon}, n, parameters, gradients, states[0], states[1], range_decay, step);
  }
};

}  // namespace weft
