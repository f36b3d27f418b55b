// SPDX-License-Identifier: Apache-2.0
// Dropout on vector registers; contracts in weft/kernel/dropout.hpp.
#pragma once

#include <algorithm>

#include "weft/kernel/cpu/lanes.hpp"
#include "weft/kernel/cpu/philox.hpp"
#include "weft/kernel/dropout.hpp"

namespace weft::kernel::cpu {

// A register's worth of Reals, all bits set where the word is at least the threshold.
template <class Isa, class Real>
WEFT_ALWAYS_INLINE inline simd::Mask<Isa, Real> kept_lanes(const std::uint32_t* words, std::uint32_t threshold) {
  typedef std::uint32_t Words __attribute__((vector_size(simd::lanes<Isa, Real> * 4)));
  Words word;
  __builtin_memcpy(&word, words, sizeof word);
  return __builtin_convertvector(word >= threshold, simd::Mask<Isa, Real>);
}

template <class Isa, class Real>
inline void dropout_forward(Index rows, Index width, Index first_row, double probability, const random::Stream& stream, const Real* x,
                            Real* y) {
  constexpr Index chunk = 1024;  // words drawn ahead: enough to hide the start, few enough for the stack and the first-level cache
  alignas(alignment_bytes) std::uint32_t drawn[chunk + simd::lanes<Isa, Real>];
  const random::Words words(stream);
  const std::uint32_t threshold = dropout_threshold(probability);
  const Real scale = Real(1 / (1 - probability));
  const Index n = rows * width;
  for (Index start = 0; start < n; start += chunk) {
    const Index count = std::min(chunk, n - start);
    write_words<Isa>(words, std::uint64_t(first_row * width + start), count, drawn);
    for_lanes<Isa, Real>(count, [&](Index i, auto some) WEFT_ALWAYS_INLINE {
      const auto value = get<Isa>(x + start + i, some) * scale;
      put<Isa>(y + start + i, kept_lanes<Isa, Real>(drawn + i, threshold) ? value : decltype(value + value){}, some);
    });
  }
}

template <class Isa, class Real>
inline void dropout_backward(Index rows, Index width, Index first_row, double probability, const random::Stream& stream, const Real* dy,
                             Real* dx) {
  dropout_forward<Isa>(rows, width, first_row, probability, stream, dy, dx);
}

}  // namespace weft::kernel::cpu
