// SPDX-License-Identifier: Apache-2.0
// Batch normalisation of images; contracts in weft/kernel/batch_norm2d.hpp. Memory bound: each pass reads its tensors once, in order.
#pragma once

#include "weft/kernel/batch_norm2d.hpp"
#include "weft/simd/pairs.hpp"

namespace weft::kernel::cpu {

// A plane's two sums: chains in vectors of doubles, then their lanes in order.
struct PlaneSums {
  double first, second;
};

// Σ x and Σ x² over one plane.
template <class Isa, class Real>
inline PlaneSums plane_moments(Index plane, const Real* x) {
  constexpr Index lanes = simd::lanes<Isa, double>;
  simd::Vector<Isa, double> sums[4] = {}, square_sums[4] = {};
  const Index whole = plane / (4 * lanes) * (4 * lanes);
  for (Index i = 0; i < whole; i += 4 * lanes) {
    for (Index q = 0; q < 4; ++q) {
      const auto value = simd::load_as_double<Isa>(x + i + q * lanes);
      sums[q] += value, square_sums[q] += value * value;
    }
  }
  PlaneSums total{simd::sum<Isa, double>((sums[0] + sums[1]) + (sums[2] + sums[3])),
                  simd::sum<Isa, double>((square_sums[0] + square_sums[1]) + (square_sums[2] + square_sums[3]))};
  for (Index i = whole; i < plane; ++i) total.first += double(x[i]), total.second += double(x[i]) * double(x[i]);
  return total;
}

// Σ dy and Σ dy · (x - mean) over one plane.
template <class Isa, class Real>
inline PlaneSums plane_gradient_moments(Index plane, const Real* x, double mean, const Real* dy) {
  constexpr Index lanes = simd::lanes<Isa, double>;
  const auto centre = simd::broadcast<Isa>(mean);
  simd::Vector<Isa, double> sums[4] = {}, product_sums[4] = {};
  const Index whole = plane / (4 * lanes) * (4 * lanes);
  for (Index i = 0; i < whole; i += 4 * lanes) {
    for (Index q = 0; q < 4; ++q) {
      const auto gradient = simd::load_as_double<Isa>(dy + i + q * lanes);
      sums[q] += gradient, product_sums[q] += gradient * (simd::load_as_double<Isa>(x + i + q * lanes) - centre);
    }
  }
  PlaneSums total{simd::sum<Isa, double>((sums[0] + sums[1]) + (sums[2] + sums[3])),
                  simd::sum<Isa, double>((product_sums[0] + product_sums[1]) + (product_sums[2] + product_sums[3]))};
  for (Index i = whole; i < plane; ++i) total.first += double(dy[i]), total.second += double(dy[i]) * (double(x[i]) - mean);
  return total;
}

// y = (x - mean) · scale + shift over one plane.
template <class Isa, class Real>
inline void normalise_plane(Index plane, const Real* x, Real mean, Real scale, Real shift, Real* y) {
  constexpr Index lanes = simd::lanes<Isa, Real>;
  const auto centre = simd::broadcast<Isa>(mean), factor = simd::broadcast<Isa>(scale), level = simd::broadcast<Isa>(shift);
  const Index whole = plane / lanes * lanes;
  for (Index i = 0; i < whole; i += lanes) simd::store<Isa>(y + i, (simd::load<Isa>(x + i) - centre) * factor + level);
  for (Index i = whole; i < plane; ++i) y[i] = (x[i] - mean) * scale + shift;
}

template <class Isa, class Real>
inline void batch_norm2d_statistics(Index batch, Index channels, Index plane, const Real* x, double* sums) {
  for (Index b = 0; b < batch; ++b) {
    for (Index c = 0; c < channels; ++c, x += plane) {
      const PlaneSums part = plane_moments<Isa>(plane, x);
      sums[c] += part.first, sums[channels + c] += part.second;
    }
  }
}

template <class Isa, class Real>
inline void batch_norm2d_finish(Index channels, double count, const double* sums, double epsilon, double momentum, Real* mean, Real* rstd,
                                Real* running_mean, Real* running_variance) {
  kernel::batch_norm2d_finish(channels, count, sums, epsilon, momentum, mean, rstd, running_mean, running_variance);
}

template <class Isa, class Real>
inline void batch_norm2d_forward(Index batch, Index channels, Index plane, const Real* x, const Real* mean, const Real* rstd,
                                 const Real* gain, const Real* shift, Real* y) {
  for (Index b = 0; b < batch; ++b) {
    for (Index c = 0; c < channels; ++c, x += plane, y += plane) normalise_plane<Isa>(plane, x, mean[c], rstd[c] * gain[c], shift[c], y);
  }
}

template <class Isa, class Real>
inline void batch_norm2d_evaluate(Index batch, Index channels, Index plane, const Real* x, const Real* running_mean,
                                  const Real* running_variance, double epsilon, const Real* gain, const Real* shift, Real* y) {
  for (Index b = 0; b < batch; ++b) {
    for (Index c = 0; c < channels; ++c, x += plane, y += plane) {
      const Real scale = Real(1 / std::sqrt(double(running_variance[c]) + epsilon)) * gain[c];
      normalise_plane<Isa>(plane, x, running_mean[c], scale, shift[c], y);
    }
  }
}

template <class Isa, class Real>
inline void batch_norm2d_backward_statistics(Index batch, Index channels, Index plane, const Real* x, const Real* mean, const Real* rstd,
                                             const Real* dy, double* sums, Real* dgain, Real* dshift) {
  for (Index b = 0; b < batch; ++b) {
    for (Index c = 0; c < channels; ++c, x += plane, dy += plane) {
      PlaneSums part = plane_gradient_moments<Isa>(plane, x, double(mean[c]), dy);
      part.second *= double(rstd[c]);
      sums[c] += part.first, sums[channels + c] += part.second;
      dshift[c] += Real(part.first), dgain[c] += Real(part.second);
    }
  }
}

template <class Isa, class Real>
inline void batch_norm2d_backward(Index batch, Index channels, Index plane, const Real* x, const Real* mean, const Real* rstd,
                                  const Real* gain, const Real* dy, const double* sums, double count, Real* dx) {
  constexpr Index lanes = simd::lanes<Isa, Real>;
  for (Index b = 0; b < batch; ++b) {
    for (Index c = 0; c < channels; ++c, x += plane, dy += plane, dx += plane) {
      const Real scale = gain[c] * rstd[c], average = Real(sums[c] / count), slope = Real(sums[channels + c] / count * double(rstd[c]));
      const auto factor = simd::broadcast<Isa>(scale), level = simd::broadcast<Isa>(average), tilt = simd::broadcast<Isa>(slope);
      const auto centre = simd::broadcast<Isa>(mean[c]);
      const Index whole = plane / lanes * lanes;
      for (Index i = 0; i < whole; i += lanes) {
        simd::store<Isa>(dx + i, factor * (simd::load<Isa>(dy + i) - level - (simd::load<Isa>(x + i) - centre) * tilt));
      }
      for (Index i = whole; i < plane; ++i) dx[i] = scale * (dy[i] - average - (x[i] - mean[c]) * slope);
    }
  }
}

}  // namespace weft::kernel::cpu
