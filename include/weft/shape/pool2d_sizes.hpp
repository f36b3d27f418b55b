// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/base/config.hpp"

namespace weft {

// The extents of pooling one image with a square kernel. padding is at most kernel / 2, so that every window meets the image.
// Shapes: x (C, H, W), y (C, out_height, out_width).
struct Pool2dSizes {
  Index channels = 0, height = 0, width = 0, kernel = 2, stride = 2, padding = 0;

  constexpr Index out_height() const { return places(height); }
  constexpr Index out_width() const { return places(width); }
  constexpr Index in_plane() const { return height * width; }
  constexpr Index out_plane() const { return out_height() * out_width(); }
  bool operator==(const Pool2dSizes&) const = default;

 private:
  constexpr Index places(Index extent) const {  // of the window along one side; 0 if it does not fit
    const Index room = extent + 2 * padding - kernel;
    return room < 0 ? 0 : room / stride + 1;
  }
};

}  // namespace weft
