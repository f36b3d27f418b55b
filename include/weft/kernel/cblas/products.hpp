// SPDX-License-Identifier: Apache-2.0
// Matrix products by a CBLAS library (OpenBLAS, MKL, BLIS, …). Needs <cblas.h>; a program that includes this links the library.
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include <cblas.h>

#include "weft/kernel/cpu/gemm.hpp"
#include "weft/kernel/cpu/products.hpp"

// Absent from a library that has no such switch: then their address is null.
extern "C" {
__attribute__((weak)) void openblas_set_num_threads(int num_threads);
__attribute__((weak)) int MKL_Set_Num_Threads_Local(int num_threads);
__attribute__((weak)) void omp_set_num_threads(int num_threads);
}

namespace weft::kernel::cpu {

// Products policy: cblas_sgemm and cblas_dgemm, on the calling thread alone.
// OpenBLAS's own pool is switched off for the whole process at the first product; MKL's and OpenMP's for each calling thread.
// Sizes beyond CBLAS's int, and empty ones, go to Builtin. Scratch is not used by the library.
struct Cblas {
  static constexpr const char* name = "cblas";

  static void use_one_thread() {
    static const bool process = [] {
      if (openblas_set_num_threads) openblas_set_num_threads(1);
      return true;
    }();
    static thread_local const bool thread = [] {
      if (MKL_Set_Num_Threads_Local) MKL_Set_Num_Threads_Local(1);
      if (omp_set_num_threads) omp_set_num_threads(1);
      return true;
    }();
    static_cast<void>(process && thread);
  }

  // In percent of Builtin; columns: vector, thin, tiny, usual. Measured with OpenBLAS 0.3.21 on a Sapphire Rapids core: Avx2 with
  // OPENBLAS_CORETYPE=Haswell; Avx512 and Generic as it comes, which is its Prescott kernels, as it does not know processors newer than
  // itself. With OPENBLAS_CORETYPE=SkylakeX it reaches 70 to 97 percent of Builtin on Avx512 where the table says 20.
  template <class Isa, class Real>
  static constexpr ProductSpeeds speeds() {
    if constexpr (Isa::register_bytes >= 64)
      return {{50, 28, 27, 20}, {50, 16, 21, 19}, {50, 22, 24, 22}};
    else if constexpr (Isa::register_bytes >= 32)
      return {{34, 83, 79, 94}, {34, 69, 72, 93}, {34, 39, 90, 100}};
    else
      return {{115, 115, 115, 115}, {115, 115, 115, 115}, {115, 115, 115, 115}};
  }

  template <class Isa, class Real>
  static void gemm(Transpose ta, Transpose tb, Index m, Index n, Index k, const Real* a, Index lda, const Real* b, Index ldb,
                   bool accumulate, Real* c, Index ldc, Scratch scratch) {
    static_assert(std::is_same_v<Real, float> || std::is_same_v<Real, double>, "CBLAS multiplies float and double");
    constexpr Index most = std::numeric_limits<int>::max();
    if (m <= 0 || n <= 0 || k <= 0 || std::max({m, n, k, lda, ldb, ldc}) > most) {
      return Builtin::gemm<Isa, Real>(ta, tb, m, n, k, a, lda, b, ldb, accumulate, c, ldc, scratch);
    }
    use_one_thread();
    const auto transpose_a = ta == Transpose::no ? CblasNoTrans : CblasTrans, transpose_b = tb == Transpose::no ? CblasNoTrans : CblasTrans;
    const int mi = int(m), ni = int(n), ki = int(k), ai = int(lda), bi = int(ldb), ci = int(ldc);
    if constexpr (std::is_same_v<Real, float>) {
      cblas_sgemm(CblasRowMajor, transpose_a, transpose_b, mi, ni, ki, 1, a, ai, b, bi, accumulate ? 1.0f : 0.0f, c, ci);
    } else {
      cblas_dgemm(CblasRowMajor, transpose_a, transpose_b, mi, ni, ki, 1, a, ai, b, bi, accumulate ? 1.0 : 0.0, c, ci);
    }
  }
};

}  // namespace weft::kernel::cpu
