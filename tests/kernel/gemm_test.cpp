// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include <weft/kernel/gemm.hpp>

namespace {

using weft::Index;
using weft::kernel::Transpose;

TEST_CASE_TEMPLATE("reference_product_of_each_transpose_equals_product_by_hand", Real, float, double) {
  const std::array<Real, 6> a = {1, 2, 3, 4, 5, 6}, at = {1, 4, 2, 5, 3, 6};        // (2, 3), (3, 2)
  const std::array<Real, 6> b = {7, 8, 9, 10, 11, 12}, bt = {7, 9, 11, 8, 10, 12};  // (3, 2), (2, 3)
  const std::array<Real, 4> product = {58, 64, 139, 154};
  for (int transposes = 0; transposes < 4; ++transposes) {
    const bool ta = transposes & 1, tb = transposes & 2;
    std::array<Real, 4> c = {1000, 1000, 1000, 1000};
    weft::kernel::gemm(Transpose(ta), Transpose(tb), 2, 2, 3, ta ? at.data() : a.data(), ta ? 2 : 3, tb ? bt.data() : b.data(), tb ? 3 : 2,
                       false, c.data(), 2);
    CHECK_EQ(c, product);
    weft::kernel::gemm(Transpose(ta), Transpose(tb), 2, 2, 3, ta ? at.data() : a.data(), ta ? 2 : 3, tb ? bt.data() : b.data(), tb ? 3 : 2,
                       true, c.data(), 2);
    for (std::size_t i = 0; i < 4; ++i) CHECK_EQ(c[i], 2 * product[i]);
  }
}

TEST_CASE("reference_product_without_terms_is_zero_or_what_was_there") {
  std::array<float, 4> c = {1, 2, 3, 4};
  weft::kernel::gemm<float>(Transpose::no, Transpose::no, 2, 1, 0, nullptr, 0, nullptr, 1, true, c.data(), 2);
  CHECK_EQ(c, std::array<float, 4>{1, 2, 3, 4});
  weft::kernel::gemm<float>(Transpose::no, Transpose::no, 2, 1, 0, nullptr, 0, nullptr, 1, false, c.data(), 2);
  CHECK_EQ(c, std::array<float, 4>{0, 2, 0, 4});
}

}  // namespace
