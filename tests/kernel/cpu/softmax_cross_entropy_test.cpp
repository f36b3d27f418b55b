// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/cpu/softmax_cross_entropy.hpp>
#include <weft/kernel/softmax_cross_entropy.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"
#include "simd/isas.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE_TEMPLATE("cpu_softmax_cross_entropy_equals_the_reference", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  using Isa = typename T::Isa;
  for (Index classes : {1, 2, 3, 10, 16, 17, 33, 64, 65, 1031}) {
    for (Index rows : {0, 1, 5}) {
      for (Real smoothing : {Real(0), Real(0.1)}) {
        CAPTURE(classes);
        auto logits = Noise(std::uint64_t(classes)).values<Real>(rows * classes);
        for (Real& v : logits) v *= Real(8);
        std::vector<std::int32_t> targets;
        for (Index r = 0; r < rows; ++r) targets.push_back(r == 2 ? -100 : std::int32_t((r * 7919) % classes));
        Guarded<Real> gradient(rows * classes), expected(rows * classes), in_place(logits);
        const auto sum = kernel::cpu::softmax_cross_entropy<Isa>(rows, classes, logits.data(), targets.data(), -100, smoothing, Real(0.5),
                                                                 gradient.data());
        const auto right =
            kernel::softmax_cross_entropy(rows, classes, logits.data(), targets.data(), -100, smoothing, Real(0.5), expected.data());
        CHECK(sum.count == right.count);
        CHECK(std::abs(sum.loss - right.loss) <= rounding<Real>(20) * (1 + std::abs(right.loss)));
        CHECK(largest_difference(gradient.values(), expected.values()) <= rounding<Real>(2));
        const auto again = kernel::cpu::softmax_cross_entropy<Isa>(rows, classes, static_cast<const Real*>(in_place.data()), targets.data(),
                                                                   -100, smoothing, Real(0.5), in_place.data());
        CHECK(again.loss == sum.loss);
        CHECK(in_place.values() == gradient.values());
        Real* none = nullptr;
        CHECK(
            kernel::cpu::softmax_cross_entropy<Isa>(rows, classes, logits.data(), targets.data(), -100, smoothing, Real(0.5), none).loss ==
            doctest::Approx(sum.loss).epsilon(1e-6));
        CHECK((gradient.guards_hold() && in_place.guards_hold()));
      }
    }
  }
}

TEST_CASE_TEMPLATE("cpu_softmax_cross_entropy_extreme_logits_equal_the_reference", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  constexpr Real infinity = std::numeric_limits<Real>::infinity();
  for (Index classes : {3, 40}) {
    for (Real extreme : {Real(1e4), Real(-1e4), -infinity, infinity, std::numeric_limits<Real>::quiet_NaN()}) {
      for (Index place : {Index(0), classes - 1}) {
        for (std::int32_t target : {0, 1}) {
          std::vector<Real> logits(std::size_t(classes), Real(0)), gradient = logits, expected = logits;
          logits[std::size_t(place)] = extreme;
          const auto sum = kernel::cpu::softmax_cross_entropy<typename T::Isa>(Index(1), classes, logits.data(), &target, -1, Real(0),
                                                                               Real(1), gradient.data());
          const auto right =
              kernel::softmax_cross_entropy(Index(1), classes, logits.data(), &target, -1, Real(0), Real(1), expected.data());
          CAPTURE(extreme);
          CHECK((sum.loss == right.loss || (std::isnan(sum.loss) && std::isnan(right.loss)) || std::abs(sum.loss / right.loss - 1) < 1e-6));
          CHECK(largest_difference(gradient, expected) <= rounding<Real>(1));
        }
      }
    }
  }
}
