// SPDX-License-Identifier: Apache-2.0
// Two-dimensional convolution of images (B, C, H, W): the contracts, and plain implementations to test the others against.
// As in torch.nn.functional.conv2d it is a cross-correlation: the kernel is not turned around.
//
// Padding is zeros that take part in the sums: 0 · ∞ and 0 · NaN are NaN. In backward_input, where a weight is not finite, the elements of
// dx that it meets are not finite; whether they are ∞ or NaN is not specified near the border.
#pragma once

#include "weft/base/config.hpp"
#include "weft/shape/conv2d_sizes.hpp"

namespace weft::kernel {

// visit(y_offset, x_offset, weight_offset, inside) for every product of the convolution of one image, the sums of an element of y one
// after the other in the order of the weight. inside: whether x_offset is in the image; else it is padding.
template <class Visit>
inline void visit_conv2d(const Conv2dSizes& s, Visit&& visit) {
  const Index out_height = s.out_height(), out_width = s.out_width();
  for (Index k = 0; k < s.out_channels; ++k) {
    const Index first_channel = k / s.group_out_channels() * s.group_in_channels();
    for (Index oy = 0; oy < out_height; ++oy) {
      for (Index ox = 0; ox < out_width; ++ox) {
        for (Index c = 0; c < s.group_in_channels(); ++c) {
          for (Index i = 0; i < s.kernel_height; ++i) {
            for (Index j = 0; j < s.kernel_width; ++j) {
              const Index iy = oy * s.stride - s.padding + i * s.dilation, ix = ox * s.stride - s.padding + j * s.dilation;
              const bool inside = iy >= 0 && iy < s.height && ix >= 0 && ix < s.width;
              visit((k * out_height + oy) * out_width + ox, ((first_channel + c) * s.height + iy) * s.width + ix,
                    ((k * s.group_in_channels() + c) * s.kernel_height + i) * s.kernel_width + j, inside);
            }
          }
        }
      }
    }
  }
}

// y[b, k] = bias[k] + Σ over the channels c of k's group of weight[k, c] correlated with x[b, c].
// Shapes: x (B, C, H, W), weight (K, C / groups, kernel_height, kernel_width), bias (K) or null, y (B, K, out_height, out_width).
template <class Real>
inline void conv2d_forward(Index batch, const Conv2dSizes& sizes, const Real* x, const Real* weight, const Real* bias, Real* y) {
  for (Index b = 0; b < batch; ++b) {
    const Real* const image = x + b * sizes.in_channels * sizes.in_plane();
    Real* const out = y + b * sizes.out_channels * sizes.out_plane();
    for (Index k = 0; k < sizes.out_channels; ++k) {
      for (Index n = 0; n < sizes.out_plane(); ++n) out[k * sizes.out_plane() + n] = bias ? bias[k] : Real(0);
    }
    visit_conv2d(sizes, [&](Index to, Index from, Index tap, bool inside) { out[to] += weight[tap] * (inside ? image[from] : Real(0)); });
  }
}

// dx = the gradient of x; overwritten.
// Shapes: dy (B, K, out_height, out_width), weight (K, C / groups, kernel_height, kernel_width), dx (B, C, H, W).
template <class Real>
inline void conv2d_backward_input(Index batch, const Conv2dSizes& sizes, const Real* dy, const Real* weight, Real* dx) {
  for (Index b = 0; b < batch; ++b) {
    const Real* const out_gradient = dy + b * sizes.out_channels * sizes.out_plane();
    Real* const gradient = dx + b * sizes.in_channels * sizes.in_plane();
    for (Index i = 0; i < sizes.in_channels * sizes.in_plane(); ++i) gradient[i] = 0;
    visit_conv2d(sizes, [&](Index to, Index from, Index tap, bool inside) {
      if (inside) gradient[from] += weight[tap] * out_gradient[to];
    });
  }
}

// dweight += the gradient of weight; dbias += the sums of dy over images and planes. Image after image, so that a batch in parts gives
// the bits of the whole.
// Shapes: x (B, C, H, W), dy (B, K, out_height, out_width), dweight (K, C / groups, kernel_height, kernel_width), dbias (K) or null.
template <class Real>
inline void conv2d_backward_weight(Index batch, const Conv2dSizes& sizes, const Real* x, const Real* dy, Real* dweight, Real* dbias) {
  for (Index b = 0; b < batch; ++b) {
    const Real* const image = x + b * sizes.in_channels * sizes.in_plane();
    const Real* const out_gradient = dy + b * sizes.out_channels * sizes.out_plane();
    visit_conv2d(
        sizes, [&](Index to, Index from, Index tap, bool inside) { dweight[tap] += out_gradient[to] * (inside ? image[from] : Real(0)); });
    for (Index i = 0; dbias && i < sizes.out_channels * sizes.out_plane(); ++i) dbias[i / sizes.out_plane()] += out_gradient[i];
  }
}

}  // namespace weft::kernel
