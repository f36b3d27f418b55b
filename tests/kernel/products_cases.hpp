// SPDX-License-Identifier: Apache-2.0
// Operands for tests of matrix products, and one product compared with the reference, guards around c included.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include <weft/kernel/gemm.hpp>
#include <weft/kernel/scratch.hpp>

namespace weft::test {

// Scratch of a given size whose end is the end of an allocation, so that a sanitizer sees what is written beyond it.
class ScratchMemory {
 public:
  explicit ScratchMemory(Index bytes) : bytes_(bytes), memory_(std::size_t(bytes + alignment_bytes)) {}
  kernel::Scratch get() {
    auto* const start = memory_.data();
    const auto misaligned = reinterpret_cast<std::uintptr_t>(start) % std::uintptr_t(alignment_bytes);
    return {start + (misaligned ? std::uintptr_t(alignment_bytes) - misaligned : 0), bytes_};
  }

 private:
  Index bytes_;
  std::vector<std::byte> memory_;
};

// A repeatable stream of small multiples of 1/8: products and sums of a few thousand of them are exact in float, in any order.
class Numbers {
 public:
  explicit Numbers(std::uint32_t seed) : state_(seed * 2654435761u + 1) {}
  std::uint32_t next() { return state_ = state_ * 1664525u + 1013904223u; }
  template <class Real>
  Real exact() {
    return Real(int(next() >> 16) % 9 - 4) / 8;
  }
  template <class Real>
  Real any() {
    return Real(std::int32_t(next())) / Real(1 << 30);
  }

 private:
  std::uint32_t state_;
};

struct ProductCase {
  Index m, n, k;
  kernel::Transpose ta, tb;
  bool accumulate = false;
  Index gap_a = 0, gap_b = 0, gap_c = 0;  // strides beyond the width
};

// Runs gemm(ta, tb, m, n, k, a, lda, b, ldb, accumulate, c, ldc) on exact numbers; c must equal the reference, and keep what lies between
// and around its rows. Without accumulate c starts as NaN: reading it shows.
template <class Real, class Gemm>
void check_product(const ProductCase& test, Gemm&& gemm) {
  using kernel::Transpose;
  const bool plain_a = test.ta == Transpose::no, plain_b = test.tb == Transpose::no;
  const Index lda = (plain_a ? test.k : test.m) + test.gap_a, ldb = (plain_b ? test.n : test.k) + test.gap_b, ldc = test.n + test.gap_c;
  const Index rows_a = plain_a ? test.m : test.k, rows_b = plain_b ? test.k : test.n, guard = 16;
  Numbers numbers(std::uint32_t(test.m * 31 + test.n * 7 + test.k));
  const auto fill = [&](Index rows, Index stride, Index gap) {
    std::vector<Real> values(std::size_t(rows > 0 ? rows * stride - gap : 0));  // ends with the last row's last element
    for (Real& value : values) value = numbers.exact<Real>();
    return values;
  };
  const std::vector<Real> a = fill(rows_a, lda, test.gap_a), b = fill(rows_b, ldb, test.gap_b);
  std::vector<Real> c(std::size_t(test.m * ldc + 2 * guard));
  for (Real& value : c) value = test.accumulate ? numbers.exact<Real>() : Real(NAN);
  std::vector<Real> expected = c;
  kernel::gemm(test.ta, test.tb, test.m, test.n, test.k, a.data(), lda, b.data(), ldb, test.accumulate, expected.data() + guard, ldc);
  gemm(test.ta, test.tb, test.m, test.n, test.k, a.data(), lda, b.data(), ldb, test.accumulate, c.data() + guard, ldc);
  Index wrong = 0;
  for (std::size_t i = 0; i < c.size(); ++i) wrong += !(c[i] == expected[i] || (std::isnan(c[i]) && std::isnan(expected[i])));
  CAPTURE(test.m);
  CAPTURE(test.n);
  CAPTURE(test.k);
  CAPTURE(plain_a);
  CAPTURE(plain_b);
  CAPTURE(test.accumulate);
  CHECK_EQ(wrong, 0);
}

// All transposes, odd sizes, gaps between rows, with and without accumulation.
template <class Real, class Gemm>
void check_products(const std::vector<Index>& ms, const std::vector<Index>& ns, const std::vector<Index>& ks, Gemm&& gemm) {
  int turn = 0;
  for (Index m : ms) {
    for (Index n : ns) {
      for (Index k : ks) {
        for (int transposes = 0; transposes < 4; ++transposes, ++turn) {
          const auto ta = kernel::Transpose(transposes & 1), tb = kernel::Transpose(transposes >> 1);
          check_product<Real>({m, n, k, ta, tb, turn % 3 == 0, turn % 4, turn % 5, turn % 2}, gemm);
        }
      }
    }
  }
}

}  // namespace weft::test
