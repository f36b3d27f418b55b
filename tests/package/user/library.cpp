// SPDX-License-Identifier: Apache-2.0
#include <weft/plan.hpp>

using Train = weft::Plan<weft::Sequential<weft::Linear<3, 4>, weft::Relu, weft::Linear<4, 2>>, weft::mesh(weft::DataParallel{.ranks = 2}),
                         weft::Batch{.global = 8, .micro = 2}>;
static_assert(Train::bytes_per_rank() < 8 * weft::MiB, "a small model");

#ifdef WEFT_HAS_CBLAS
#include <weft/kernel/cblas/products.hpp>
#include <weft/simd/isa.hpp>
static int product() {
  const float a = 6, b = 7;
  float c = 0;
  using weft::kernel::Transpose;
  weft::kernel::cpu::Cblas::gemm<weft::simd::Native, float>(Transpose::no, Transpose::no, 1, 1, 1, &a, 1, &b, 1, false, &c, 1, {});
  return int(c);
}
#else
static int product() { return 42; }
#endif

#ifdef WEFT_HAS_GZIP
#include <weft/data/gzip/inflate.hpp>
static bool packed() { return weft::data::gzip::is_gzip({}); }
#else
static bool packed() { return false; }
#endif

weft::Index LIBRARY_FUNCTION() { return Train::num_ranks + product() + (packed() ? 1 : 0); }
