// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/base/config.hpp"

namespace weft {

// How many places a window that reaches over `reach` elements finds along `extent`, with `padding` more on either side; 0 if it does not
// fit.
constexpr Index window_places(Index extent, Index reach, Index stride, Index padding) {
  const Index room = extent + 2 * padding - reach;
  return room < 0 ? 0 : room / stride + 1;
}

// The extents of a two-dimensional convolution of one image; stride, padding and dilation are the same along both sides.
// Shapes: x (C, H, W), weight (K, C / groups, kernel_height, kernel_width), y (K, out_height, out_width).
struct Conv2dSizes {
  Index in_channels = 0, out_channels = 0, height = 0, width = 0, kernel_height = 1, kernel_width = 1;
  Index stride = 1, padding = 0, dilation = 1, groups = 1;

  constexpr Index out_height() const { return window_places(height, dilation * (kernel_height - 1) + 1, stride, padding); }
  constexpr Index out_width() const { return window_places(width, dilation * (kernel_width - 1) + 1, stride, padding); }
  constexpr Index in_plane() const { return height * width; }
  constexpr Index out_plane() const { return out_height() * out_width(); }
  constexpr Index group_in_channels() const { return in_channels / groups; }
  constexpr Index group_out_channels() const { return out_channels / groups; }
  // Products summed up for one element of y: the columns of the weight as a matrix.
  constexpr Index patch() const { return group_in_channels() * kernel_height * kernel_width; }
  bool operator==(const Conv2dSizes&) const = default;
};

}  // namespace weft
