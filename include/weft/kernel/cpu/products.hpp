// SPDX-License-Identifier: Apache-2.0
// Who multiplies matrices: the policy that kernels take as a template argument.
#pragma once

#include <concepts>

#include "weft/kernel/gemm.hpp"
#include "weft/kernel/scratch.hpp"

namespace weft::kernel::cpu {

// A products policy: a name, and gemm under the contract of weft/kernel/gemm.hpp, for float and double, on the calling thread alone.
template <class Policy, class Isa>
concept Products = requires(const float* f, float* fc, const double* d, double* dc, Scratch scratch) {
  { Policy::name } -> std::convertible_to<const char*>;
  Policy::template gemm<Isa, float>(Transpose::no, Transpose::no, Index(), Index(), Index(), f, Index(), f, Index(), true, fc, Index(), scratch);
  Policy::template gemm<Isa, double>(Transpose::no, Transpose::no, Index(), Index(), Index(), d, Index(), d, Index(), true, dc, Index(), scratch);
};

// A policy that also adds a matrix and a row to the product as it stores it; see Builtin::gemm_add.
template <class Policy, class Isa, class Real>
concept AddsToProducts = requires(const Real* in, Real* c, Scratch scratch) {
  Policy::template gemm_add<Isa, Real>(Transpose::no, Transpose::no, Index(), Index(), Index(), in, Index(), in, Index(), in, Index(), in, c,
                                       Index(), scratch);
};

}  // namespace weft::kernel::cpu
