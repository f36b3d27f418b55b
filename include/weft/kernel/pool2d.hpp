// SPDX-License-Identifier: Apache-2.0
// Pooling of images (B, C, H, W) to (B, C, out_height, out_width): the contracts, and plain implementations to test the others against.
// Windows may overlap (stride < kernel) or leave elements out (stride > kernel).
#pragma once

#include <algorithm>

#include "weft/base/config.hpp"
#include "weft/shape/pool2d_sizes.hpp"

namespace weft::kernel {

// The part of a window that lies in the image.
struct Window {
  Index top, bottom, left, right;
};
inline Window pool2d_window(const Pool2dSizes& s, Index oy, Index ox) {
  const Index top = oy * s.stride - s.padding, left = ox * s.stride - s.padding;
  return {std::max<Index>(top, 0), std::min(top + s.kernel, s.height), std::max<Index>(left, 0), std::min(left + s.kernel, s.width)};
}

// y = the largest element of each window; argmax = where it is in its H·W plane. Padding is never chosen. Of equals the first in reading
// order is; a NaN always is (of several the last), as in torch.
// Shapes: x (B, C, H, W), y and argmax (B, C, out_height, out_width).
template <class Real>
inline void max_pool2d_forward(Index batch, const Pool2dSizes& sizes, const Real* x, Real* y, std::int32_t* argmax) {
  for (Index plane = 0; plane < batch * sizes.channels; ++plane) {
    const Real* const in = x + plane * sizes.in_plane();
    for (Index oy = 0; oy < sizes.out_height(); ++oy) {
      for (Index ox = 0; ox < sizes.out_width(); ++ox) {
        const Window w = pool2d_window(sizes, oy, ox);
        Index best = w.top * sizes.width + w.left;
        for (Index iy = w.top; iy < w.bottom; ++iy) {
          for (Index ix = w.left; ix < w.right; ++ix) {
            const Real value = in[iy * sizes.width + ix];
            if (value > in[best] || value != value) best = iy * sizes.width + ix;
          }
        }
        *y++ = in[best];
        *argmax++ = std::int32_t(best);
      }
    }
  }
}

// dx = dy at each window's argmax (summed where windows share it), zero elsewhere; overwritten.
// Shapes: argmax and dy (B, C, out_height, out_width), dx (B, C, H, W).
template <class Real>
inline void max_pool2d_backward(Index batch, const Pool2dSizes& sizes, const std::int32_t* argmax, const Real* dy, Real* dx) {
  const Index out_plane = sizes.out_plane(), in_plane = sizes.in_plane();
  for (Index plane = 0; plane < batch * sizes.channels; ++plane) {
    std::fill_n(dx + plane * in_plane, in_plane, Real(0));
    for (Index n = plane * out_plane; n < (plane + 1) * out_plane; ++n) dx[plane * in_plane + argmax[n]] += dy[n];
  }
}

// y = the sum of each window / kernel². Padding counts as zeros: the divisor is the same at the border (torch's default).
// Shapes: x (B, C, H, W), y (B, C, out_height, out_width).
template <class Real>
inline void average_pool2d_forward(Index batch, const Pool2dSizes& sizes, const Real* x, Real* y) {
  const Real divisor = Real(sizes.kernel * sizes.kernel);
  for (Index plane = 0; plane < batch * sizes.channels; ++plane) {
    const Real* const in = x + plane * sizes.in_plane();
    for (Index oy = 0; oy < sizes.out_height(); ++oy) {
      for (Index ox = 0; ox < sizes.out_width(); ++ox) {
        const Window w = pool2d_window(sizes, oy, ox);
        Real sum = 0;
        for (Index iy = w.top; iy < w.bottom; ++iy) {
          for (Index ix = w.left; ix < w.right; ++ix) sum += in[iy * sizes.width + ix];
        }
        *y++ = sum / divisor;
      }
    }
  }
}

// dx = the sum of dy / kernel² over the windows that an element is in; overwritten.
// Shapes: dy (B, C, out_height, out_width), dx (B, C, H, W).
template <class Real>
inline void average_pool2d_backward(Index batch, const Pool2dSizes& sizes, const Real* dy, Real* dx) {
  const Real divisor = Real(sizes.kernel * sizes.kernel);
  for (Index plane = 0; plane < batch * sizes.channels; ++plane) {
    Real* const gradient = dx + plane * sizes.in_plane();
    std::fill_n(gradient, sizes.in_plane(), Real(0));
    for (Index oy = 0; oy < sizes.out_height(); ++oy) {
      for (Index ox = 0; ox < sizes.out_width(); ++ox) {
        const Window w = pool2d_window(sizes, oy, ox);
        const Real part = *dy++ / divisor;
        for (Index iy = w.top; iy < w.bottom; ++iy) {
          for (Index ix = w.left; ix < w.right; ++ix) gradient[iy * sizes.width + ix] += part;
        }
      }
    }
  }
}

}  // namespace weft::kernel
