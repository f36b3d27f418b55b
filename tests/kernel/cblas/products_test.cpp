// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <weft/kernel/cblas/products.hpp>
#include <weft/kernel/cpu/linear.hpp>

#include "../products_cases.hpp"

extern "C" __attribute__((weak)) int openblas_get_num_threads(void);

namespace {

using namespace weft;
using namespace weft::test;
using kernel::Transpose;
using kernel::cpu::Cblas;

static_assert(kernel::cpu::Products<Cblas, simd::Native>, "a library is a products policy");

template <class Real>
void check() {
  ScratchMemory scratch(kernel::cpu_scratch_bytes);
  check_products<Real>(
      {0, 1, 5, 33, 129}, {0, 1, 10, 65}, {0, 1, 31, 257},
      [&](Transpose ta, Transpose tb, Index m, Index n, Index k, const Real* a, Index lda, const Real* b, Index ldb, bool accumulate,
          Real* c, Index ldc) { Cblas::gemm<simd::Native, Real>(ta, tb, m, n, k, a, lda, b, ldb, accumulate, c, ldc, scratch.get()); });
}

TEST_CASE_TEMPLATE("cblas_product_equals_reference", Real, float, double) { check<Real>(); }

// OpenBLAS makes its pool when it is loaded; what counts is how many of it a product may use.
TEST_CASE("cblas_product_switches_the_pool_of_the_library_off") {
  check<float>();
  if (openblas_get_num_threads) CHECK_EQ(openblas_get_num_threads(), 1);
}

}  // namespace
