// SPDX-License-Identifier: Apache-2.0
// Batch normalisation of images (B, C, H, W) with plane = H·W: the contracts, and plain implementations to test the others against.
//
// Training takes two passes either way, so that the batch may be spread over micro-batches and ranks: each part adds to `sums`, the sums of
// all parts are added up, then each part is normalised. Sums are double, and each image's share is added by itself: a batch in parts gives
// the bits of the whole as long as one caller adds the parts in order.
// Source: S. Ioffe, C. Szegedy, Batch Normalization, arXiv 1502.03167; conventions of torch.nn.BatchNorm2d.
#pragma once

#include <cmath>

#include "weft/base/config.hpp"
#include "weft/base/error.hpp"

namespace weft::kernel {

// sums[c] += Σ x, sums[channels + c] += Σ x² over images and plane.
// Shapes: x (B, C, plane), sums (2, C).
template <class Real>
inline void batch_norm2d_statistics(Index batch, Index channels, Index plane, const Real* x, double* sums) {
  for (Index b = 0; b < batch; ++b) {
    for (Index c = 0; c < channels; ++c) {
      double sum = 0, square_sum = 0;
      for (Index i = 0; i < plane; ++i) {
        const double value = double(x[(b * channels + c) * plane + i]);
        sum += value, square_sum += value * value;
      }
      sums[c] += sum, sums[channels + c] += square_sum;
    }
  }
}

// mean and rstd = 1 / √(variance + epsilon) of the global batch, from the sums over its `count` elements a channel (the variance is the
// biased one); running statistics move towards the batch's by `momentum`, the variance there being the unbiased one, · count / (count - 1).
// Shapes: sums (2, C), mean, rstd (C), running_mean and running_variance (C) or both null.
// count = 0 (no images anywhere): mean 0, rstd 1 / √epsilon, running statistics stay as they are.
// Errors: batch_norm2d.count if count is 1: its variance is no estimate, and every normalised value would be 0; torch refuses it, too.
template <class Real>
inline void batch_norm2d_finish(Index channels, double count, const double* sums, double epsilon, double momentum, Real* mean, Real* rstd,
                                Real* running_mean, Real* running_variance) {
  if (count == 1) {
    throw Error("batch_norm2d.count",
                "training needs more than one value a channel (images of the global batch times height times width); "
                "there is 1: use a larger batch, or evaluate");
  }
  for (Index c = 0; c < channels; ++c) {
    const double average = count > 0 ? sums[c] / count : 0;
    double variance = count > 0 ? sums[channels + c] / count - average * average : 0;
    if (variance < 0) variance = 0;  // by rounding; a NaN stays
    mean[c] = Real(average);
    rstd[c] = Real(1 / std::sqrt(variance + epsilon));
    if (running_mean && count > 0) {
      running_mean[c] = Real((1 - momentum) * double(running_mean[c]) + momentum * average);
      running_variance[c] = Real((1 - momentum) * double(running_variance[c]) + momentum * variance * (count / (count - 1)));
    }
  }
}

// y = (x - mean) · rstd · gain + shift.
// Shapes: x, y (B, C, plane), mean, rstd, gain, shift (C).
template <class Real>
inline void batch_norm2d_forward(Index batch, Index channels, Index plane, const Real* x, const Real* mean, const Real* rstd,
                                 const Real* gain, const Real* shift, Real* y) {
  for (Index row = 0; row < batch * channels; ++row) {
    const Index c = row % channels;
    const Real scale = rstd[c] * gain[c];
    for (Index i = 0; i < plane; ++i) y[row * plane + i] = (x[row * plane + i] - mean[c]) * scale + shift[c];
  }
}

// y = (x - running_mean) / √(running_variance + epsilon) · gain + shift: no batch statistics.
// Shapes: x, y (B, C, plane), running_mean, running_variance, gain, shift (C).
template <class Real>
inline void batch_norm2d_evaluate(Index batch, Index channels, Index plane, const Real* x, const Real* running_mean,
                                  const Real* running_variance, double epsilon, const Real* gain, const Real* shift, Real* y) {
  for (Index row = 0; row < batch * channels; ++row) {
    const Index c = row % channels;
    const Real scale = Real(1 / std::sqrt(double(running_variance[c]) + epsilon)) * gain[c];
    for (Index i = 0; i < plane; ++i) y[row * plane + i] = (x[row * plane + i] - running_mean[c]) * scale + shift[c];
  }
}

// With x̂ = (x - mean) · rstd: sums[c] += Σ dy, sums[channels + c] += Σ dy · x̂ over images and plane; dshift and dgain += the same (of this
// call alone: the parts' gradients are summed like every other parameter's).
// Shapes: x, dy (B, C, plane), mean, rstd, dgain, dshift (C), sums (2, C).
template <class Real>
inline void batch_norm2d_backward_statistics(Index batch, Index channels, Index plane, const Real* x, const Real* mean, const Real* rstd,
                                             const Real* dy, double* sums, Real* dgain, Real* dshift) {
  for (Index b = 0; b < batch; ++b) {
    for (Index c = 0; c < channels; ++c) {
      const Index row = (b * channels + c) * plane;
      double sum = 0, product_sum = 0;
      for (Index i = 0; i < plane; ++i) {
        sum += double(dy[row + i]);
        product_sum += double(dy[row + i]) * (double(x[row + i]) - double(mean[c]));
      }
      product_sum *= double(rstd[c]);
      sums[c] += sum, sums[channels + c] += product_sum;
      dgain[c] += Real(product_sum), dshift[c] += Real(sum);
    }
  }
}

// dx = gain · rstd · (dy - Σdy / count - x̂ · Σ(dy · x̂) / count), with the sums over the global batch; overwritten.
// Shapes: x, dy, dx (B, C, plane), mean, rstd, gain (C), sums (2, C). count = 0 goes with batch = 0: nothing is written.
template <class Real>
inline void batch_norm2d_backward(Index batch, Index channels, Index plane, const Real* x, const Real* mean, const Real* rstd,
                                  const Real* gain, const Real* dy, const double* sums, double count, Real* dx) {
  for (Index row = 0; row < batch * channels; ++row) {
    const Index c = row % channels;
    const Real scale = gain[c] * rstd[c], average = Real(sums[c] / count);
    const Real slope = Real(sums[channels + c] / count * double(rstd[c]));
    for (Index i = row * plane; i < (row + 1) * plane; ++i) dx[i] = scale * (dy[i] - average - (x[i] - mean[c]) * slope);
  }
}

}  // namespace weft::kernel
