// SPDX-License-Identifier: Apache-2.0
// The loop that Adam and AdamW share.
#pragma once

#include <cmath>

#include "weft/kernel/cpu/lanes.hpp"
#include "weft/optim/faded.hpp"
#include "weft/optim/optimizer.hpp"
#include "weft/simd/sqrt.hpp"

namespace weft {

// Where the decay acts: into the gradient, and so through the moments, or on the parameter alone.
enum class DecayBy : char { gradient, parameter };

struct Moments {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;

  constexpr const char* fault() const {
    if (!(beta1 >= 0 && beta1 < 1)) return "beta1 is at least 0 and less than 1";
    if (!(beta2 >= 0 && beta2 < 1)) return "beta2 is at least 0 and less than 1";
    if (!(epsilon >= 0)) return "epsilon is not negative";
    return nullptr;
  }
};

// With t = step.number, c1 = 1 - beta1^t, c2 = √(1 - beta2^t):
//   m += (1 - beta1)(g - m);   v = beta2 · v + (1 - beta2) g²;   p -= rate / c1 · m / (√v / c2 + epsilon)
// computed as rate · c2 / c1 · m / (√v + epsilon · c2): the corrections leave the loop, and are taken in double.
// Moments that have faded below the smallest normal number become 0; v only where epsilon covers its root.
// Cost: an element is read 4 times and written 3 times.
template <DecayBy decay_by, class Isa, class Real>
inline void update_moments(const Moments& moments, Index n, Real* parameters, const Real* gradients, Real* m, Real* v, double decay,
                           const UpdateStep& step) {
  using kernel::cpu::get, kernel::cpu::put;
  const double correction1 = 1 - std::pow(moments.beta1, double(step.number));
  const double correction2 = std::sqrt(1 - std::pow(moments.beta2, double(step.number)));
  const Real step_rate = Real(step.rate * correction2 / correction1), epsilon = Real(moments.epsilon * correction2);
  const Real gradient_scale = Real(step.gradient_scale), decay_rate = Real(decay), kept = Real(1 - step.rate * decay);
  const Real new1 = Real(1 - moments.beta1), old2 = Real(moments.beta2), new2 = Real(1 - moments.beta2);
  constexpr Real least = std::numeric_limits<Real>::min();
  const Real least_v = moments.epsilon >= 1e-10 ? least : Real(0);
  kernel::cpu::for_lanes<Isa, Real>(n, [=](Index i, auto count) WEFT_ALWAYS_INLINE {
    const auto p = get<Isa>(static_cast<const Real*>(parameters + i), count);
    auto g = get<Isa>(gradients + i, count) * gradient_scale;
    if constexpr (decay_by == DecayBy::gradient) g += decay_rate * p;
    const auto m_before = get<Isa>(static_cast<const Real*>(m + i), count);
    const auto m_now = faded_to_zero(m_before + new1 * (g - m_before), least);
    const auto v_now = faded_to_zero(old2 * get<Isa>(static_cast<const Real*>(v + i), count) + new2 * (g * g), least_v);
    const auto move = step_rate * m_now / (simd::sqrt<Isa, Real>(v_now) + epsilon);
    put<Isa>(m + i, m_now, count);
    put<Isa>(v + i, v_now, count);
    if constexpr (decay_by == DecayBy::gradient)
      put<Isa>(parameters + i, p - move, count);
    else
      put<Isa>(parameters + i, kept * p - move, count);
  });
}

}  // namespace weft
