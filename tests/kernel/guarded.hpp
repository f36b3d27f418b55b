// SPDX-License-Identifier: Apache-2.0
// Buffers for kernel tests: an output between guard zones, filled with NaN; inputs of exactly their size, so that sanitizers see reads
// beside them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <weft/base/config.hpp>

namespace weft::test {

// `count` elements of poison (or of `start`) between two zones that must stay as they are.
template <class T>
class Guarded {
 public:
  explicit Guarded(Index count, T start = poison()) : values_(std::size_t(count + 2 * zone), T(-77)), count_(count) {
    std::fill_n(data(), count, start);
  }
  explicit Guarded(const std::vector<T>& start) : Guarded(Index(start.size())) { std::copy(start.begin(), start.end(), data()); }

  T* data() { return values_.data() + zone; }
  T operator[](Index i) const { return values_[std::size_t(zone + i)]; }
  Index size() const { return count_; }
  std::vector<T> values() const { return {values_.begin() + zone, values_.end() - zone}; }
  bool guards_hold() const {
    return std::count(values_.begin(), values_.begin() + zone, T(-77)) == zone &&
           std::count(values_.end() - zone, values_.end(), T(-77)) == zone;
  }

 private:
  static constexpr Index zone = 37;
  static constexpr T poison() {
    if constexpr (std::numeric_limits<T>::has_quiet_NaN)
      return std::numeric_limits<T>::quiet_NaN();
    else
      return std::numeric_limits<T>::min();
  }
  std::vector<T> values_;
  Index count_;
};

// Pseudo-random values in [-1, 1), the same everywhere.
class Noise {
 public:
  explicit Noise(std::uint64_t seed = 1) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}

  std::uint64_t bits() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return state_ >> 33;
  }
  Index between(Index least, Index most) { return least + Index(bits() % std::uint64_t(most - least + 1)); }
  template <class Real>
  Real value() {
    return Real(double(bits()) / double(1u << 30) - 1.0);
  }
  template <class Real>
  std::vector<Real> values(Index count) {
    std::vector<Real> out(std::size_t(count), Real(0));
    for (Real& v : out) v = value<Real>();
    return out;
  }

 private:
  std::uint64_t state_;
};

// The largest |a - b| / (1 + |b|); infinite where one is NaN and the other is not.
template <class A, class B>
double largest_difference(const A& a, const B& b) {
  double most = 0;
  for (Index i = 0; i < Index(b.size()); ++i) {
    const double x = double(a[std::size_t(i)]), y = double(b[std::size_t(i)]);
    if (std::isnan(x) && std::isnan(y)) continue;
    const double difference = std::abs(x - y) / (1 + std::abs(y));
    most = std::max(most, difference >= 0 ? difference : std::numeric_limits<double>::infinity());
  }
  return most;
}
template <class Real>
constexpr double rounding(double terms) {
  return 4 * terms * double(std::numeric_limits<Real>::epsilon());
}

// |analytic - numerical derivative of `loss` along values| for every one of values; loss() reads them.
template <class Loss>
double largest_gradient_error(std::vector<double>& values, const std::vector<double>& analytic, Loss&& loss, double step = 1e-5) {
  double most = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double kept = values[i];
    values[i] = kept + step;
    const double above = loss();
    values[i] = kept - step;
    const double below = loss();
    values[i] = kept;
    const double difference = std::abs((above - below) / (2 * step) - analytic[i]);
    most = std::max(most, difference >= 0 ? difference : std::numeric_limits<double>::infinity());
  }
  return most;
}

template <class A, class B>
double inner_product(const A& a, const B& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double(a[i]) * double(b[i]);
  return sum;
}

}  // namespace weft::test
