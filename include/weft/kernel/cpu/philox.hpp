// SPDX-License-Identifier: Apache-2.0
// Many words of a random stream at once: one Philox block per 64-bit lane.
#pragma once

#include <algorithm>

#include "weft/random/stream.hpp"
#include "weft/simd/vector.hpp"

namespace weft::kernel::cpu {

template <class Isa>
using Wide = typename simd::VectorOf<Isa, std::uint64_t>::type;

// The products of the lower halves of the lanes; b's upper halves are 0. One instruction on every x86: clang finds it, g++ 12 does not.
template <class Lanes>
WEFT_ALWAYS_INLINE inline Lanes multiply_lower_halves(Lanes a, Lanes b) {
  return (a & 0xffffffffu) * b;
}
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
  return Wide<simd::Avx512>(__builtin_ia32_pmuludq512_mask(Multiplicand<64>::type(a), Multiplicand<64>::type(b), Products{}, 0xff));
}
#endif
#endif

// One Philox block in each lane: its words in the lower halves of four registers, anything in the upper halves.
template <class Isa>
struct PhiloxLanes {
  static constexpr Index lanes = simd::lanes<Isa, std::uint64_t>;
  Wide<Isa> word[4];

  // The counters of the blocks number, number + 1, … of a stream.
  WEFT_ALWAYS_INLINE PhiloxLanes(const random::PhiloxBlock& counter, std::uint64_t number) {
    static constexpr std::uint64_t places[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    word[0] = simd::load<Isa>(places) + number;
    word[1] = word[0] >> 32;
    word[2] = Wide<Isa>{} + counter.word[2];
    word[3] = Wide<Isa>{} + counter.word[3];
  }

  WEFT_ALWAYS_INLINE void round(std::uint32_t key_0, std::uint32_t key_1) {
    const Wide<Isa> first = multiply_lower_halves(word[0], Wide<Isa>{} + random::philox_multiplier_0);
    const Wide<Isa> second = multiply_lower_halves(word[2], Wide<Isa>{} + random::philox_multiplier_1);
    word[0] = (second >> 32) ^ word[1] ^ key_0;
    word[2] = (first >> 32) ^ word[3] ^ key_1;
    word[1] = second;
    word[3] = first;
  }

  // Block by block. The lower half of a lane comes first in memory: x86 and ARM are little-endian.
  WEFT_ALWAYS_INLINE void store(std::uint32_t* out) const {
    const Wide<Isa> lower = (word[0] & 0xffffffffu) | (word[1] << 32), upper = (word[2] & 0xffffffffu) | (word[3] << 32);
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
    __builtin_memcpy(out, pairs, sizeof pairs);
  }
};

// As many words as write_blocks makes: two sets of blocks in flight, because a round is a chain of latencies.
template <class Isa>
inline constexpr Index words_at_once = 2 * 4 * PhiloxLanes<Isa>::lanes;

// The blocks number, number + 1, … of a stream in their order to `out` (words_at_once).
template <class Isa>
WEFT_ALWAYS_INLINE inline void write_blocks(const random::PhiloxBlock& counter, random::PhiloxKey key, std::uint64_t number,
                                            std::uint32_t* out) {
  PhiloxLanes<Isa> first(counter, number), second(counter, number + std::uint64_t(first.lanes));
  for (int round = 0; round < random::philox_rounds; ++round) {
    first.round(key.word[0], key.word[1]);
    second.round(key.word[0], key.word[1]);
    key = {{key.word[0] + random::philox_increment_0, key.word[1] + random::philox_increment_1}};
  }
  first.store(out);
  second.store(out + words_at_once<Isa> / 2);
}

// out[i] = words[first + i] for i < count.
template <class Isa>
inline void write_words(const random::Words& words, std::uint64_t first, Index count, std::uint32_t* out) {
  constexpr Index group = words_at_once<Isa>;
  const random::PhiloxBlock counter = words.counter(0);  // copies: `out` might be thought to overlap what `words` refers to
  const random::PhiloxKey key = words.key();
  Index i = 0;
  for (; i < count && (first + std::uint64_t(i)) % 4 != 0; ++i) out[i] = words[first + std::uint64_t(i)];
  for (; i + group <= count; i += group) write_blocks<Isa>(counter, key, (first + std::uint64_t(i)) / 4, out + i);
  if (i < count) {
    std::uint32_t rest[group];
    write_blocks<Isa>(counter, key, (first + std::uint64_t(i)) / 4, rest);
    std::copy_n(rest, count - i, out + i);
  }
}

}  // namespace weft::kernel::cpu
