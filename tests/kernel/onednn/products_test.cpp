// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <filesystem>
#include <thread>

#include <weft/kernel/cpu/linear.hpp>
#include <weft/kernel/onednn/products.hpp>

#include "../products_cases.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using kernel::Transpose;
using kernel::cpu::OneDnn;

constexpr auto double_speeds = kernel::cpu::product_speeds<OneDnn, simd::Native, double>();
static_assert(double_speeds(Transpose::yes, Transpose::no, kernel::cpu::ProductSize::usual) < 100, "double is never given to oneDNN");
static_assert(kernel::cpu::Products<OneDnn, simd::Native>, "a library is a products policy");

template <class Real>
void check() {
  ScratchMemory scratch(kernel::cpu_scratch_bytes);
  check_products<Real>(
      {0, 1, 5, 33, 129}, {0, 1, 10, 65}, {0, 1, 31, 257},
      [&](Transpose ta, Transpose tb, Index m, Index n, Index k, const Real* a, Index lda, const Real* b, Index ldb, bool accumulate,
          Real* c, Index ldc) { OneDnn::gemm<simd::Native, Real>(ta, tb, m, n, k, a, lda, b, ldb, accumulate, c, ldc, scratch.get()); });
}

TEST_CASE_TEMPLATE("onednn_product_equals_reference", Real, float, double) { check<Real>(); }

TEST_CASE("onednn_product_in_a_rank_starts_no_threads") {
  const auto threads = [] {
    std::ptrdiff_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) count += !entry.path().empty();
    return count;
  };
  if (!std::filesystem::exists("/proc/self/task")) return;
  check<float>();  // the library is loaded and has made what it makes at start-up
  const std::ptrdiff_t before = threads();
  std::ptrdiff_t within = 0;
  std::thread rank([&] {
    ScratchMemory scratch(kernel::cpu_scratch_bytes);
    std::vector<float> a(512 * 512, 1), c(512 * 512);
    OneDnn::gemm<simd::Native, float>(Transpose::no, Transpose::yes, 512, 512, 512, a.data(), 512, a.data(), 512, false, c.data(), 512,
                                      scratch.get());
    CHECK_EQ(c[511 * 512 + 511], 512.0f);
    within = threads();
  });
  rank.join();
  CHECK_EQ(within, before + 1);
}

}  // namespace
