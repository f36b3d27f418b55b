// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/cpu/pool2d.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"

namespace {

using namespace weft;
using namespace weft::test;

// Bits of the reference for every kernel: pooling has no freedom of order where it is vectorised.
template <class Isa, class Real>
void compare(const Pool2dSizes& s, Index batch, std::uint64_t seed) {
  Noise noise(seed);
  auto x = noise.values<Real>(batch * s.channels * s.in_plane());
  const auto dy = noise.values<Real>(batch * s.channels * s.out_plane());
  for (Real& value : x) {
    if (noise.between(0, 9) == 0) value = std::numeric_limits<Real>::quiet_NaN();
    if (noise.between(0, 3) == 0) value = Real(0.25);  // ties
  }
  const Index out = Index(dy.size()), in = Index(x.size());
  Guarded<Real> y(out), y_expected(out), dx(in), dx_expected(in);
  Guarded<std::int32_t> argmax(out), argmax_expected(out);
  kernel::cpu::max_pool2d_forward<Isa>(batch, s, x.data(), y.data(), argmax.data());
  kernel::max_pool2d_forward(batch, s, x.data(), y_expected.data(), argmax_expected.data());
  CHECK(argmax.values() == argmax_expected.values());
  CHECK(largest_difference(y.values(), y_expected.values()) == 0);
  kernel::cpu::max_pool2d_backward<Isa>(batch, s, argmax.data(), dy.data(), dx.data());
  kernel::max_pool2d_backward(batch, s, argmax_expected.data(), dy.data(), dx_expected.data());
  CHECK(dx.values() == dx_expected.values());

  Guarded<Real> mean(out), mean_expected(out), dmean(in), dmean_expected(in);
  kernel::cpu::average_pool2d_forward<Isa>(batch, s, x.data(), mean.data());
  kernel::average_pool2d_forward(batch, s, x.data(), mean_expected.data());
  kernel::cpu::average_pool2d_backward<Isa>(batch, s, dy.data(), dmean.data());
  kernel::average_pool2d_backward(batch, s, dy.data(), dmean_expected.data());
  CHECK(largest_difference(mean.values(), mean_expected.values()) == 0);
  CHECK(dmean.values() == dmean_expected.values());
  CHECK((y.guards_hold() && dx.guards_hold() && argmax.guards_hold() && mean.guards_hold() && dmean.guards_hold()));
}

}  // namespace

TEST_CASE_TEMPLATE("cpu_pool2d_two_by_two_over_all_widths_equals_the_reference", Real, float, double) {
  for (Index width = 1; width < 72; ++width) {
    const Pool2dSizes s{2, 5, width, 2, 2, 0};
    compare<simd::Native, Real>(s, 2, std::uint64_t(width));
    if (width < 20) compare<simd::Generic, Real>(s, 1, std::uint64_t(width));
  }
}

TEST_CASE_TEMPLATE("cpu_pool2d_random_sizes_equal_the_reference", Real, float, double) {
  Noise noise(3);
  for (int i = 0; i < 60; ++i) {
    const Index kernel = noise.between(1, 4);
    compare<simd::Native, Real>(
        {noise.between(1, 3), noise.between(1, 12), noise.between(1, 12), kernel, noise.between(1, 4), noise.between(0, kernel / 2)},
        noise.between(0, 2), std::uint64_t(i));
  }
}
