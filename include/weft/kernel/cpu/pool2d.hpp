// SPDX-License-Identifier: Apache-2.0
// Pooling; contracts in weft/kernel/pool2d.hpp. 2×2 windows side by side, what nearly all small networks pool with, go a vector at a time;
// other windows take the plain loops.
#pragma once

#include "weft/kernel/pool2d.hpp"
#include "weft/simd/fitting.hpp"
#include "weft/simd/pairs.hpp"

namespace weft::kernel::cpu {

inline bool halves(const Pool2dSizes& s) { return s.kernel == 2 && s.stride == 2 && s.padding == 0; }

// A row of maxima of 2×2 windows and where they are; `top` and `bottom` are the rows that the windows cover, `first` is top's place.
template <class Isa, class Real>
inline void max_pool_row(Index count, const Real* top, const Real* bottom, Index first, Index width, Real* y, std::int32_t* argmax) {
  using Integer = typename simd::IntegerOf<Index(sizeof(Real))>::type;
  using Place = simd::Mask<Isa, Real>;  // integers as wide as Real
  constexpr Index lanes = simd::lanes<Isa, Real>;
  if (count < lanes) {
    for (Index ox = 0; ox < count; ++ox) {
      const Index places[4] = {2 * ox, 2 * ox + 1, width + 2 * ox, width + 2 * ox + 1};
      Index best = places[0];
      for (Index place : places) best = top[place] > top[best] || top[place] != top[place] ? place : best;
      y[ox] = top[best];
      argmax[ox] = std::int32_t(first + best);
    }
    return;
  }
  Place even;
  for (Index i = 0; i < lanes; ++i) even[i] = Integer(2 * i);
  for (Index start = 0; start < count; start += lanes) {
    const Index ox = std::min(start, count - lanes);  // the last register overlaps the one before it
    auto best = simd::load_every_second<Isa, 0>(top + 2 * ox);
    Place place = even + Integer(first + 2 * ox);
    const auto challenge = [&](simd::Vector<Isa, Real> value, Index distance) {
      const Place wins = (value > best) | (value != value);
      best = simd::select(wins, value, best);
      place = simd::select(wins, even + Integer(first + 2 * ox + distance), place);
    };
    challenge(simd::load_every_second<Isa, 1>(top + 2 * ox), 1);
    challenge(simd::load_every_second<Isa, 0>(bottom + 2 * ox), width);
    challenge(simd::load_every_second<Isa, 1>(bottom + 2 * ox), width + 1);
    simd::store<Isa>(y + ox, best);
    if constexpr (sizeof(Real) == sizeof(std::int32_t)) {
      simd::store<Isa>(argmax + ox, place);
    } else {
      for (Index i = 0; i < lanes; ++i) argmax[ox + i] = std::int32_t(place[i]);
    }
  }
}

template <class Isa, class Real>
inline void max_pool2d_forward(Index batch, const Pool2dSizes& s, const Real* x, Real* y, std::int32_t* argmax) {
  if (!halves(s)) return kernel::max_pool2d_forward(batch, s, x, y, argmax);
  const Index out_height = s.out_height(), out_width = s.out_width();
  for (Index plane = 0; plane < batch * s.channels; ++plane) {
    const Real* const in = x + plane * s.in_plane();
    for (Index oy = 0; oy < out_height; ++oy, y += out_width, argmax += out_width) {
      const Index first = 2 * oy * s.width;
      simd::with_fitting_registers<Isa, Real>(out_width, [&]<class Fitting>(Fitting) {
        max_pool_row<Fitting>(out_width, in + first, in + first + s.width, first, s.width, y, argmax);
      });
    }
  }
}

template <class Isa, class Real>
inline void max_pool2d_backward(Index batch, const Pool2dSizes& s, const std::int32_t* argmax, const Real* dy, Real* dx) {
  kernel::max_pool2d_backward(batch, s, argmax, dy, dx);
}

// A row of means of 2×2 windows.
template <class Isa, class Real>
inline void average_pool_row(Index count, const Real* top, const Real* bottom, Real* y) {
  constexpr Index lanes = simd::lanes<Isa, Real>;
  if (count < lanes) {
    for (Index ox = 0; ox < count; ++ox) y[ox] = (top[2 * ox] + top[2 * ox + 1] + bottom[2 * ox] + bottom[2 * ox + 1]) * Real(0.25);
    return;
  }
  for (Index start = 0; start < count; start += lanes) {
    const Index ox = std::min(start, count - lanes);
    const auto above = simd::load_every_second<Isa, 0>(top + 2 * ox) + simd::load_every_second<Isa, 1>(top + 2 * ox);
    const auto sum = above + simd::load_every_second<Isa, 0>(bottom + 2 * ox) + simd::load_every_second<Isa, 1>(bottom + 2 * ox);
    simd::store<Isa>(y + ox, sum * simd::broadcast<Isa>(Real(0.25)));
  }
}

template <class Isa, class Real>
inline void average_pool2d_forward(Index batch, const Pool2dSizes& s, const Real* x, Real* y) {
  if (!halves(s)) return kernel::average_pool2d_forward(batch, s, x, y);
  const Index out_height = s.out_height(), out_width = s.out_width();
  for (Index plane = 0; plane < batch * s.channels; ++plane) {
    for (Index oy = 0; oy < out_height; ++oy, y += out_width) {
      const Real* const top = x + plane * s.in_plane() + 2 * oy * s.width;
      simd::with_fitting_registers<Isa, Real>(out_width,
                                              [&]<class Fitting>(Fitting) { average_pool_row<Fitting>(out_width, top, top + s.width, y); });
    }
  }
}

template <class Isa, class Real>
inline void average_pool2d_backward(Index batch, const Pool2dSizes& s, const Real* dy, Real* dx) {
  if (!halves(s)) return kernel::average_pool2d_backward(batch, s, dy, dx);
  const Index out_height = s.out_height(), out_width = s.out_width(), covered = 2 * out_width;
  for (Index plane = 0; plane < batch * s.channels; ++plane, dx += s.in_plane()) {
    for (Index iy = 0; iy < 2 * out_height; ++iy) {
      Real* const row = dx + iy * s.width;
      const Real* const from = dy + (plane * out_height + iy / 2) * out_width;
      for (Index ox = 0; ox < out_width; ++ox) row[2 * ox] = row[2 * ox + 1] = from[ox] * Real(0.25);
      std::fill(row + covered, row + s.width, Real(0));  // an odd last column, and an odd last row below, belong to no window
    }
    std::fill(dx + 2 * out_height * s.width, dx + s.in_plane(), Real(0));
  }
}

}  // namespace weft::kernel::cpu
