// SPDX-License-Identifier: Apache-2.0
// Random numbers by name and place: a stream is a value, and element i of it is a function of the stream and i. Who asks, in which order
// and for which part does not matter, so initial weights, dropout masks and data order do not depend on how the work is split.
#pragma once

#include "weft/random/philox.hpp"

namespace weft::random {

// What the numbers are for; different purposes never share numbers. Users' own start at `user`.
enum class Purpose : std::uint32_t {
  none = 0,
  initial_weights = 1,
  dropout = 2,
  data_order = 3,
  sampling = 4,
  data_augmentation = 5,
  user = 1000
};

// Everything that tells streams apart. layer: which layer in its upper half, which repetition of it in the lower.
struct Stream {
  std::uint64_t seed = 0;
  Purpose purpose = Purpose::none;
  std::uint64_t step = 0;
  std::uint64_t layer = 0;

  bool operator==(const Stream&) const = default;
};

// A stream's words: words[i] is word i % 4 of block i / 4. The key mixes what does not fit beside the 64-bit block number in a counter:
// it is half a Philox block of (purpose, upper half of the layer, upper half of the step) under the seed.
class Words {
 public:
  WEFT_HOST_DEVICE explicit constexpr Words(const Stream& stream) : step_(low(stream.step)), repetition_(low(stream.layer)) {
    const PhiloxBlock mixed =
        philox({{std::uint32_t(stream.purpose), high(stream.layer), high(stream.step), 0}}, {{low(stream.seed), high(stream.seed)}});
    key_ = {{mixed.word[0], mixed.word[1]}};
  }

  WEFT_HOST_DEVICE constexpr std::uint32_t operator[](std::uint64_t element) const { return block(element / 4).word[element % 4]; }
  WEFT_HOST_DEVICE constexpr PhiloxBlock block(std::uint64_t number) const { return philox(counter(number), key_); }

  // For those that compute many blocks at once.
  WEFT_HOST_DEVICE constexpr PhiloxBlock counter(std::uint64_t number) const { return {{low(number), high(number), step_, repetition_}}; }
  WEFT_HOST_DEVICE constexpr PhiloxKey key() const { return key_; }

 private:
  WEFT_HOST_DEVICE static constexpr std::uint32_t low(std::uint64_t x) { return std::uint32_t(x); }
  WEFT_HOST_DEVICE static constexpr std::uint32_t high(std::uint64_t x) { return std::uint32_t(x >> 32); }

  PhiloxKey key_{};
  std::uint32_t step_, repetition_;
};

}  // namespace weft::random
