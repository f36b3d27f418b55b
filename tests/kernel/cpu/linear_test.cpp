// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <weft/kernel/cpu/linear.hpp>

#include "../../simd/isas.hpp"
#include "../products_cases.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using kernel::Transpose;
using kernel::cpu::Builtin;

// The instruction sets differ in the product, which gemm_test.cpp tests on all of them.
#define KERNELS On<simd::Native, float>, On<simd::Native, double>, On<simd::Generic, float>

// A policy that cannot add while it stores, as the libraries' cannot.
struct Plain {
  [[maybe_unused]] static constexpr const char* name = "plain";
  template <class Isa, class Real>
  static void gemm(Transpose ta, Transpose tb, Index m, Index n, Index k, const Real* a, Index lda, const Real* b, Index ldb,
                   bool accumulate, Real* c, Index ldc, kernel::Scratch) {
    kernel::gemm(ta, tb, m, n, k, a, lda, b, ldb, accumulate, c, ldc);
  }
};

template <class Real>
std::vector<Real> numbers(Index count, std::uint32_t seed) {
  Numbers stream(seed);
  std::vector<Real> values(static_cast<std::size_t>(count));
  for (Real& value : values) value = stream.exact<Real>();
  return values;
}

struct Sizes {
  Index rows, in, out;
};
constexpr Sizes sizes[] = {{1, 1, 1}, {5, 0, 7}, {0, 3, 4}, {13, 64, 65}, {130, 261, 10}, {301, 33, 67}};

template <class Policy, class Isa, class Real>
void check_forward() {
  ScratchMemory scratch(kernel::cpu_scratch_bytes);
  for (const Sizes& size : sizes) {
    const Index rows = size.rows, in = size.in, out = size.out;
    const auto x = numbers<Real>(rows * in, 1), weight = numbers<Real>(out * in, 2), bias = numbers<Real>(out, 3);
    const auto residual = numbers<Real>(rows * out, 4);
    for (int addends = 0; addends < 6; ++addends) {
      const bool in_place = addends >= 4;  // the residual is y itself
      const Real* const b = addends & 1 ? bias.data() : nullptr;
      std::vector<Real> y = residual, expected = residual;
      if (!in_place) y.assign(y.size(), Real(NAN));
      const Real* const r = in_place ? y.data() : addends & 2 ? residual.data() : nullptr;
      kernel::linear_forward(rows, in, out, x.data(), weight.data(), b, in_place ? expected.data() : r, expected.data());
      kernel::cpu::linear_forward<Policy, Isa>(rows, in, out, x.data(), weight.data(), b, r, y.data(), scratch.get());
      CAPTURE(rows);
      CAPTURE(addends);
      CHECK(y == expected);
    }
  }
}

TEST_CASE_TEMPLATE("linear_forward_with_any_addends_equals_reference", Case, KERNELS) {
  check_forward<Builtin, typename Case::Isa, typename Case::Real>();
}
TEST_CASE_TEMPLATE("linear_forward_by_a_policy_that_cannot_add_equals_reference", Real, float, double) {
  check_forward<Plain, simd::Generic, Real>();
}

TEST_CASE_TEMPLATE("linear_backward_equals_reference", Case, KERNELS) {
  using Isa = typename Case::Isa;
  using Real = typename Case::Real;
  ScratchMemory scratch(kernel::cpu_scratch_bytes);
  for (const Sizes& size : sizes) {
    const Index rows = size.rows, in = size.in, out = size.out;
    const auto x = numbers<Real>(rows * in, 1), weight = numbers<Real>(out * in, 2), dy = numbers<Real>(rows * out, 3);
    for (bool accumulate : {false, true}) {
      auto dx = numbers<Real>(rows * in, 4), expected = dx;
      kernel::linear_backward_input(rows, in, out, dy.data(), weight.data(), expected.data(), accumulate);
      kernel::cpu::linear_backward_input<Builtin, Isa>(rows, in, out, dy.data(), weight.data(), dx.data(), accumulate, scratch.get());
      CHECK(dx == expected);
    }
    for (bool with_bias : {false, true}) {
      auto dweight = numbers<Real>(out * in, 5), expected_weight = dweight, dbias = numbers<Real>(out, 6), expected_bias = dbias;
      kernel::linear_backward_weight(rows, in, out, x.data(), dy.data(), expected_weight.data(),
                                     with_bias ? expected_bias.data() : nullptr);
      kernel::cpu::linear_backward_weight<Builtin, Isa>(rows, in, out, x.data(), dy.data(), dweight.data(),
                                                        with_bias ? dbias.data() : nullptr, scratch.get());
      CHECK(dweight == expected_weight);
      CHECK(dbias == expected_bias);
    }
  }
}

// Row sums of some columns have the bits of those of all columns.
TEST_CASE_TEMPLATE("row_sums_of_some_columns_have_the_bits_of_all", Case, KERNELS) {
  using Real = typename Case::Real;
  constexpr Index rows = 300, width = 200;
  Numbers stream(9);
  std::vector<Real> x(rows * width), all(width), some(7);
  for (Real& value : x) value = stream.any<Real>();
  kernel::cpu::add_row_sums<typename Case::Isa>(rows, width, x.data(), width, all.data());
  kernel::cpu::add_row_sums<typename Case::Isa>(rows, 7, x.data() + 61, width, some.data());
  for (std::size_t i = 0; i < 7; ++i) CHECK_EQ(some[i], all[61 + i]);
}

}  // namespace
