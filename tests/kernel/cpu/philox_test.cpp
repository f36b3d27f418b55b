// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/cpu/philox.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"
#include "simd/isas.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE_TEMPLATE("cpu_philox_words_of_any_range_are_those_of_the_stream", T, WEFT_TEST_ISAS_OF(float)) {
  const random::Words words({.seed = 0x123456789abcdefu, .purpose = random::Purpose::dropout, .step = 99, .layer = std::uint64_t(7) << 32});
  // The second start crosses a block number of 2^32, where the lower word of the counter wraps.
  for (std::uint64_t start : {std::uint64_t(0), (std::uint64_t(1) << 34) - 20, (std::uint64_t(1) << 62) + 5}) {
    for (std::uint64_t offset = 0; offset < 9; ++offset) {
      for (Index count : {0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 63, 64, 65, 200}) {
        Guarded<std::uint32_t> out(count);
        kernel::cpu::write_words<typename T::Isa>(words, start + offset, count, out.data());
        int wrong = 0;
        for (Index i = 0; i < count; ++i) wrong += out[i] != words[start + offset + std::uint64_t(i)];
        CHECK(wrong == 0);
        CHECK(out.guards_hold());
      }
    }
  }
}
