// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/cpu/embedding.hpp>
#include <weft/kernel/embedding.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"
#include "simd/isas.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE_TEMPLATE("cpu_embedding_equals_the_reference_bit_for_bit", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  using Isa = typename T::Isa;
  constexpr Index vocabulary = 6;
  for (Index width : {1, 3, 16, 17, 33, 65, 1031}) {
    for (Index rows : {0, 1, 20}) {
      const auto table = Noise(1).values<Real>(vocabulary * width), dy = Noise(2).values<Real>(rows * width);
      std::vector<std::int32_t> tokens;
      for (Index r = 0; r < rows; ++r) tokens.push_back(std::int32_t(r * r % vocabulary));
      Guarded<Real> y(rows * width), y_expected(rows * width), dtable(table), dtable_expected(table);
      CHECK(kernel::cpu::embedding_forward<Isa>(rows, vocabulary, width, tokens.data(), table.data(), y.data()) == -1);
      kernel::embedding_forward(rows, vocabulary, width, tokens.data(), table.data(), y_expected.data());
      kernel::cpu::embedding_backward<Isa>(rows, vocabulary, width, tokens.data(), dy.data(), dtable.data());
      kernel::embedding_backward(rows, vocabulary, width, tokens.data(), dy.data(), dtable_expected.data());
      CHECK(y.values() == y_expected.values());
      CHECK(dtable.values() == dtable_expected.values());
      CHECK((y.guards_hold() && dtable.guards_hold()));
    }
  }
}

TEST_CASE_TEMPLATE("cpu_embedding_token_outside_the_table_is_named", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  const auto table = Noise(1).values<Real>(5 * 3);
  for (std::int32_t bad : {-1, 5, std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::min()}) {
    const std::int32_t tokens[4] = {4, 0, bad, bad};
    Guarded<Real> y(12), dtable(table);
    CHECK(kernel::cpu::embedding_forward<typename T::Isa>(4, 5, 3, tokens, table.data(), y.data()) == 2);
    kernel::cpu::embedding_backward<typename T::Isa>(4, 5, 3, tokens, table.data(), dtable.data());
    CHECK((y.guards_hold() && dtable.guards_hold()));
  }
}
