// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/cpu/batch_norm2d.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"

namespace {

using namespace weft;
using namespace weft::test;

template <class Isa, class Real>
void compare(Index batch, Index channels, Index plane, std::uint64_t seed) {
  Noise noise(seed);
  const Index elems = batch * channels * plane;
  const auto x = noise.values<Real>(elems), dy = noise.values<Real>(elems), gain = noise.values<Real>(channels),
             shift = noise.values<Real>(channels);
  const auto mean = noise.values<Real>(channels);
  std::vector<Real> rstd = noise.values<Real>(channels);
  for (Real& value : rstd) value = std::abs(value) + Real(0.5);
  Guarded<double> sums(2 * channels, 0.5), sums_expected(2 * channels, 0.5);
  kernel::cpu::batch_norm2d_statistics<Isa>(batch, channels, plane, x.data(), sums.data());
  kernel::batch_norm2d_statistics(batch, channels, plane, x.data(), sums_expected.data());
  CHECK(largest_difference(sums.values(), sums_expected.values()) < 1e-13);

  Guarded<double> moments(2 * channels, -1.5), moments_expected(2 * channels, -1.5);
  Guarded<Real> dgain(channels, Real(1)), dgain_expected(channels, Real(1)), dshift(channels, Real(2)), dshift_expected(channels, Real(2));
  kernel::cpu::batch_norm2d_backward_statistics<Isa>(batch, channels, plane, x.data(), mean.data(), rstd.data(), dy.data(), moments.data(),
                                                     dgain.data(), dshift.data());
  kernel::batch_norm2d_backward_statistics(batch, channels, plane, x.data(), mean.data(), rstd.data(), dy.data(), moments_expected.data(),
                                           dgain_expected.data(), dshift_expected.data());
  CHECK(largest_difference(moments.values(), moments_expected.values()) < 1e-13);
  CHECK(largest_difference(dgain.values(), dgain_expected.values()) < rounding<Real>(4));
  CHECK(largest_difference(dshift.values(), dshift_expected.values()) < rounding<Real>(4));

  Guarded<Real> y(elems), y_expected(elems), evaluated(elems), evaluated_expected(elems), dx(elems), dx_expected(elems);
  kernel::cpu::batch_norm2d_forward<Isa>(batch, channels, plane, x.data(), mean.data(), rstd.data(), gain.data(), shift.data(), y.data());
  kernel::batch_norm2d_forward(batch, channels, plane, x.data(), mean.data(), rstd.data(), gain.data(), shift.data(), y_expected.data());
  kernel::cpu::batch_norm2d_evaluate<Isa>(batch, channels, plane, x.data(), mean.data(), rstd.data(), 1e-5, gain.data(), shift.data(),
                                          evaluated.data());
  kernel::batch_norm2d_evaluate(batch, channels, plane, x.data(), mean.data(), rstd.data(), 1e-5, gain.data(), shift.data(),
                                evaluated_expected.data());
  kernel::cpu::batch_norm2d_backward<Isa>(batch, channels, plane, x.data(), mean.data(), rstd.data(), gain.data(), dy.data(),
                                          moments.data(), 100.0, dx.data());
  kernel::batch_norm2d_backward(batch, channels, plane, x.data(), mean.data(), rstd.data(), gain.data(), dy.data(), moments_expected.data(),
                                100.0, dx_expected.data());
  CHECK(largest_difference(y.values(), y_expected.values()) < rounding<Real>(4));
  CHECK(largest_difference(evaluated.values(), evaluated_expected.values()) < rounding<Real>(4));
  CHECK(largest_difference(dx.values(), dx_expected.values()) < rounding<Real>(4));
  CHECK((sums.guards_hold() && moments.guards_hold() && dgain.guards_hold() && dshift.guards_hold()));
  CHECK((y.guards_hold() && evaluated.guards_hold() && dx.guards_hold()));
}

}  // namespace

TEST_CASE_TEMPLATE("cpu_batch_norm2d_all_sizes_equal_the_reference", Real, float, double) {
  for (Index plane = 1; plane < 80; ++plane) {
    compare<simd::Native, Real>(1 + plane % 3, 1 + plane % 5, plane, std::uint64_t(plane));
    if (plane % 7 == 0) compare<simd::Generic, Real>(2, 3, plane, std::uint64_t(plane));
  }
  compare<simd::Native, Real>(0, 3, 5, 1);
}

TEST_CASE_TEMPLATE("cpu_batch_norm2d_a_batch_in_parts_gives_the_bits_of_the_whole", Real, float, double) {
  const Index images = 7, channels = 3, plane = 53, image = channels * plane;
  Noise noise(2);
  const auto x = noise.values<Real>(images * image), dy = noise.values<Real>(images * image), mean = noise.values<Real>(channels),
             rstd = noise.values<Real>(channels);
  const auto run = [&](std::initializer_list<Index> parts) {
    std::vector<double> sums(std::size_t(4 * channels), 0.0);
    std::vector<Real> gradients(std::size_t(2 * channels), Real(0));
    Index at = 0;
    for (Index n : parts) {
      kernel::cpu::batch_norm2d_statistics<simd::Native>(n, channels, plane, x.data() + at, sums.data());
      kernel::cpu::batch_norm2d_backward_statistics<simd::Native>(n, channels, plane, x.data() + at, mean.data(), rstd.data(),
                                                                  dy.data() + at, sums.data() + 2 * channels, gradients.data(),
                                                                  gradients.data() + channels);
      at += n * image;
    }
    sums.insert(sums.end(), gradients.begin(), gradients.end());
    return sums;
  };
  CHECK(run({7}) == run({3, 0, 4}));
}

TEST_CASE("cpu_batch_norm2d_finish_is_the_reference") {
  const double sums[] = {12, 54};
  Guarded<float> mean(1), rstd(1), running_mean(1, 1.0f), running_variance(1, 1.0f);
  kernel::cpu::batch_norm2d_finish<simd::Native>(1, 4.0, sums, 0.0, 0.5, mean.data(), rstd.data(), running_mean.data(),
                                                 running_variance.data());
  CHECK((mean[0] == 3 && running_mean[0] == 2 && running_variance[0] == 3.5f));
}
