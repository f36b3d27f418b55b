// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <vector>

#include <weft/kernel/cpu/products.hpp>
#include <weft/simd/isa.hpp>

namespace {

using namespace weft;
using namespace weft::kernel::cpu;
using kernel::Scratch;
using kernel::Transpose;
constexpr auto N = Transpose::no, T = Transpose::yes;

// Stands for a policy: leaves its number in c, and says how fast it is.
template <int Number, int Usual, int Vector>
struct Marker {
  static constexpr const char* name = "marker";
  template <class Isa, class Real>
  static void gemm(Transpose, Transpose, Index, Index, Index, const Real*, Index, const Real*, Index, bool accumulate, Real* c, Index,
                   Scratch) {
    *c = accumulate ? *c + Number : Real(Number);
  }
  template <class Isa, class Real>
  static constexpr ProductSpeeds speeds() {
    return {{Vector, 100, 100, Usual}, {Vector, 100, 100, 50}, {Vector, 100, 100, 50}};
  }
};
struct Untold : Marker<0, 0, 0> {
  template <class Isa, class Real>
  requires(sizeof(Real) > 100) static constexpr ProductSpeeds speeds() { return {}; }
};
using Two = Fastest<Untold, Marker<1, 110, 90>, Marker<2, 105, 300>>;
using Isa = simd::Generic;

static_assert(Products<Two, Isa>, "a chooser is a products policy");
static_assert(Two::chosen<Isa, float>(N, T, 768, 384, 128) == 1, "y = x Wᵀ: 110 beats 105 and the 100 of a policy without a table");
static_assert(Two::chosen<Isa, float>(N, N, 768, 384, 128) == 0, "dx = dy W: the first beats 50");
static_assert(Two::chosen<Isa, float>(T, T, 768, 384, 128) == 0, "both transposed count as dW");
static_assert(Two::chosen<Isa, float>(N, T, 1, 384, 128) == 2, "one row");
static_assert(Two::chosen<Isa, float>(N, T, 64, 64, 32) == 0, "of equals the first");
static_assert(Fastest<Untold, Marker<1, 102, 90>>::chosen<Isa, float>(N, T, 768, 384, 128) == 0, "within the margin the first");
static_assert(product_size(2, 10, 10) == ProductSize::vector, "two rows");
static_assert(product_size(256, 10, 512) == ProductSize::thin, "ten classes");
static_assert(product_size(64, 64, 32) == ProductSize::tiny, "a tile of attention");
static_assert(product_size(768, 65, 128) == ProductSize::usual, "a vocabulary of characters");

TEST_CASE_TEMPLATE("chooser_runs_the_policy_it_chose", Real, float, double) {
  Real c = 7;
  Two::gemm<Isa, Real>(N, T, 768, 384, 128, nullptr, 128, nullptr, 128, false, &c, 384, Scratch{});
  CHECK_EQ(c, Real(1));
  Two::gemm<Isa, Real>(N, T, 1, 384, 128, nullptr, 128, nullptr, 128, true, &c, 384, Scratch{});
  CHECK_EQ(c, Real(3));
}

TEST_CASE("chooser_adds_through_a_policy_that_cannot") {
  std::vector<float> from = {1, 2, 3, 4}, bias = {10, 20}, c = {0, 0, -1, 0, 0};  // (2, 2) with strides 2 and 3
  Two::gemm_add<Isa, float>(N, T, 2, 2, 0, nullptr, 0, nullptr, 0, from.data(), 2, bias.data(), c.data(), 3, Scratch{});
  CHECK(c == std::vector<float>{11 + 2, 22, -1, 13, 24});
}

}  // namespace
