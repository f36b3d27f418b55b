// SPDX-License-Identifier: Apache-2.0
// Matrix products by oneDNN. Needs <dnnl.h>; a program that includes this links the library.
#pragma once

#include <string>
#include <type_traits>

#include <dnnl.h>

#include "weft/kernel/cpu/gemm.hpp"
#include "weft/kernel/cpu/products.hpp"

// Absent where oneDNN was built without OpenMP: then its address is null.
extern "C" __attribute__((weak)) void omp_set_num_threads(int num_threads);

namespace weft::kernel::cpu {

// Products policy: dnnl_sgemm, on the calling thread alone (its number of OpenMP threads is set to 1 at its first product).
// oneDNN multiplies float; double, and empty products, go to Builtin. Scratch is not used by the library.
// Errors: onednn.gemm if the library refuses.
struct OneDnn {
  static constexpr const char* name = "onednn";

  static void use_one_thread() {
    static thread_local const bool thread = [] {
      if (omp_set_num_threads) omp_set_num_threads(1);
      return true;
    }();
    static_cast<void>(thread);
  }

  // In percent of Builtin; columns: vector, thin, tiny, usual. Measured with oneDNN 2.6.3 on a Sapphire Rapids core: Avx512 and Generic
  // with all that the library has, Avx2 with DNNL_MAX_CPU_ISA=AVX2.
  template <class Isa, class Real>
  static constexpr ProductSpeeds speeds() {
    if constexpr (!std::is_same_v<Real, float>)
      return {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}};
    else if constexpr (Isa::register_bytes >= 64)
      return {{290, 100, 88, 101}, {100, 97, 98, 103}, {100, 120, 108, 113}};
    else if constexpr (Isa::register_bytes >= 32)
      return {{650, 100, 96, 96}, {100, 100, 99, 100}, {100, 100, 108, 102}};
    else
      return {{500, 600, 600, 600}, {500, 600, 600, 600}, {500, 600, 600, 600}};
  }

  template <class Isa, class Real>
  static void gemm(Transpose ta, Transpose tb, Index m, Index n, Index k, const Real* a, Index lda, const Real* b, Index ldb,
                   bool accumulate, Real* c, Index ldc, Scratch scratch) {
    if (!std::is_same_v<Real, float> || m <= 0 || n <= 0 || k <= 0) {
      return Builtin::gemm<Isa, Real>(ta, tb, m, n, k, a, lda, b, ldb, accumulate, c, ldc, scratch);
    }
    if constexpr (std::is_same_v<Real, float>) {
      use_one_thread();
      const dnnl_status_t status = dnnl_sgemm(ta == Transpose::no ? 'N' : 'T', tb == Transpose::no ? 'N' : 'T', m, n, k, 1.0f, a, lda, b,
                                              ldb, accumulate ? 1.0f : 0.0f, c, ldc);
      if (status != dnnl_success) throw Error("onednn.gemm", "dnnl_sgemm refused a product with status " + std::to_string(int(status)));
    }
  }
};

}  // namespace weft::kernel::cpu
