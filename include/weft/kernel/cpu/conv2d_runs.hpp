// SPDX-License-Identifier: Apache-2.0
// Short runs of elements, as convolutions move them: rows of images, of a dozen elements to a few hundred.
#pragma once

#include <algorithm>

#include "weft/shape/conv2d_sizes.hpp"
#include "weft/simd/vector.hpp"

namespace weft::kernel::cpu {

// A part of an output plane: rows [top, bottom), columns [left, right); more than one row only if it has all columns.
struct OutputTile {
  Index top, bottom, left, right;
  Index pixels() const { return (bottom - top) * (right - left); }
};

// The numbers q in [begin, end) with 0 <= q · stride + offset < extent: places of a window whose element is inside the image.
struct InsideRange {
  Index begin, end;
};
inline InsideRange inside_range(Index begin, Index end, Index stride, Index offset, Index extent) {
  // A division takes as long as copying a row of a small image; most convolutions do without.
  const auto places = [stride](Index distance) { return distance <= 0 ? 0 : stride == 1 ? distance : divide_up(distance, stride); };
  const Index first = places(-offset), last = places(extent - offset);
  const Index inside_begin = std::clamp(first, begin, end);
  return {inside_begin, std::clamp(last, inside_begin, end)};
}

// to[i] = from[i] for i < count.
template <class Isa, class Real>
inline void copy_run(Index count, const Real* from, Real* to) {
  constexpr Index lanes = simd::lanes<Isa, Real>, few = simd::lanes<simd::Generic, Real>;
  if (count >= lanes) {
    for (Index i = 0; i + lanes < count; i += lanes) simd::store<Isa>(to + i, simd::load<Isa>(from + i));
    simd::store<Isa>(to + count - lanes, simd::load<Isa>(from + count - lanes));  // overlaps: quicker than a tail
  } else if (count >= few) {
    for (Index i = 0; i + few < count; i += few) simd::store<simd::Generic>(to + i, simd::load<simd::Generic>(from + i));
    simd::store<simd::Generic>(to + count - few, simd::load<simd::Generic>(from + count - few));
  } else {
    for (Index i = 0; i < count; ++i) to[i] = from[i];
  }
}

// to[i] += from[i] for i < count.
template <class Isa, class Real>
inline void add_run(Index count, const Real* from, Real* to) {
  constexpr Index lanes = simd::lanes<Isa, Real>, few = simd::lanes<simd::Generic, Real>;
  const auto add = [&]<class Width>(Width, Index i) {
    simd::store<Width>(to + i, simd::load<Width>(static_cast<const Real*>(to + i)) + simd::load<Width>(from + i));
  };
  Index i = 0;
  for (; i + lanes <= count; i += lanes) add(Isa{}, i);
  for (; i + few <= count; i += few) add(simd::Generic{}, i);
  for (; i < count; ++i) to[i] += from[i];
}

// The sum of a run: four chains a lane, then the lanes in order.
template <class Isa, class Real>
inline Real sum_run(Index count, const Real* from) {
  constexpr Index lanes = simd::lanes<Isa, Real>;
  simd::Vector<Isa, Real> part[4] = {};
  Index i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    for (Index q = 0; q < 4; ++q) part[q] += simd::load<Isa>(from + i + q * lanes);
  }
  for (; i + lanes <= count; i += lanes) part[0] += simd::load<Isa>(from + i);
  Real total = simd::sum<Isa, Real>((part[0] + part[1]) + (part[2] + part[3]));
  for (; i < count; ++i) total += from[i];
  return total;
}

// dbias[k] += the sum over images and planes, image after image.
template <class Isa, class Real>
inline void conv2d_backward_bias(Index batch, const Conv2dSizes& sizes, const Real* dy, Real* dbias) {
  const Index plane = sizes.out_plane();
  for (Index b = 0; b < batch; ++b) {
    for (Index k = 0; k < sizes.out_channels; ++k) dbias[k] += sum_run<Isa>(plane, dy + (b * sizes.out_channels + k) * plane);
  }
}

}  // namespace weft::kernel::cpu
