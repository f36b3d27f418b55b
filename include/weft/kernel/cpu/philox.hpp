// SPDX-License-Identifier: Apache-2.0
// Many words of a random stream at once: one Philox block per 64-bit lane.
#pragma once

#include <algorithm>

#include "weft/random/stream.hpp"
#include "weft/simd/vector.hpp"

namespace weft::kernel::cpu {

template <class Isa> using Wide = typename simd::VectorOf<Isa, std::uint64_t>::type;

// The products of the lower halves of the lanes; b's upper halves are 0. One instruction on every x86: clang finds it, g++ 12 does not.
template <class Lanes>
WEFT_ALWAYS_INLINE inline Lanes multiply_lower_halves(Lanes a, Lanes b) { return (a & 0xffffffffu) * b; }
#if defined(__GNUC__) && !defined(__clang__) && defined(__SSE2__)
template <Index Bytes>
struct Multiplicand {
  typedef int type __attribute__((vector_size(Bytes)));
};
WEFT_ALWAYS_INLINE inline Wide<simd::Generic> multiply_lower_halves(Wide<simd::Generic> a, Wide<simd::Generic> b) {
  return Wide<simd::Generic>(__builtin_ia32_pmuludq128(Multiplicand<16>::type(a), Multiplicand<16>::type(b)));
}
#if defined(__AVX2__)
WEFT_ALWAYS_INLINE inline Wide<simd::Avx2> multiply_lower_halves(Wide<simd::Avx2> a, Wide<simd::Avx2> b) {
  return Wide<simd::Avx2>(__builtin_ia32_pmuludq256(Multiplicand<32>::type(a), Multiplicand<32>::type(b)));
}
#endif
#if defined(__AVX512F__)
WEFT_ALWAYS_INLINE inline Wide<simd::Avx512> multiply_lower_halves(Wide<simd::Avx512> a, Wide<simd::Avx512> b) {
  typedef long long Products __attribute__((vector_size(64)));
  return Wide<simd::Avx512>(__builtin_ia32_pmuludq512_mask(Multiplicand<64>::type(a), Multiplicand<64>::type(b), Products{}, -1));
}
#endif
#endif

// The blocks number … number + lanes - 1 of a stream, in their order, to `out` (4 · lanes words).
template <class Isa>
inline void write_blocks(const random::Words& words, std::uint64_t number, std::uint32_t* out) {
  constexpr Index lanes = simd::lanes<Isa, std::uint64_t>;
  const random::PhiloxBlock start = words.counter(number);
  random::PhiloxKey key = words.key();
  std::uint64_t numbers[lanes];
  for (Index i = 0; i < lanes; ++i) numbers[i] = number + std::uint64_t(i);
  Wide<Isa> word_0 = simd::load<Isa>(static_cast<const std::uint64_t*>(numbers)), word_1 = word_0 >> 32;
  Wide<Isa> word_2 = Wide<Isa>{} + start.word[2], word_3 = Wide<Isa>{} + start.word[3];
  const Wide<Isa> factor_0 = Wide<Isa>{} + random::philox_multiplier_0, factor_1 = Wide<Isa>{} + random::philox_multiplier_1;
  for (int round = 0; round < random::philox_rounds; ++round) {
    const Wide<Isa> first = multiply_lower_halves(word_0, factor_0);
    const Wide<Isa> second = multiply_lower_halves(word_2, factor_1);
    word_0 = (second >> 32) ^ word_1 ^ key.word[0];
    word_2 = (first >> 32) ^ word_3 ^ key.word[1];
    word_1 = second;  // with an upper half that nobody reads
    word_3 = first;
    key = {{key.word[0] + random::philox_increment_0, key.word[1] + random::philox_increment_1}};
  }
  const Wide<Isa> lower = (word_0 & 0xffffffffu) | (word_1 << 32), upper = (word_2 & 0xffffffffu) | (word_3 << 32);
  Wide<Isa> pairs[2];
  if constexpr (lanes == 2) {
    pairs[0] = __builtin_shufflevector(lower, upper, 0, 2);
    pairs[1] = __builtin_shufflevector(lower, upper, 1, 3);
  } else if constexpr (lanes == 4) {
    pairs[0] = __builtin_shufflevector(lower, upper, 0, 4, 1, 5);
    pairs[1] = __builtin_shufflevector(lower, upper, 2, 6, 3, 7);
  } else {
    pairs[0] = __builtin_shufflevector(lower, upper, 0, 8, 1, 9, 2, 10, 3, 11);
    pairs[1] = __builtin_shufflevector(lower, upper, 4, 12, 5, 13, 6, 14, 7, 15);
  }
  __builtin_memcpy(out, pairs, sizeof pairs);  // the lower half of a lane comes first in memory: x86 and ARM are little-endian
}

// out[i] = words[first + i] for i < count.
template <class Isa>
inline void write_words(const random::Words& words, std::uint64_t first, Index count, std::uint32_t* out) {
  constexpr Index group = 4 * simd::lanes<Isa, std::uint64_t>;
  Index i = 0;
  for (; i < count && (first + std::uint64_t(i)) % 4 != 0; ++i) out[i] = words[first + std::uint64_t(i)];
  for (; i + group <= count; i += group) write_blocks<Isa>(words, (first + std::uint64_t(i)) / 4, out + i);
  if (i < count) {
    std::uint32_t rest[group];
    write_blocks<Isa>(words, (first + std::uint64_t(i)) / 4, rest);
    std::copy_n(rest, count - i, out + i);
  }
}

}  // namespace weft::kernel::cpu
