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
// that what neighbouring outputs read lies side by side for any stride: element (r, q · stride + phase) is at
// (r · stride + phase) · pitch + q.
class PaddedStrip {
 public:
  template <class Isa, class Real>
  static PaddedStrip of(const Conv2dSizes& s, Index tile_rows, Index tile_columns) {
    PaddedStrip strip{s};
    strip.rows_ = (tile_rows - 1) * s.stride + (s.kernel_height - 1) * s.dilation + 1;
    strip.pitch_ =
        round_up(round_up(tile_columns, simd::lanes<Isa, Real>) + (s.kernel_width - 1) * s.dilation / s.stride, simd::lanes<Isa, Real>);
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
    std::fill_n(strip, elems(), Real(0));
    visit(tile, [&](Index at, Index from, Index count) {
      if (sizes_.stride == 1) {
        copy_run<Isa>(count, plane + from, strip + at);
      } else {
        for (Index i = 0; i < count; ++i) strip[at + i] = plane[from + i * sizes_.stride];
      }
    });
  }

  // plane += strip, without the padding.
  template <class Isa, class Real>
  void add_to(const Real* strip, const OutputTile& tile, Real* plane) const {
    visit(tile, [&](Index at, Index to, Index count) {
      if (sizes_.stride == 1) {
        add_run<Isa>(count, strip + at, plane + to);
      } else {
        for (Index i = 0; i < count; ++i) plane[to + i * sizes_.stride] += strip[at + i];
      }
    });
  }

 private:
  explicit PaddedStrip(const Conv2dSizes& s) : sizes_(s) {}

  // visit_line(place in the strip, place in the plane, how many) for every line's elements that are inside the image.
  template <class Visit>
  void visit(const OutputTile& tile, Visit&& visit_line) const {
    const Index top = tile.top * sizes_.stride - sizes_.padding;
    const Index first_row = std::max<Index>(0, -top), last_row = std::min(rows_, sizes_.height - top);
    for (Index phase = 0; phase < sizes_.stride; ++phase) {
      const Index offset = tile.left * sizes_.stride - sizes_.padding + phase;
      const InsideRange columns = inside_range(0, pitch_, sizes_.stride, offset, sizes_.width);
      for (Index r = first_row; r < last_row; ++r) {
        visit_line((r * sizes_.stride + phase) * pitch_ + columns.begin, (top + r) * sizes_.width + columns.begin * sizes_.stride + offset,
                   columns.end - columns.begin);
      }
    }
  }

  Conv2dSizes sizes_;
  Index rows_ = 0, pitch_ = 0;
};

// How a direct convolution divides its work and its scratch: where the taps read | a strip of x.
template <class Isa, class Real>
struct DirectBlocks {
  PaddedStrip strip;
  Index tile_rows, tile_columns, num_taps;

  explicit DirectBlocks(const Conv2dSizes& s)
      : strip(PaddedStrip::of<Isa, Real>(s, 1, std::min<Index>(s.out_width(), 512))),
        tile_rows(1),
        tile_columns(std::min<Index>(s.out_width(), 512)),
        num_taps(s.kernel_height * s.kernel_width) {
    if (tile_columns < s.out_width()) return;
    const Index cached_elems = 32 * KiB / Index(sizeof(Real)), row_elems = std::max<Index>(strip.output_pitch(), 1);
    tile_rows = std::clamp<Index>(cached_elems / row_elems, 1, s.out_height());
    strip = PaddedStrip::of<Isa, Real>(s, tile_rows, tile_columns);
  }

  Index taps_bytes() const { return round_up(num_taps * Index(sizeof(Index)), alignment_bytes); }
  Index bytes() const { return taps_bytes() + strip.elems() * Index(sizeof(Real)); }

  Index* taps(Scratch scratch) const { return reinterpret_cast<Index*>(scratch.data); }
  Real* x_strip(Scratch scratch) const { return reinterpret_cast<Real*>(scratch.data + taps_bytes()); }

  void place_taps(const Conv2dSizes& s, Scratch scratch) const {
    for (Index i = 0; i < s.kernel_height; ++i) {
      for (Index j = 0; j < s.kernel_width; ++j) taps(scratch)[i * s.kernel_width + j] = strip.tap(i, j);
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
inline void direct_forward(Index batch, const Conv2dSizes& s, const Real* x, const Real* weight, const Real* bias, Real* y,
                           Scratch scratch) {
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

// A row of `width` elements in whole registers; the last one ends where the row ends and is zero in the lanes that it shares with the one
// before, so that nothing beside the row is read and nothing is counted twice.
template <class Isa, class Real>
struct RowRegisters {
  static constexpr Index lanes = simd::lanes<Isa, Real>;
  Index width, whole, last;  // registers at 0, lanes, … below `whole`, then one at `last` if whole < width
  simd::Mask<Isa, Real> fresh;

  explicit RowRegisters(Index row_width) : width(row_width), whole(width / lanes * lanes), last(std::max<Index>(width - lanes, 0)) {
    alignas(alignment_bytes) Real place[lanes];
    for (Index i = 0; i < lanes; ++i) place[i] = Real(i);
    fresh = simd::load<Isa>(static_cast<const Real*>(place)) >= simd::broadcast<Isa>(Real(whole - last));
  }
  simd::Vector<Isa, Real> load_last(const Real* row) const {
    if (width < lanes) return simd::load_first<Isa>(row, width);
    return simd::select(fresh, simd::load<Isa>(row + last), simd::Vector<Isa, Real>{});
  }
};

// x[tap + ox] += weight[tap] · dy[ox] over the rows of a tile. Tap after tap over all rows, and the ends of the rows after the rest of
// them: to load what overlaps a register just stored would stall.
template <class Isa, class Real>
inline void direct_scatter(Index rows, Index width, const Real* dy, Index dy_pitch, const Real* weight, const Index* taps, Index num_taps,
                           Real* x, Index x_pitch) {
  const RowRegisters<Isa, Real> row(width);
  for (Index t = 0; t < num_taps; ++t) {
    const auto factor = simd::broadcast<Isa>(weight[t]);
    const auto add = [&](Index r, Index ox, simd::Vector<Isa, Real> value) {
      Real* const to = x + r * x_pitch + taps[t] + ox;
      simd::store<Isa>(to, simd::load<Isa>(static_cast<const Real*>(to)) + factor * value);
    };
    for (Index r = 0; r < rows; ++r) {
      for (Index ox = 0; ox < row.whole; ox += row.lanes) add(r, ox, simd::load<Isa>(dy + r * dy_pitch + ox));
    }
    for (Index r = 0; row.whole < width && r < rows; ++r) add(r, row.last, row.load_last(dy + r * dy_pitch));
  }
}

template <class Isa, class Real>
inline void direct_backward_input(Index batch, const Conv2dSizes& s, const Real* dy, const Real* weight, Real* dx, Scratch scratch) {
  const DirectBlocks<Isa, Real> blocks(s);
  Real* const strip = blocks.x_strip(scratch);
  blocks.place_taps(s, scratch);
  std::fill_n(dx, batch * s.in_channels * s.in_plane(), Real(0));
  for (Index plane = 0; plane < batch * s.groups; ++plane) {
    for_each_tile(s, blocks.tile_rows, blocks.tile_columns, [&](const OutputTile& tile) {
      std::fill_n(strip, blocks.strip.elems(), Real(0));
      for (Index k = 0; k < s.group_out_channels(); ++k) {
        const Real* const gradient = dy + (plane * s.group_out_channels() + k) * s.out_plane() + tile.top * s.out_width() + tile.left;
        const Real* const kernel = weight + (plane % s.groups * s.group_out_channels() + k) * blocks.num_taps;
        simd::with_fitting_registers<Isa, Real>(tile.right - tile.left, [&]<class Fitting>(Fitting) {
          direct_scatter<Fitting>(tile.bottom - tile.top, tile.right - tile.left, gradient, s.out_width(), kernel, blocks.taps(scratch),
                                  blocks.num_taps, strip, blocks.strip.output_pitch());
        });
      }
      blocks.strip.template add_to<Isa>(strip, tile, dx + plane * s.in_plane());
    });
  }
}

// sums[q] += Σ over the rows of a tile of dy[ox] · x[taps[q] + ox], for `Count` taps at once.
template <class Isa, Index Count, class Real>
inline void direct_tap_sums(Index rows, Index width, const Real* dy, Index dy_pitch, const Real* x, Index x_pitch, const Index* taps,
                            Real* sums) {
  const RowRegisters<Isa, Real> row(width);
  simd::Vector<Isa, Real> parts[Count] = {};
  for (Index r = 0; r < rows; ++r, dy += dy_pitch, x += x_pitch) {
    for (Index ox = 0; ox < row.whole; ox += row.lanes) {
      const auto value = simd::load<Isa>(dy + ox);
      unrolled<Count>([&](auto q) WEFT_ALWAYS_INLINE { parts[q] += value * simd::load<Isa>(x + taps[q] + ox); });
    }
    if (row.whole < width) {  // x is zero in the other lanes, too: 0 · ∞ must not come in
      const auto value = row.load_last(dy);
      unrolled<Count>([&](auto q) WEFT_ALWAYS_INLINE { parts[q] += value * row.load_last(x + taps[q]); });
    }
  }
  unrolled<Count>([&](auto q) WEFT_ALWAYS_INLINE { sums[q] += simd::sum<Isa, Real>(parts[q]); });
}

template <class Isa, class Real>
inline void direct_backward_weight(Index batch, const Conv2dSizes& s, const Real* x, const Real* dy, Real* dweight, Scratch scratch) {
  const DirectBlocks<Isa, Real> blocks(s);
  Real* const strip = blocks.x_strip(scratch);
  const Index* const taps = blocks.taps(scratch);
  blocks.place_taps(s, scratch);
  for (Index plane = 0; plane < batch * s.groups; ++plane) {
    for_each_tile(s, blocks.tile_rows, blocks.tile_columns, [&](const OutputTile& tile) {
      blocks.strip.template fill<Isa>(x + plane * s.in_plane(), tile, strip);
      for (Index k = 0; k < s.group_out_channels(); ++k) {
        const Real* const gradient = dy + (plane * s.group_out_channels() + k) * s.out_plane() + tile.top * s.out_width() + tile.left;
        Real* const sums = dweight + (plane % s.groups * s.group_out_channels() + k) * blocks.num_taps;
        simd::with_fitting_registers<Isa, Real>(tile.right - tile.left, [&]<class Fitting>(Fitting) {
          const auto add = [&](auto count, Index t) {
            direct_tap_sums<Fitting, count>(tile.bottom - tile.top, tile.right - tile.left, gradient, s.out_width(), strip,
                                            blocks.strip.output_pitch(), taps + t, sums + t);
          };
          Index t = 0;
          for (; t + 9 <= blocks.num_taps; t += 9) add(std::integral_constant<Index, 9>{}, t);  // a 3×3 kernel
          for (; t < blocks.num_taps; ++t) add(std::integral_constant<Index, 1>{}, t);
        });
      }
    });
  }
}

}  // namespace weft::kernel::cpu
