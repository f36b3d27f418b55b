// SPDX-License-Identifier: Apache-2.0
// Convolutions whose groups have one input channel: depthwise ones, and the first layer of a network on grey images. As a product they are
// only kernel_height · kernel_width deep, so unfolding would cost more than multiplying.
#pragma once

#include <type_traits>

#include "weft/kernel/cpu/conv2d_runs.hpp"
#include "weft/kernel/cpu/gemm_micro.hpp"
#include "weft/kernel/scratch.hpp"
#include "weft/simd/fitting.hpp"

namespace weft::kernel::cpu {

// The part of one plane of x that a tile of outputs reads, with its padding. Columns are sorted by their remainder modulo the stride, so
// that what neighbouring outputs read lies side by side for any stride: element (r, q · stride + phase) is at (r · stride + phase) · pitch + q.
class PaddedStrip {
 public:
  template <class Isa, class Real>
  static PaddedStrip of(const Conv2dSizes& s, Index tile_rows, Index tile_columns) {
    PaddedStrip strip{s};
    strip.rows_ = (tile_rows - 1) * s.stride + (s.kernel_height - 1) * s.dilation + 1;
    strip.pitch_ = round_up(round_up(tile_columns, simd::lanes<Isa, Real>) + (s.kernel_width - 1) * s.dilation / s.stride, simd::lanes<Isa, Real>);
    return strip;
  }

  Index elems() const { return rows_ * sizes_.stride * pitch_; }
  Index output_pitch() const { return sizes_.stride * sizes_.stride * pitch_; }  // from one output row's elements to the next one's

  // Where tap (i, j) of output (0, 0) reads.
  Index tap(Index i, Index j) const {
    const Index column = j * sizes_.dilation;
    return (i * sizes_.dilation * sizes_.stride + column % sizes_.stride) * pitch_ + column / sizes_.stride;
  }

  template <class Isa, class Real>
  void fill(const Real* plane, const OutputTile& tile, Real* strip) const {
    visit(tile, [&](Index at, Index end, Index from, Index inside_begin, Index inside_end) {
      std::fill(strip + at, strip + inside_begin, Real(0));
      if (sizes_.stride == 1) {
        copy_run<Isa>(inside_end - inside_begin, plane + from, strip + inside_begin);
      } else {
        for (Index i = inside_begin; i < inside_end; ++i) strip[i] = plane[from + (i - inside_begin) * sizes_.stride];
      }
      std::fill(strip + inside_end, strip + end, Real(0));
    });
  }

  // plane += strip, without the padding.
  template <class Isa, class Real>
  void add_to(const Real* strip, const OutputTile& tile, Real* plane) const {
    visit(tile, [&](Index, Index, Index to, Index inside_begin, Index inside_end) {
      for (Index i = inside_begin; i < inside_end; ++i) plane[to + (i - inside_begin) * sizes_.stride] += strip[i];
    });
  }

 private:
  explicit PaddedStrip(const Conv2dSizes& s) : sizes_(s) {}

  // visit(begin, end of a line in the strip, place in the plane of its first element inside, begin and end of those inside).
  template <class Visit>
  void visit(const OutputTile& tile, Visit&& visit_line) const {
    for (Index r = 0; r < rows_; ++r) {
      const Index iy = tile.top * sizes_.stride - sizes_.padding + r;
      for (Index phase = 0; phase < sizes_.stride; ++phase) {
        const Index at = (r * sizes_.stride + phase) * pitch_, offset = tile.left * sizes_.stride - sizes_.padding + phase;
        const bool inside = iy >= 0 && iy < sizes_.height;
        const InsideRange columns = inside_range(0, pitch_, sizes_.stride, offset, inside ? sizes_.width : 0);
        visit_line(at, at + pitch_, iy * sizes_.width + columns.begin * sizes_.stride + offset, at + columns.begin, at + columns.end);
      }
    }
  }

  Conv2dSizes sizes_;
  Index rows_ = 0, pitch_ = 0;
};

// How a direct convolution divides its work and its scratch: where the taps read | a strip of x | a strip of dy.
template <class Isa, class Real>
struct DirectBlocks {
  PaddedStrip strip;
  Index tile_rows, tile_columns, gradient_pitch, num_taps;

  explicit DirectBlocks(const Conv2dSizes& s)
      : strip(PaddedStrip::of<Isa, Real>(s, 1, std::min<Index>(s.out_width(), 512))), tile_rows(1),
        tile_columns(std::min<Index>(s.out_width(), 512)), gradient_pitch(round_up(tile_columns, simd::lanes<Isa, Real>)),
        num_taps(s.kernel_height * s.kernel_width) {
    if (tile_columns < s.out_width()) return;
    const Index cached_elems = 32 * KiB / Index(sizeof(Real)), row_elems = std::max<Index>(strip.output_pitch() + gradient_pitch, 1);
    tile_rows = std::clamp<Index>(cached_elems / row_elems, 1, s.out_height());
    strip = PaddedStrip::of<Isa, Real>(s, tile_rows, tile_columns);
  }

  Index taps_bytes() const { return round_up(num_taps * Index(sizeof(Index)), alignment_bytes); }
  Index bytes() const { return taps_bytes() + (strip.elems() + tile_rows * gradient_pitch) * Index(sizeof(Real)); }

  Index* taps(Scratch scratch) const { return reinterpret_cast<Index*>(scratch.data); }
  Real* x_strip(Scratch scratch) const { return reinterpret_cast<Real*>(scratch.data + taps_bytes()); }
  Real* gradient_strip(Scratch scratch) const { return x_strip(scratch) + strip.elems(); }

  void place_taps(const Conv2dSizes& s, Scratch scratch) const {
    for (Index i = 0; i < s.kernel_height; ++i) {
      for (Index j = 0; j < s.kernel_width; ++j) taps(scratch)[i * s.kernel_width + j] = strip.tap(i, j);
    }
  }

  // The tile's rows of one plane of dy, each filled up with zeros to whole vectors.
  void fill_gradient(const Conv2dSizes& s, const Real* plane, const OutputTile& tile, Real* to) const {
    const Index width = tile.right - tile.left;
    for (Index oy = tile.top; oy < tile.bottom; ++oy, to += gradient_pitch) {
      copy_run<Isa>(width, plane + oy * s.out_width() + tile.left, to);
      std::fill(to + width, to + gradient_pitch, Real(0));
    }
  }
};

// Whether the direct kernels take this layer.
template <class Isa, class Real>
inline bool convolves_directly(const Conv2dSizes& s, Index scratch_bytes) {
  return s.group_in_channels() == 1 && DirectBlocks<Isa, Real>(s).bytes() <= scratch_bytes;
}

// One row of a tile for `Count` output channels of a group, in registers: y[q][ox] = bias[q] + Σ over taps of weight[q][tap] · x[tap + ox].
template <class Isa, Index Count, class Real>
inline void direct_row(Index width, const Real* x, const Index* taps, Index num_taps, const Real* weight, const Real* bias, Real* y,
                       Index y_plane) {
  constexpr Index lanes = simd::lanes<Isa, Real>;
  for (Index ox = 0; ox < width; ox += lanes) {
    const Index at = width >= lanes ? std::min(ox, width - lanes) : 0;  // the last vector overlaps the one before: the same values again
    simd::Vector<Isa, Real> sums[Count];
    unrolled<Count>([&](auto q) WEFT_ALWAYS_INLINE { sums[q] = simd::broadcast<Isa>(bias ? bias[q] : Real(0)); });
    for (Index t = 0; t < num_taps; ++t) {
      const auto value = simd::load<Isa>(x + taps[t] + at);
      unrolled<Count>([&](auto q) WEFT_ALWAYS_INLINE { sums[q] += simd::broadcast<Isa>(weight[q * num_taps + t]) * value; });
    }
    unrolled<Count>([&](auto q) WEFT_ALWAYS_INLINE {
      if (width >= lanes) {
        simd::store<Isa>(y + q * y_plane + at, sums[q]);
      } else {
        simd::store_first<Isa>(y + q * y_plane, sums[q], width);
      }
    });
  }
}

template <class Isa, class Real>
inline void direct_forward(Index batch, const Conv2dSizes& s, const Real* x, const Real* weight, const Real* bias, Real* y, Scratch scratch) {
  const DirectBlocks<Isa, Real> blocks(s);
  const Index *const taps = blocks.taps(scratch), num_taps = blocks.num_taps, out_plane = s.out_plane();
  Real* const strip = blocks.x_strip(scratch);
  blocks.place_taps(s, scratch);
  for (Index plane = 0; plane < batch * s.groups; ++plane) {
    const Index first_channel = plane % s.groups * s.group_out_channels();
    for_each_tile(s, blocks.tile_rows, blocks.tile_columns, [&](const OutputTile& tile) {
      blocks.strip.template fill<Isa>(x + plane * s.in_plane(), tile, strip);
      const auto channels = [&](auto count, Index k) {
        for (Index oy = tile.top; oy < tile.bottom; ++oy) {
          const Real* const from = strip + (oy - tile.top) * blocks.strip.output_pitch();
          Real* const to = y + (plane * s.group_out_channels() + k) * out_plane + oy * s.out_width() + tile.left;
          simd::with_fitting_registers<Isa, Real>(tile.right - tile.left, [&]<class Fitting>(Fitting) {
            direct_row<Fitting, count>(tile.right - tile.left, from, taps, num_taps, weight + (first_channel + k) * num_taps,
                                       bias ? bias + first_channel + k : nullptr, to, out_plane);
          });
        }
      };
      Index k = 0;
      for (; k + 8 <= s.group_out_channels(); k += 8) channels(std::integral_constant<Index, 8>{}, k);
      for (; k < s.group_out_channels(); ++k) channels(std::integral_constant<Index, 1>{}, k);
    });
  }
}

template <class Isa, class Real>
inline void direct_backward_input(Index batch, const Conv2dSizes& s, const Real* dy, const Real* weight, Real* dx, Scratch scratch) {
  constexpr Index lanes = simd::lanes<Isa, Real>;
  const DirectBlocks<Isa, Real> blocks(s);
  Real *const strip = blocks.x_strip(scratch), *const gradient = blocks.gradient_strip(scratch);
  blocks.place_taps(s, scratch);
  std::fill_n(dx, batch * s.in_channels * s.in_plane(), Real(0));
  for (Index plane = 0; plane < batch * s.groups; ++plane) {
    for_each_tile(s, blocks.tile_rows, blocks.tile_columns, [&](const OutputTile& tile) {
      std::fill_n(strip, blocks.strip.elems(), Real(0));
      for (Index k = 0; k < s.group_out_channels(); ++k) {
        blocks.fill_gradient(s, dy + (plane * s.group_out_channels() + k) * s.out_plane(), tile, gradient);
        const Real* const taps = weight + (plane % s.groups * s.group_out_channels() + k) * blocks.num_taps;
        // Tap after tap over the whole tile: two taps of one row would store and load overlapping vectors at once, which stalls.
        for (Index t = 0; t < blocks.num_taps; ++t) {
          const auto factor = simd::broadcast<Isa>(taps[t]);
          for (Index row = 0; row < tile.bottom - tile.top; ++row) {
            Real* const to = strip + row * blocks.strip.output_pitch() + blocks.taps(scratch)[t];
            for (Index ox = 0; ox < tile.right - tile.left; ox += lanes) {
              const auto value = simd::load<Isa>(static_cast<const Real*>(gradient + row * blocks.gradient_pitch + ox));
              simd::store<Isa>(to + ox, simd::load<Isa>(static_cast<const Real*>(to + ox)) + factor * value);
            }
          }
        }
      }
      blocks.strip.template add_to<Isa>(strip, tile, dx + plane * s.in_plane());
    });
  }
}

// Σ over a tile of dy · x[tap] for `Count` taps at once.
template <class Isa, Index Count, class Real>
inline void direct_tap_sums(Index rows, Index width, const Real* gradient, Index gradient_pitch, const Real* x, Index x_pitch,
                            const Index* taps, Real* sums) {
  constexpr Index lanes = simd::lanes<Isa, Real>;
  const Index whole = width / lanes * lanes;
  // Beyond the end of a row dy is zero, but x may be anything: 0 · ∞ must not come in.
  alignas(alignment_bytes) Real lane[lanes];
  for (Index i = 0; i < lanes; ++i) lane[i] = Real(whole + i);
  const simd::Mask<Isa, Real> inside = simd::load<Isa>(static_cast<const Real*>(lane)) < simd::broadcast<Isa>(Real(width));
  simd::Vector<Isa, Real> parts[Count] = {};
  for (Index row = 0; row < rows; ++row, gradient += gradient_pitch, x += x_pitch) {
    for (Index ox = 0; ox < whole; ox += lanes) {
      const auto value = simd::load<Isa>(gradient + ox);
      unrolled<Count>([&](auto q) WEFT_ALWAYS_INLINE { parts[q] += value * simd::load<Isa>(x + taps[q] + ox); });
    }
    if (whole < width) {
      const auto value = simd::load<Isa>(gradient + whole);
      unrolled<Count>([&](auto q) WEFT_ALWAYS_INLINE {
        parts[q] += value * simd::select(inside, simd::load<Isa>(x + taps[q] + whole), simd::Vector<Isa, Real>{});
      });
    }
  }
  unrolled<Count>([&](auto q) WEFT_ALWAYS_INLINE { sums[q] += simd::sum<Isa, Real>(parts[q]); });
}

template <class Isa, class Real>
inline void direct_backward_weight(Index batch, const Conv2dSizes& s, const Real* x, const Real* dy, Real* dweight, Scratch scratch) {
  const DirectBlocks<Isa, Real> blocks(s);
  Real *const strip = blocks.x_strip(scratch), *const gradient = blocks.gradient_strip(scratch);
  const Index* const taps = blocks.taps(scratch);
  blocks.place_taps(s, scratch);
  for (Index plane = 0; plane < batch * s.groups; ++plane) {
    for_each_tile(s, blocks.tile_rows, blocks.tile_columns, [&](const OutputTile& tile) {
      blocks.strip.template fill<Isa>(x + plane * s.in_plane(), tile, strip);
      for (Index k = 0; k < s.group_out_channels(); ++k) {
        blocks.fill_gradient(s, dy + (plane * s.group_out_channels() + k) * s.out_plane(), tile, gradient);
        Real* const sums = dweight + (plane % s.groups * s.group_out_channels() + k) * blocks.num_taps;
        const auto add = [&](auto count, Index t) {
          direct_tap_sums<Isa, count>(tile.bottom - tile.top, tile.right - tile.left, gradient, blocks.gradient_pitch, strip,
                                      blocks.strip.output_pitch(), taps + t, sums + t);
        };
        Index t = 0;
        for (; t + 3 <= blocks.num_taps; t += 3) add(std::integral_constant<Index, 3>{}, t);
        for (; t < blocks.num_taps; ++t) add(std::integral_constant<Index, 1>{}, t);
      }
    });
  }
}

}  // namespace weft::kernel::cpu
