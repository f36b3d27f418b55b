// SPDX-License-Identifier: Apache-2.0
// Two-dimensional convolution; contracts in weft/kernel/conv2d.hpp.
//
// Three ways: groups of one input channel directly; 1×1 kernels without stride and padding as products of x as it lies; all others by
// unfolding a tile of an image at a time into scratch and multiplying. Images never meet in one product, so the bits of y, dx and dweight
// do not depend on how many images a call has.
#pragma once

#include <string>

#include "weft/base/error.hpp"
#include "weft/kernel/cpu/conv2d_direct.hpp"
#include "weft/kernel/cpu/conv2d_unfold.hpp"
#include "weft/kernel/cpu/products.hpp"

namespace weft::kernel::cpu {

// Scratch of the unfolding kernels: the unfolded tile | in backward_weight a block of the weight's gradient | the rest for products.
inline constexpr Index weight_block_bytes = 1 * MiB;
inline constexpr Index minimum_conv2d_scratch_bytes = unfolded_bytes + weight_block_bytes + 1 * MiB;

inline Scratch scratch_after(Scratch scratch, Index bytes) { return {scratch.data + bytes, scratch.bytes - bytes}; }

inline void require_conv2d_scratch(Scratch scratch) {
  if (scratch.bytes >= minimum_conv2d_scratch_bytes) return;
  throw Error("conv2d.scratch", "a convolution needs " + std::to_string(minimum_conv2d_scratch_bytes) + " bytes of scratch; it was given " +
                                    std::to_string(scratch.bytes));
}

// Whether the unfolded matrix would be x itself.
inline bool is_pointwise(const Conv2dSizes& s) { return s.kernel_height * s.kernel_width == 1 && s.stride == 1 && s.padding == 0; }

// Cost: 2·B·K·out_plane·C/groups·kernel_height·kernel_width flops.
// Errors: conv2d.scratch.
template <class Products, class Isa, class Real>
inline void conv2d_forward(Index batch, const Conv2dSizes& s, const Real* x, const Real* weight, const Real* bias, Real* y,
                           Scratch scratch) {
  if (batch * s.out_channels * s.out_plane() == 0) return;
  require_conv2d_scratch(scratch);
  if (convolves_directly<Isa, Real>(s, scratch.bytes)) return direct_forward<Isa>(batch, s, x, weight, bias, y, scratch);

  const Index channels = s.group_out_channels(), plane = s.out_plane(), patch = s.patch();
  const UnfoldBlocks blocks = is_pointwise(s) ? UnfoldBlocks{s.height, s.width, patch, plane} : unfold_blocks<Real>(s);
  Real* const unfolded = reinterpret_cast<Real*>(scratch.data);
  for (Index part = 0; part < batch * s.groups; ++part) {  // one group of one image
    const Real* const in = x + part * s.group_in_channels() * s.in_plane();
    const Real* const group_weight = weight + part % s.groups * channels * patch;
    for_each_tile(s, blocks.tile_rows, blocks.tile_columns, [&](const OutputTile& tile) {
      Real* const out = y + part * channels * plane + tile.top * s.out_width() + tile.left;
      for (Index k = 0; bias && k < channels; ++k) std::fill_n(out + k * plane, tile.pixels(), bias[part % s.groups * channels + k]);
      for (Index first = 0; first < patch; first += blocks.depth) {
        const Index last = std::min(patch, first + blocks.depth);
        if (!is_pointwise(s)) unfold<Isa>(s, in, first, last, tile, unfolded, blocks.stride);
        Products::template gemm<Isa, Real>(Transpose::no, Transpose::no, channels, tile.pixels(), last - first, group_weight + first, patch,
                                           is_pointwise(s) ? in : unfolded, blocks.stride, bias || first > 0, out, plane,
                                           scratch_after(scratch, unfolded_bytes));
      }
    });
  }
}

// Cost: as conv2d_forward. Errors: conv2d.scratch.
template <class Products, class Isa, class Real>
inline void conv2d_backward_input(Index batch, const Conv2dSizes& s, const Real* dy, const Real* weight, Real* dx, Scratch scratch) {
  if (batch * s.out_channels * s.out_plane() == 0) return static_cast<void>(std::fill_n(dx, batch * s.in_channels * s.in_plane(), Real(0)));
  require_conv2d_scratch(scratch);
  if (convolves_directly<Isa, Real>(s, scratch.bytes)) return direct_backward_input<Isa>(batch, s, dy, weight, dx, scratch);

  const Index channels = s.group_out_channels(), plane = s.out_plane(), patch = s.patch(), in_elems = s.group_in_channels() * s.in_plane();
  const UnfoldBlocks blocks = is_pointwise(s) ? UnfoldBlocks{s.height, s.width, patch, plane} : unfold_blocks<Real>(s);
  Real* const unfolded = reinterpret_cast<Real*>(scratch.data);
  for (Index part = 0; part < batch * s.groups; ++part) {
    const Real* const group_weight = weight + part % s.groups * channels * patch;
    if (!is_pointwise(s)) std::fill_n(dx + part * in_elems, in_elems, Real(0));
    for_each_tile(s, blocks.tile_rows, blocks.tile_columns, [&](const OutputTile& tile) {
      const Real* const gradient = dy + part * channels * plane + tile.top * s.out_width() + tile.left;
      for (Index first = 0; first < patch; first += blocks.depth) {
        const Index last = std::min(patch, first + blocks.depth);
        Products::template gemm<Isa, Real>(Transpose::yes, Transpose::no, last - first, tile.pixels(), channels, group_weight + first,
                                           patch, gradient, plane, false, is_pointwise(s) ? dx + part * in_elems : unfolded, blocks.stride,
                                           scratch_after(scratch, unfolded_bytes));
        if (!is_pointwise(s)) fold<Isa>(s, unfolded, blocks.stride, first, last, tile, dx + part * in_elems);
      }
    });
  }
}

// Cost: as conv2d_forward. Errors: conv2d.scratch.
template <class Products, class Isa, class Real>
inline void conv2d_backward_weight(Index batch, const Conv2dSizes& s, const Real* x, const Real* dy, Real* dweight, Real* dbias,
                                   Scratch scratch) {
  if (batch * s.out_channels * s.out_plane() == 0) return;
  require_conv2d_scratch(scratch);
  if (dbias) conv2d_backward_bias<Isa>(batch, s, dy, dbias);
  if (convolves_directly<Isa, Real>(s, scratch.bytes)) return direct_backward_weight<Isa>(batch, s, x, dy, dweight, scratch);

  // A block of dweight is kept transposed, (patch rows, out channels): then the operand whose rows have to be exchanged for the product is
  // dy, the smaller one. It starts from what dweight holds, so that images are added one after the other.
  const Index channels = s.group_out_channels(), plane = s.out_plane(), patch = s.patch();
  const UnfoldBlocks blocks = is_pointwise(s) ? UnfoldBlocks{s.height, s.width, patch, plane} : unfold_blocks<Real>(s);
  const Index block_channels = std::min<Index>(channels, 512), block_elems = weight_block_bytes / Index(sizeof(Real));
  const Index block_rows = std::min(blocks.depth, block_elems / block_channels);
  Real* const unfolded = reinterpret_cast<Real*>(scratch.data);
  Real* const sums = reinterpret_cast<Real*>(scratch.data + unfolded_bytes);
  for (Index group = 0; group < s.groups; ++group) {
    for (Index k = 0; k < channels; k += block_channels) {
      const Index num_channels = std::min(block_channels, channels - k);
      for (Index first = 0; first < patch; first += block_rows) {
        const Index rows = std::min(block_rows, patch - first);
        Real* const block = dweight + (group * channels + k) * patch + first;
        for (Index r = 0; r < rows; ++r) {
          for (Index q = 0; q < num_channels; ++q) sums[r * num_channels + q] = block[q * patch + r];
        }
        for (Index b = 0; b < batch; ++b) {
          const Real* const in = x + (b * s.groups + group) * s.group_in_channels() * s.in_plane();
          for_each_tile(s, blocks.tile_rows, blocks.tile_columns, [&](const OutputTile& tile) {
            const Real* const gradient = dy + ((b * s.groups + group) * channels + k) * plane + tile.top * s.out_width() + tile.left;
            if (!is_pointwise(s)) unfold<Isa>(s, in, first, first + rows, tile, unfolded, blocks.stride);
            Products::template gemm<Isa, Real>(Transpose::no, Transpose::yes, rows, num_channels, tile.pixels(),
                                               is_pointwise(s) ? in + first * plane : unfolded, blocks.stride, gradient, plane, true, sums,
                                               num_channels, scratch_after(scratch, unfolded_bytes + weight_block_bytes));
          });
        }
        for (Index q = 0; q < num_channels; ++q) {
          for (Index r = 0; r < rows; ++r) block[q * patch + r] = sums[r * num_channels + q];
        }
      }
    }
  }
}

}  // namespace weft::kernel::cpu
