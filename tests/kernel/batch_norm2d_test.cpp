// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/batch_norm2d.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"

namespace {

using namespace weft;
using namespace weft::test;

constexpr double epsilon = 1e-5, momentum = 0.1;

// Training over images that come in two parts, as two ranks or two micro-batches hold them.
struct Problem {
  Index first = 2, second = 3, channels = 3, plane = 6;
  std::vector<double> x, gain, shift, dy;

  Problem() {
    Noise noise(4);
    x = noise.values<double>(elems()), dy = noise.values<double>(elems());
    gain = noise.values<double>(channels), shift = noise.values<double>(channels);
    for (double& value : x) value = 3 * value + 1;
  }
  Index elems() const { return (first + second) * channels * plane; }
  Index split() const { return first * channels * plane; }
  double count() const { return double((first + second) * plane); }
};

struct Statistics {
  std::vector<double> mean, rstd;
};
Statistics joined(const Problem& p) {
  std::vector<double> sums(std::size_t(2 * p.channels), 0.0);
  kernel::batch_norm2d_statistics(p.first, p.channels, p.plane, p.x.data(), sums.data());
  kernel::batch_norm2d_statistics(p.second, p.channels, p.plane, p.x.data() + p.split(), sums.data());
  Statistics out{std::vector<double>(std::size_t(p.channels)), std::vector<double>(std::size_t(p.channels))};
  kernel::batch_norm2d_finish<double>(p.channels, p.count(), sums.data(), epsilon, momentum, out.mean.data(), out.rstd.data(), nullptr,
                                      nullptr);
  return out;
}

std::vector<double> normalised(const Problem& p) {
  const Statistics s = joined(p);
  std::vector<double> y(p.x.size());
  kernel::batch_norm2d_forward(p.first + p.second, p.channels, p.plane, p.x.data(), s.mean.data(), s.rstd.data(), p.gain.data(),
                               p.shift.data(), y.data());
  return y;
}

}  // namespace

TEST_CASE("batch_norm2d_two_parts_normalise_to_gain_and_shift") {
  const Problem p;
  const auto y = normalised(p);
  for (Index c = 0; c < p.channels; ++c) {
    double sum = 0, square_sum = 0;
    for (Index b = 0; b < p.first + p.second; ++b) {
      for (Index i = 0; i < p.plane; ++i) sum += y[std::size_t((b * p.channels + c) * p.plane + i)];
    }
    const double mean = sum / p.count();
    for (Index b = 0; b < p.first + p.second; ++b) {
      for (Index i = 0; i < p.plane; ++i) square_sum += std::pow(y[std::size_t((b * p.channels + c) * p.plane + i)] - mean, 2);
    }
    CHECK(mean == doctest::Approx(p.shift[std::size_t(c)]));
    CHECK(square_sum / p.count() == doctest::Approx(std::pow(p.gain[std::size_t(c)], 2)).epsilon(1e-4));
  }
}

TEST_CASE("batch_norm2d_gradients_through_the_global_statistics_are_the_finite_differences") {
  Problem p;
  const auto loss = [&] { return inner_product(normalised(p), p.dy); };
  const Statistics s = joined(p);
  std::vector<double> sums(std::size_t(2 * p.channels), 0.0);
  Guarded<double> dgain(p.channels, 0.0), dshift(p.channels, 0.0), dx(p.elems());
  for (const auto& [images, at] : {std::pair{p.first, Index(0)}, std::pair{p.second, p.split()}}) {
    kernel::batch_norm2d_backward_statistics(images, p.channels, p.plane, p.x.data() + at, s.mean.data(), s.rstd.data(), p.dy.data() + at,
                                             sums.data(), dgain.data(), dshift.data());
  }
  for (const auto& [images, at] : {std::pair{p.first, Index(0)}, std::pair{p.second, p.split()}}) {
    kernel::batch_norm2d_backward(images, p.channels, p.plane, p.x.data() + at, s.mean.data(), s.rstd.data(), p.gain.data(),
                                  p.dy.data() + at, sums.data(), p.count(), dx.data() + at);
  }
  CHECK(largest_gradient_error(p.x, dx.values(), loss) < 1e-8);
  CHECK(largest_gradient_error(p.gain, dgain.values(), loss) < 1e-8);
  CHECK(largest_gradient_error(p.shift, dshift.values(), loss) < 1e-8);
  CHECK((dx.guards_hold() && dgain.guards_hold() && dshift.guards_hold()));
}

TEST_CASE_TEMPLATE("batch_norm2d_finish_known_sums_give_known_statistics", Real, float, double) {
  const double sums[] = {12, 0, 54, 8};  // {1, 3, 2, 6} and {-2, 2, 0, 0}
  Guarded<Real> mean(2), rstd(2), running_mean(2, Real(10)), running_variance(2, Real(20));
  kernel::batch_norm2d_finish<Real>(2, 4.0, sums, 0.0, 0.25, mean.data(), rstd.data(), running_mean.data(), running_variance.data());
  CHECK(mean[0] == doctest::Approx(3));
  CHECK(rstd[0] == doctest::Approx(1 / std::sqrt(4.5)));
  CHECK(running_mean[0] == doctest::Approx(8.25));
  CHECK(running_variance[0] == doctest::Approx(0.75 * 20 + 0.25 * 6));  // unbiased: 4.5 · 4 / 3
  CHECK((mean[1] == 0 && running_variance[1] == doctest::Approx(15 + 0.25 * 8.0 / 3)));
  CHECK((mean.guards_hold() && rstd.guards_hold() && running_mean.guards_hold() && running_variance.guards_hold()));
}

TEST_CASE("batch_norm2d_finish_without_images_leaves_the_running_statistics") {
  const double sums[] = {0, 0};
  Guarded<float> mean(1), rstd(1), running_mean(1, 10.0f), running_variance(1, 20.0f);
  kernel::batch_norm2d_finish<float>(1, 0.0, sums, epsilon, momentum, mean.data(), rstd.data(), running_mean.data(),
                                     running_variance.data());
  CHECK((mean[0] == 0 && std::isfinite(rstd[0]) && running_mean[0] == 10 && running_variance[0] == 20));
}

TEST_CASE("batch_norm2d_finish_with_one_value_is_refused") {
  const double sums[] = {3, 9};
  Guarded<float> mean(1), rstd(1);
  try {
    kernel::batch_norm2d_finish<float>(1, 1.0, sums, epsilon, momentum, mean.data(), rstd.data(), nullptr, nullptr);
    FAIL("not refused");
  } catch (const Error& error) { CHECK(error.id() == "batch_norm2d.count"); }
}

TEST_CASE("batch_norm2d_finish_equal_values_give_no_negative_variance") {
  const double value = 0.1, count = 3;
  const double sums[] = {value + value + value, value * value * 3 * (1 - 1e-15)};
  Guarded<double> mean(1), rstd(1);
  kernel::batch_norm2d_finish<double>(1, count, sums, 1e-20, momentum, mean.data(), rstd.data(), nullptr, nullptr);
  CHECK(rstd[0] == doctest::Approx(1e10));
}

TEST_CASE("batch_norm2d_finish_a_nan_in_the_batch_is_kept") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), sums[] = {nan, nan};
  Guarded<float> mean(1), rstd(1);
  kernel::batch_norm2d_finish<float>(1, 8.0, sums, epsilon, momentum, mean.data(), rstd.data(), nullptr, nullptr);
  CHECK((std::isnan(mean[0]) && std::isnan(rstd[0])));
}

TEST_CASE("batch_norm2d_evaluate_uses_the_running_statistics") {
  const std::vector<double> x = {1, 2, 3, 4}, mean = {1, 3}, variance = {4, 0.25}, gain = {2, 3}, shift = {-1, 5};
  Guarded<double> y(4);
  kernel::batch_norm2d_evaluate(1, 2, 2, x.data(), mean.data(), variance.data(), 0.0, gain.data(), shift.data(), y.data());
  CHECK(y.values() == std::vector<double>{-1, 0, 5, 11});
}
