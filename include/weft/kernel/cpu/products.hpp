// SPDX-License-Identifier: Apache-2.0
// Who multiplies matrices: the policy that kernels take as a template argument, and a policy that chooses among others by shape.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>

#include "weft/kernel/gemm.hpp"
#include "weft/kernel/scratch.hpp"

namespace weft::kernel::cpu {

// A products policy: a name, and gemm under the contract of weft/kernel/gemm.hpp, for float and double, on the calling thread alone.
template <class Policy, class Isa>
concept Products = requires(const float* f, float* fc, const double* d, double* dc, Scratch scratch) {
  { Policy::name } -> std::convertible_to<const char*>;
  Policy::template gemm<Isa, float>(Transpose::no, Transpose::no, Index(), Index(), Index(), f, Index(), f, Index(), true, fc, Index(),
                                    scratch);
  Policy::template gemm<Isa, double>(Transpose::no, Transpose::no, Index(), Index(), Index(), d, Index(), d, Index(), true, dc, Index(),
                                     scratch);
};

// A policy that also adds a matrix and a row to the product as it stores it; see Builtin::gemm_add.
template <class Policy, class Isa, class Real>
concept AddsToProducts = requires(const Real* in, Real* c, Scratch scratch) {
  Policy::template gemm_add<Isa, Real>(Transpose::no, Transpose::no, Index(), Index(), Index(), in, Index(), in, Index(), in, Index(), in,
                                       c, Index(), scratch);
};

// c = op(a) op(b) + from + bias, by any policy. from (m, n) and bias (n) may each be null; from may be c, with c's stride.
// Cost: a policy that adds while it stores makes no further pass over c; for another, c first becomes the addends.
template <class Policy, class Isa, class Real>
inline void gemm_add(Transpose ta, Transpose tb, Index m, Index n, Index k, const Real* a, Index lda, const Real* b, Index ldb,
                     const Real* from, Index from_stride, const Real* bias, Real* c, Index ldc, Scratch scratch) {
  if constexpr (AddsToProducts<Policy, Isa, Real>) {
    Policy::template gemm_add<Isa, Real>(ta, tb, m, n, k, a, lda, b, ldb, from, from_stride, bias, c, ldc, scratch);
  } else {
    for (Index i = 0; i < m; ++i) {
      Real* const row = c + i * ldc;
      const Real* const addend = from ? from + i * from_stride : nullptr;
      if (addend && bias) {
        for (Index j = 0; j < n; ++j) row[j] = addend[j] + bias[j];
      } else if (bias) {
        std::copy_n(bias, n, row);
      } else if (addend && addend != row) {
        std::copy_n(addend, n, row);
      }
    }
    Policy::template gemm<Isa, Real>(ta, tb, m, n, k, a, lda, b, ldb, from || bias, c, ldc, scratch);
  }
}

// What tells products apart that libraries treat differently: the transposes (y = x Wᵀ, dx = dy W, dW = dyᵀ x) and the size.
enum class ProductSize : char { vector, thin, tiny, usual };

constexpr ProductSize product_size(Index m, Index n, Index k) {
  if (m <= 2) return ProductSize::vector;                     // one or two rows: a token at a time
  if (std::min(m, n) <= 16) return ProductSize::thin;         // a classifier's ten classes, a filter of nine elements
  if (m * n * k <= Index(1) << 19) return ProductSize::tiny;  // a tile of attention
  return ProductSize::usual;
}

// How fast a policy is in percent of Builtin, measured by bench/products_bench.cpp, which says how. By transposes and ProductSize.
struct ProductSpeeds {
  std::array<int, 4> no_yes, no_no, yes_any;

  constexpr int operator()(Transpose ta, Transpose tb, ProductSize size) const {
    return (ta == Transpose::yes ? yes_any : tb == Transpose::yes ? no_yes : no_no)[std::size_t(size)];
  }
};

// A policy without a table counts as 100 everywhere.
template <class Policy, class Isa, class Real>
constexpr ProductSpeeds product_speeds() {
  if constexpr (requires { Policy::template speeds<Isa, Real>(); }) {
    return Policy::template speeds<Isa, Real>();
  } else {
    return {{100, 100, 100, 100}, {100, 100, 100, 100}, {100, 100, 100, 100}};
  }
}

// A policy takes a class of shapes from an earlier one only if it is faster by more than this: less is not resolved by the measurement,
// and the first policy (Builtin) also saves the pass over c that adding a bias or a residual costs the libraries.
inline constexpr int product_margin_percent = 2;

// Products policy: for each product the policy that was measured to be the fastest on its class of shapes, the first within the margin.
// The choice depends on the shape alone, so a run repeats; cutting a product may change who computes it, and so its bits.
template <class... Policies>
struct Fastest {
  static constexpr const char* name = "fastest";

  // The place in Policies of the one that computes a product.
  template <class Isa, class Real>
  static constexpr std::size_t chosen(Transpose ta, Transpose tb, Index m, Index n, Index k) {
    constexpr std::array<ProductSpeeds, sizeof...(Policies)> speeds = {product_speeds<Policies, Isa, Real>()...};
    const ProductSize size = product_size(m, n, k);
    std::size_t best = 0;
    for (std::size_t i = 1; i < speeds.size(); ++i) {
      if (speeds[i](ta, tb, size) * 100 > speeds[best](ta, tb, size) * (100 + product_margin_percent)) best = i;
    }
    return best;
  }

  template <class Isa, class Real>
  static void gemm(Transpose ta, Transpose tb, Index m, Index n, Index k, const Real* a, Index lda, const Real* b, Index ldb,
                   bool accumulate, Real* c, Index ldc, Scratch scratch) {
    std::size_t left = chosen<Isa, Real>(ta, tb, m, n, k);
    const auto run = [&]<class Policy>(Policy*) {
      if (left-- == 0) Policy::template gemm<Isa, Real>(ta, tb, m, n, k, a, lda, b, ldb, accumulate, c, ldc, scratch);
    };
    (run(static_cast<Policies*>(nullptr)), ...);
  }

  template <class Isa, class Real>
  static void gemm_add(Transpose ta, Transpose tb, Index m, Index n, Index k, const Real* a, Index lda, const Real* b, Index ldb,
                       const Real* from, Index from_stride, const Real* bias, Real* c, Index ldc, Scratch scratch) {
    std::size_t left = chosen<Isa, Real>(ta, tb, m, n, k);
    const auto run = [&]<class Policy>(Policy*) {
      if (left-- == 0) cpu::gemm_add<Policy, Isa>(ta, tb, m, n, k, a, lda, b, ldb, from, from_stride, bias, c, ldc, scratch);
    };
    (run(static_cast<Policies*>(nullptr)), ...);
  }
};

}  // namespace weft::kernel::cpu
