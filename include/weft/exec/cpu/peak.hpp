// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <utility>

#include "weft/simd/vector.hpp"

namespace weft {

// Makes the compiler believe that a value is used.
template <class Vector>
inline void asm_use(Vector& value) {
  asm volatile("" : "+v"(value));
}

// Multiply-adds on registers only: `rounds` rounds of as many independent vectors as hide the latency. Returns the flops done.
template <class Isa, class Real>
inline double multiply_add_rounds(Index rounds) {
  constexpr int chains = Isa::num_registers >= 32 ? 24 : 12;
  [&]<int... i>(std::integer_sequence<int, i...>) {  // unrolled, so that the sums stay in registers
    simd::Vector<Isa, Real> sums[chains]{simd::broadcast<Isa>(Real(i))...};
    simd::Vector<Isa, Real> factor = simd::broadcast<Isa>(Real(1));
    asm_use(factor);  // not a constant: the compiler may not fold the chains
    for (Index r = 0; r < rounds; ++r) ((sums[i] = sums[i] * factor + factor), ...);
    (asm_use(sums[i]), ...);
  }
  (std::make_integer_sequence<int, chains>{});
  return double(rounds) * chains * 2 * double(simd::lanes<Isa, Real>);
}

// Flops a second that one core reaches with multiply-adds on registers: the limit that a training step is held against. The best of a
// few short runs, since other work on the machine can only lower it. Cost: `seconds`.
template <class Isa, class Real>
inline double measure_peak_flops(double seconds = 0.03) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  do {
    const auto start = Clock::now();
    const double flops = multiply_add_rounds<Isa, Real>(20000);
    const double rate = flops / std::chrono::duration<double>(Clock::now() - start).count();
    best = rate > best ? rate : best;
  } while (Clock::now() < until);
  return best;
}

}  // namespace weft
