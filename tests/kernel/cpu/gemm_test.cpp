// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <limits>

#include <weft/kernel/cpu/gemm.hpp>
#include <weft/kernel/cpu/products.hpp>

#include "../../simd/isas.hpp"
#include "../products_cases.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using kernel::Scratch;
using kernel::Transpose;
using kernel::cpu::Builtin;

static_assert(kernel::cpu::Products<Builtin, simd::Generic>, "the product of weft's own is a products policy");
static_assert(!kernel::cpu::Products<int, simd::Generic>, "a type without gemm is none");

template <class Case>
auto builtin(Scratch scratch) {
  using Real = typename Case::Real;
  return [scratch](Transpose ta, Transpose tb, Index m, Index n, Index k, const Real* a, Index lda, const Real* b, Index ldb,
                   bool accumulate, Real* c,
                   Index ldc) { Builtin::gemm<typename Case::Isa, Real>(ta, tb, m, n, k, a, lda, b, ldb, accumulate, c, ldc, scratch); };
}

TEST_CASE_TEMPLATE("builtin_product_of_small_sizes_equals_reference", Case, WEFT_TEST_ISAS) {
  ScratchMemory scratch(kernel::cpu::minimum_product_scratch_bytes);
  check_products<typename Case::Real>({0, 1, 2, 3, 5, 12, 13, 23, 40}, {0, 1, 10, 16, 17, 33}, {0, 1, 7, 32}, builtin<Case>(scratch.get()));
}

TEST_CASE_TEMPLATE("builtin_product_of_several_blocks_equals_reference", Case, WEFT_TEST_ISAS) {
  for (Index bytes : {kernel::cpu::minimum_product_scratch_bytes, kernel::cpu_scratch_bytes}) {
    ScratchMemory scratch(bytes);
    check_products<typename Case::Real>({9, 65}, {65}, {257}, builtin<Case>(scratch.get()));
    check_products<typename Case::Real>({301}, {21}, {300}, builtin<Case>(scratch.get()));
  }
}

TEST_CASE_TEMPLATE("builtin_product_whose_right_operand_exceeds_scratch_equals_reference", Case, WEFT_TEST_ISAS_OF(float)) {
  ScratchMemory scratch(128 * KiB);  // 256 deep panels of 128 columns: k is cut into stretches, n into strips
  for (Transpose tb : {Transpose::no, Transpose::yes}) {
    check_product<float>({290, 150, 280, Transpose::yes, tb, true, 1, 1, 1}, builtin<Case>(scratch.get()));
  }
}

TEST_CASE_TEMPLATE("builtin_product_of_far_apart_rows_equals_reference", Case, WEFT_TEST_ISAS) {
  ScratchMemory scratch(kernel::cpu_scratch_bytes);  // stored rows 8 KiB and more apart: a is packed
  for (Transpose ta : {Transpose::no, Transpose::yes}) {
    check_product<typename Case::Real>({31, 101, 258, ta, Transpose::no, false, 2000, 0, 3}, builtin<Case>(scratch.get()));
  }
}

// A product of some rows of a, some columns of b, or less scratch has the bits of the whole one.
TEST_CASE_TEMPLATE("builtin_product_of_a_part_has_the_bits_of_the_whole", Case, WEFT_TEST_ISAS) {
  using Real = typename Case::Real;
  constexpr Index m = 310, n = 77, k = 523;
  ScratchMemory large(kernel::cpu_scratch_bytes), small(kernel::cpu::minimum_product_scratch_bytes);
  Numbers numbers(7);
  std::vector<Real> a(m * k), b(k * n), at(k * m), bt(n * k), whole(m * n);
  for (Real& value : a) value = numbers.any<Real>();
  for (Real& value : b) value = numbers.any<Real>();
  for (Index i = 0; i < m; ++i)
    for (Index p = 0; p < k; ++p) at[std::size_t(p * m + i)] = a[std::size_t(i * k + p)];
  for (Index p = 0; p < k; ++p)
    for (Index j = 0; j < n; ++j) bt[std::size_t(j * k + p)] = b[std::size_t(p * n + j)];
  builtin<Case>(large.get())(Transpose::no, Transpose::no, m, n, k, a.data(), k, b.data(), n, false, whole.data(), n);

  for (int transposes = 0; transposes < 4; ++transposes) {
    const bool ta = transposes & 1, tb = transposes & 2;
    for (Index rows : {Index(1), Index(3), Index(10), Index(37), m}) {
      for (Index columns : {Index(1), Index(16), n}) {
        const Index row = (m - rows) / 2, column = (n - columns) / 3;
        std::vector<Real> part(std::size_t(rows * columns), Real(NAN));
        const Scratch scratch = rows % 2 ? small.get() : large.get();
        builtin<Case>(scratch)(Transpose(ta), Transpose(tb), rows, columns, k, ta ? at.data() + row : a.data() + row * k, ta ? m : k,
                               tb ? bt.data() + column * k : b.data() + column, tb ? k : n, false, part.data(), columns);
        Index different = 0;
        for (Index i = 0; i < rows; ++i) {
          const Real* const expected = &whole[std::size_t((row + i) * n + column)];
          different += std::memcmp(&part[std::size_t(i * columns)], expected, std::size_t(columns) * sizeof(Real)) != 0;
        }
        CAPTURE(transposes);
        CAPTURE(rows);
        CAPTURE(columns);
        CHECK_EQ(different, 0);
      }
    }
  }
}

// The documented order: chains of product_depth, added up one after the other.
TEST_CASE_TEMPLATE("builtin_product_cut_at_product_depth_has_the_bits_of_the_whole", Case, WEFT_TEST_ISAS) {
  using Real = typename Case::Real;
  constexpr Index m = 14, n = 35, depth = kernel::cpu::product_depth, k = 2 * depth + 19;
  ScratchMemory memory(kernel::cpu_scratch_bytes);
  const auto product = builtin<Case>(memory.get());
  Numbers numbers(11);
  std::vector<Real> a(m * k), b(k * n), whole(m * n), sum(m * n);
  for (Real& value : a) value = numbers.any<Real>();
  for (Real& value : b) value = numbers.any<Real>();
  product(Transpose::no, Transpose::no, m, n, k, a.data(), k, b.data(), n, false, whole.data(), n);
  for (Index p = 0; p < k; p += depth) {
    product(Transpose::no, Transpose::no, m, n, std::min(depth, k - p), a.data() + p, k, b.data() + p * n, n, p > 0, sum.data(), n);
  }
  CHECK_EQ(std::memcmp(whole.data(), sum.data(), sizeof(Real) * m * n), 0);
}

TEST_CASE_TEMPLATE("builtin_product_of_zero_and_not_finite_is_nan", Case, WEFT_TEST_ISAS) {
  using Real = typename Case::Real;
  constexpr Index m = 15, n = 37, k = 9;
  ScratchMemory memory(kernel::cpu_scratch_bytes);
  for (Real bad : {std::numeric_limits<Real>::quiet_NaN(), std::numeric_limits<Real>::infinity()}) {
    std::vector<Real> a(m * k, Real(0)), b(k * n, Real(1)), c(m * n);
    b[4 * n + 36] = bad;  // column 36
    builtin<Case>(memory.get())(Transpose::no, Transpose::no, m, n, k, a.data(), k, b.data(), n, false, c.data(), n);
    for (Index i = 0; i < m; ++i) {
      for (Index j = 0; j < n; ++j) REQUIRE_EQ(std::isnan(c[std::size_t(i * n + j)]), j == 36);
    }
    a.assign(m * k, Real(1)), b.assign(k * n, Real(0));
    a[14 * k + 8] = bad;  // row 14
    builtin<Case>(memory.get())(Transpose::no, Transpose::no, m, n, k, a.data(), k, b.data(), n, false, c.data(), n);
    for (Index i = 0; i < m; ++i) {
      for (Index j = 0; j < n; ++j) REQUIRE_EQ(std::isnan(c[std::size_t(i * n + j)]), i == 14);
    }
  }
}

TEST_CASE("builtin_product_without_enough_scratch_throws") {
  float a[4] = {}, b[4] = {}, c[4] = {};
  std::string id;
  try {
    Builtin::gemm<simd::Native, float>(Transpose::no, Transpose::yes, 2, 2, 2, a, 2, b, 2, false, c, 2, Scratch{});
  } catch (const Error& error) { id = error.id(); }
  CHECK_EQ(id, "gemm.scratch");
}

}  // namespace
