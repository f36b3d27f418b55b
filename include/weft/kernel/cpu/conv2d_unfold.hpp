// SPDX-License-Identifier: Apache-2.0
// Images unfolded into matrices, so that a convolution becomes a matrix product: row r = (c, i, j) of the unfolded matrix holds, for every
// output pixel, the element of x that meets weight[·, c, i, j]; y = weight · unfolded, a (K, C·kh·kw) by (C·kh·kw, pixels) product.
#pragma once

#include "weft/kernel/cpu/conv2d_runs.hpp"

namespace weft::kernel::cpu {

// How the unfolded matrix of one image and group is cut into tiles that stay in the second-level cache.
struct UnfoldBlocks {
  Index tile_rows, tile_columns;  // output rows and columns of a tile; all columns if more than one row
  Index depth;                    // rows of the unfolded matrix at a time
  Index stride;                   // from one row of it to the next, in elements
};

// What one tile of the unfolded matrix takes at most.
inline constexpr Index unfolded_bytes = 1 * MiB;

// Depends on the layer alone: where a sum is cut decides its bits.
template <class Real>
inline UnfoldBlocks unfold_blocks(const Conv2dSizes& s) {
  constexpr Index line = alignment_bytes / Index(sizeof(Real)), most_pixels = 512, cached_elems = 256 * KiB / Index(sizeof(Real));
  const Index pixels = std::clamp<Index>(cached_elems / s.patch(), 128, most_pixels), width = s.out_width();
  UnfoldBlocks blocks{};
  blocks.tile_columns = std::min(width, most_pixels);
  const Index fitting_rows = std::clamp<Index>(pixels / width, 1, s.out_height());
  blocks.tile_rows = divide_up(s.out_height(), divide_up(s.out_height(), fitting_rows));  // tiles of about the same height
  blocks.stride = round_up(blocks.tile_rows * blocks.tile_columns, line);
  const Index fitting_depth = unfolded_bytes / Index(sizeof(Real)) / blocks.stride / 256 * 256;  // whole blocks of a product
  blocks.depth = std::min(s.patch(), fitting_depth);
  return blocks;
}

// visit(tile) for all tiles of an output plane, in reading order.
template <class Visit>
inline void for_each_tile(const Conv2dSizes& s, Index tile_rows, Index tile_columns, Visit&& visit) {
  for (Index top = 0; top < s.out_height(); top += tile_rows) {
    for (Index left = 0; left < s.out_width(); left += tile_columns) {
      visit(OutputTile{top, std::min(top + tile_rows, s.out_height()), left, std::min(left + tile_columns, s.out_width())});
    }
  }
}

// What one row of the unfolded matrix, within a tile, reads of x's plane.
struct UnfoldedRow {
  Index plane;                // c
  Index down, right;          // element (oy · stride + down, ox · stride + right) belongs to pixel (oy, ox)
  InsideRange rows, columns;  // the pixels for which it is inside the image
  bool shifted;               // the pixels' elements lie one after the other, also from row to row: x is as wide as y
};
inline UnfoldedRow unfolded_row(const Conv2dSizes& s, Index row, const OutputTile& tile) {
  const Index taps = s.kernel_height * s.kernel_width, tap = row % taps;
  const Index down = tap / s.kernel_width * s.dilation - s.padding, right = tap % s.kernel_width * s.dilation - s.padding;
  return {row / taps,
          down,
          right,
          inside_range(tile.top, tile.bottom, s.stride, down, s.height),
          inside_range(tile.left, tile.right, s.stride, right, s.width),
          s.stride == 1 && tile.right - tile.left == s.width};
}

// The part of a shifted row that is one run: pixels [begin, end) counted over the plane, without those that would read beside it.
inline InsideRange shifted_run(const Conv2dSizes& s, const UnfoldedRow& r) {
  const Index offset = r.down * s.width + r.right;
  const Index begin = std::max(r.rows.begin * s.width, -offset);
  return {begin, std::max(begin, std::min(r.rows.end * s.width, s.in_plane() - offset))};
}

// Zeros where the row reads padding, beside the rows that meet the image.
template <class Real>
inline void clear_padding(const OutputTile& tile, const UnfoldedRow& r, Real* row) {
  const Index width = tile.right - tile.left;
  const auto clear_column = [&](Index ox) {  // columns outside: there is one, or two, of many rows
    Real* const column = row + ox - tile.left;
    for (Index oy = r.rows.begin - tile.top; oy < r.rows.end - tile.top; ++oy) column[oy * width] = 0;
  };
  for (Index ox = tile.left; ox < r.columns.begin; ++ox) clear_column(ox);
  for (Index ox = r.columns.end; ox < tile.right; ++ox) clear_column(ox);
}

// unfolded[r - first] = row r of the unfolded matrix, for rows [first, last) and the pixels of one tile.
// Shapes: x (C / groups, H, W), unfolded (last - first, stride >= pixels).
template <class Isa, class Real>
inline void unfold(const Conv2dSizes& s, const Real* x, Index first, Index last, const OutputTile& tile, Real* unfolded, Index stride) {
  const Index width = tile.right - tile.left;
  for (Index row = first; row < last; ++row, unfolded += stride) {
    const UnfoldedRow r = unfolded_row(s, row, tile);
    const Real* const plane = x + r.plane * s.in_plane();
    std::fill(unfolded, unfolded + (r.rows.begin - tile.top) * width, Real(0));
    std::fill(unfolded + (r.rows.end - tile.top) * width, unfolded + tile.pixels(), Real(0));
    if (r.shifted) {
      const InsideRange run = shifted_run(s, r);
      copy_run<Isa>(run.end - run.begin, plane + run.begin + r.down * s.width + r.right, unfolded + run.begin - tile.top * width);
    } else {
      for (Index oy = r.rows.begin; oy < r.rows.end; ++oy) {
        Real* const to = unfolded + (oy - tile.top) * width + r.columns.begin - tile.left;
        const Real* const from = plane + (oy * s.stride + r.down) * s.width + r.columns.begin * s.stride + r.right;
        const Index count = r.columns.end - r.columns.begin;
        if (s.stride == 1) {
          copy_run<Isa>(count, from, to);
        } else {
          for (Index i = 0; i < count; ++i) to[i] = from[i * s.stride];
        }
      }
    }
    clear_padding(tile, r, unfolded);
  }
}

// The transpose of unfold: dx += what rows [first, last) of the gradient of the unfolded matrix say; padding's share is dropped.
// Shapes: as unfold. The contents of `unfolded` are lost.
template <class Isa, class Real>
inline void fold(const Conv2dSizes& s, Real* unfolded, Index stride, Index first, Index last, const OutputTile& tile, Real* dx) {
  const Index width = tile.right - tile.left;
  for (Index row = first; row < last; ++row, unfolded += stride) {
    const UnfoldedRow r = unfolded_row(s, row, tile);
    Real* const plane = dx + r.plane * s.in_plane();
    if (r.shifted) {
      clear_padding(tile, r, unfolded);
      const InsideRange run = shifted_run(s, r);
      add_run<Isa>(run.end - run.begin, unfolded + run.begin - tile.top * width, plane + run.begin + r.down * s.width + r.right);
    } else {
      for (Index oy = r.rows.begin; oy < r.rows.end; ++oy) {
        const Real* const from = unfolded + (oy - tile.top) * width + r.columns.begin - tile.left;
        Real* const to = plane + (oy * s.stride + r.down) * s.width + r.columns.begin * s.stride + r.right;
        const Index count = r.columns.end - r.columns.begin;
        if (s.stride == 1) {
          add_run<Isa>(count, from, to);
        } else {
          for (Index i = 0; i < count; ++i) to[i * s.stride] += from[i];
        }
      }
    }
  }
}

}  // namespace weft::kernel::cpu
