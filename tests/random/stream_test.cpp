// SPDX-License-Identifier: Apache-2.0
#include <weft/random/stream.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <initializer_list>
#include <vector>

using namespace weft;
using random::Purpose;
using random::Stream;
using random::Words;

namespace {

constexpr Stream base{.seed = 1337, .purpose = Purpose::dropout, .step = 17, .layer = (std::uint64_t(3) << 32) | 5};

// The share of 4096 mask entries at p = 0.5 in which two streams agree.
double agreement(const Stream& a, const Stream& b, std::uint64_t offset = 0) {
  const Words first(a), second(b);
  int equal = 0;
  for (std::uint64_t i = 0; i < 4096; ++i) equal += (first[i] < 0x80000000u) == (second[i + offset] < 0x80000000u);
  return equal / 4096.0;
}

}  // namespace

TEST_CASE("streams_that_differ_in_anything_draw_different_masks") {
  std::vector<Stream> others(9, base);
  others[0].seed = 1338;
  others[1].seed += std::uint64_t(1) << 40;
  others[2].purpose = Purpose::data_order;
  others[3].step = 18;
  others[4].step += std::uint64_t(1) << 32;
  others[5].layer += 1;                       // the next repetition
  others[6].layer += std::uint64_t(1) << 32;  // the next layer
  others[7].seed = 0;
  others[8].purpose = Purpose::user;
  for (std::size_t i = 0; i < others.size(); ++i) {
    CHECK(agreement(base, others[i]) > 0.4);
    CHECK(agreement(base, others[i]) < 0.6);
    for (std::size_t j = 0; j < i; ++j) {
      CHECK(agreement(others[i], others[j]) > 0.4);
      CHECK(agreement(others[i], others[j]) < 0.6);
    }
  }
}

TEST_CASE("streams_that_are_equal_draw_equal_masks") { CHECK(agreement(base, Stream(base)) == 1.0); }

TEST_CASE("stream_other_rows_draw_different_masks") {
  CHECK(agreement(base, base, 4096) > 0.4);
  CHECK(agreement(base, base, 4096) < 0.6);
}

TEST_CASE("stream_bits_are_balanced") {
  const Words words(base);
  int ones[32] = {};
  for (std::uint64_t i = 0; i < 8192; ++i) {
    for (int bit = 0; bit < 32; ++bit) ones[bit] += words[i] >> bit & 1;
  }
  for (int count : ones) CHECK(std::abs(count - 4096) < 250);  // 5.5 deviations
}

TEST_CASE("stream_element_is_word_of_block") {
  constexpr Words words(base);
  static_assert(words[6] == words.block(1).word[2], "element i is word i % 4 of block i / 4");
  for (std::uint64_t i : {std::uint64_t(0), std::uint64_t(7), (std::uint64_t(1) << 34) + 3})
    CHECK(words[i] == words.block(i / 4).word[i % 4]);
  CHECK(words[0] != words[std::uint64_t(1) << 34]);  // block numbers have 64 bits
}
