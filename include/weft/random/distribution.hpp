// SPDX-License-Identifier: Apache-2.0
// Words as numbers of a distribution. Element i of a stream is the same whoever asks for it.
#pragma once

#include <cmath>

#include "weft/base/error.hpp"
#include "weft/random/stream.hpp"

namespace weft::random {

// Uniform in [0, 1): 24 bits as a float, 32 as a double.
template <class Real>
WEFT_HOST_DEVICE constexpr Real uniform(std::uint32_t word) {
  if constexpr (sizeof(Real) == 4)
    return Real(word >> 8) * Real(0x1p-24);
  else
    return Real(word) * Real(0x1p-32);
}

// Uniform in (0, 1]: for logarithms.
template <class Real>
WEFT_HOST_DEVICE constexpr Real uniform_positive(std::uint32_t word) {
  if constexpr (sizeof(Real) == 4)
    return Real((word >> 8) + 1) * Real(0x1p-24);
  else
    return (Real(word) + 1) * Real(0x1p-32);
}

// out[i] = element first + i, scaled to [least, most).
template <class Real>
inline void fill_uniform(const Stream& stream, std::uint64_t first, Index count, double least, double most, Real* out) {
  const Words words(stream);
  PhiloxBlock block;
  for (Index i = 0; i < count; ++i) {
    const std::uint64_t element = first + std::uint64_t(i);
    if (i == 0 || element % 4 == 0) block = words.block(element / 4);
    out[i] = Real(least + (most - least) * uniform<double>(block.word[element % 4]));
  }
}

// out[i] = mean + deviation · element first + i of a normal stream, at most 6.7 deviations out.
// Elements 2j and 2j + 1 are the two numbers that the words 2j and 2j + 1 give. In double whatever Real is.
// Source: G. Box, M. Muller, A Note on the Generation of Random Normal Deviates, 1958.
template <class Real>
inline void fill_normal(const Stream& stream, std::uint64_t first, Index count, double mean, double deviation, Real* out) {
  const Words words(stream);
  const std::uint64_t end = first + std::uint64_t(count);
  for (std::uint64_t pair = first / 2 * 2; pair < end; pair += 2) {
    const PhiloxBlock block = words.block(pair / 4);
    const double radius = deviation * std::sqrt(-2.0 * std::log(uniform_positive<double>(block.word[pair % 4])));
    const double angle = 6.283185307179586 * uniform<double>(block.word[pair % 4 + 1]);
    if (pair >= first) out[pair - first] = Real(mean + radius * std::cos(angle));
    if (pair + 1 >= first && pair + 1 < end) out[pair + 1 - first] = Real(mean + radius * std::sin(angle));
  }
}

// An integer in [0, bound), each equally likely: element `element` of a stream of integers, 1 <= bound.
// Errors: random.bound.
// Source: D. Lemire, Fast Random Integer Generation in an Interval, 2019.
constexpr std::uint64_t integer_below(const Words& words, std::uint64_t element, std::uint64_t bound) {
  if (bound == 0) throw Error("random.bound", "an integer is drawn from [0, bound); bound must be at least 1");
  const std::uint64_t rejected = (0 - bound) % bound;  // so many of the 2^64 draws would favour the small numbers
  for (std::uint64_t attempt = 0;; ++attempt) {        // blocks far above those of other elements after a rejection
    const PhiloxBlock block = words.block(element + (attempt << 48));
    for (int half = 0; half < 4; half += 2) {
      const std::uint64_t upper = std::uint64_t(block.word[half]) * (bound >> 32),
                          lower = std::uint64_t(block.word[half + 1]) * (bound & 0xffffffffu),
                          left = std::uint64_t(block.word[half]) * (bound & 0xffffffffu),
                          right = std::uint64_t(block.word[half + 1]) * (bound >> 32),
                          middle = (lower >> 32) + (left & 0xffffffffu) + (right & 0xffffffffu);
      if (((middle << 32) | (lower & 0xffffffffu)) >= rejected) return upper + (left >> 32) + (right >> 32) + (middle >> 32);
    }
  }
}

}  // namespace weft::random
