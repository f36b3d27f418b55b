// SPDX-License-Identifier: Apache-2.0
// Flat kernels against their references: every size of rest, guard zones, and outputs that are the inputs.
#pragma once

#include <doctest/doctest.h>

#include <initializer_list>

#include "kernel/guarded.hpp"

namespace weft::test {

constexpr std::initializer_list<Index> flat_sizes = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 127, 1000, 1031};

// kernel(n, x, y) and reference(n, x, y).
template <class Real, class Kernel, class Reference>
void compare_flat(Kernel kernel, Reference reference, double spread, double tolerance) {
  for (Index n : flat_sizes) {
    auto x = Noise(std::uint64_t(n)).values<Real>(n);
    for (Real& v : x) v *= Real(spread);
    Guarded<Real> y(n), expected(n), in_place(x);
    kernel(n, x.data(), y.data());
    reference(n, x.data(), expected.data());
    kernel(n, static_cast<const Real*>(in_place.data()), in_place.data());
    CHECK(largest_difference(y.values(), expected.values()) <= tolerance);
    CHECK(largest_difference(in_place.values(), y.values()) == 0);
    CHECK((y.guards_hold() && in_place.guards_hold()));
  }
}

// kernel(n, x, dy, dx) and reference(n, x, dy, dx); dx may be dy.
template <class Real, class Kernel, class Reference>
void compare_flat_backward(Kernel kernel, Reference reference, double spread, double tolerance) {
  for (Index n : flat_sizes) {
    auto x = Noise(std::uint64_t(n)).values<Real>(n);
    for (Real& v : x) v *= Real(spread);
    const auto dy = Noise(std::uint64_t(n + 5)).values<Real>(n);
    Guarded<Real> dx(n), expected(n), in_place(dy);
    kernel(n, x.data(), dy.data(), dx.data());
    reference(n, x.data(), dy.data(), expected.data());
    kernel(n, x.data(), static_cast<const Real*>(in_place.data()), in_place.data());
    CHECK(largest_difference(dx.values(), expected.values()) <= tolerance);
    CHECK(largest_difference(in_place.values(), dx.values()) == 0);
    CHECK((dx.guards_hold() && in_place.guards_hold()));
  }
}

// Infinities and NaN must come out as the reference has them, whether they fill a register or not.
template <class Real, class Kernel, class Reference>
void compare_special(Kernel kernel, Reference reference) {
  constexpr Real infinity = std::numeric_limits<Real>::infinity(), huge = std::numeric_limits<Real>::max();
  const Real special[] = {infinity,  -infinity, std::numeric_limits<Real>::quiet_NaN(), huge, -huge, Real(0), Real(-0.0),
                          Real(1e4), Real(-1e4)};
  for (Index n : {1, 40}) {
    for (Real value : special) {
      std::vector<Real> x(std::size_t(n), value), y = x, expected = x;
      kernel(n, x.data(), y.data());
      reference(n, x.data(), expected.data());
      CAPTURE(value);
      for (std::size_t i = 0; i < x.size(); ++i) {
        CAPTURE(y[i]);
        CAPTURE(expected[i]);
        CHECK((y[i] == expected[i] || (std::isnan(y[i]) && std::isnan(expected[i])) || std::abs(y[i] - expected[i]) < Real(1e-30)));
      }
    }
  }
}

}  // namespace weft::test
