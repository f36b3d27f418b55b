// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/cpu/conv2d.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <memory>
#include <string>

#include <weft/kernel/conv2d.hpp>
#include <weft/kernel/cpu/gemm.hpp>

#include "kernel/guarded.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using kernel::Scratch, kernel::cpu_scratch_bytes;
using kernel::cpu::Builtin;

struct Line {
  alignas(alignment_bytes) std::byte bytes[alignment_bytes];
};
const std::unique_ptr<Line[]> arena(new Line[cpu_scratch_bytes / alignment_bytes]);
const Scratch scratch{arena[0].bytes, cpu_scratch_bytes};

// Every kernel of a layer against the reference, from poisoned scratch, between guards.
template <class Isa, class Real>
double largest_error(const Conv2dSizes& s, Index batch, bool with_bias, std::uint64_t seed) {
  Noise noise(seed);
  const auto x = noise.values<Real>(batch * s.in_channels * s.in_plane()), weight = noise.values<Real>(s.out_channels * s.patch());
  const auto bias = noise.values<Real>(s.out_channels), dy = noise.values<Real>(batch * s.out_channels * s.out_plane());
  const auto dweight_start = noise.values<Real>(s.out_channels * s.patch()), dbias_start = noise.values<Real>(s.out_channels);
  Guarded<Real> y(Index(dy.size())), dx(Index(x.size())), dweight(dweight_start), dbias(dbias_start);
  Guarded<double> y_expected(Index(dy.size())), dx_expected(Index(x.size()));
  const auto wide = [](const std::vector<Real>& v) { return std::vector<double>(v.begin(), v.end()); };
  const auto x_wide = wide(x), weight_wide = wide(weight), bias_wide = wide(bias), dy_wide = wide(dy);
  Guarded<double> dweight_expected(wide(dweight_start)), dbias_expected(wide(dbias_start));
  const auto poison = [] {
    std::fill_n(reinterpret_cast<Real*>(scratch.data), scratch.bytes / Index(sizeof(Real)), std::numeric_limits<Real>::quiet_NaN());
  };

  poison();
  kernel::cpu::conv2d_forward<Builtin, Isa>(batch, s, x.data(), weight.data(), with_bias ? bias.data() : nullptr, y.data(), scratch);
  poison();
  kernel::cpu::conv2d_backward_input<Builtin, Isa>(batch, s, dy.data(), weight.data(), dx.data(), scratch);
  poison();
  kernel::cpu::conv2d_backward_weight<Builtin, Isa>(batch, s, x.data(), dy.data(), dweight.data(), with_bias ? dbias.data() : nullptr,
                                                    scratch);
  kernel::conv2d_forward(batch, s, x_wide.data(), weight_wide.data(), with_bias ? bias_wide.data() : nullptr, y_expected.data());
  kernel::conv2d_backward_input(batch, s, dy_wide.data(), weight_wide.data(), dx_expected.data());
  kernel::conv2d_backward_weight(batch, s, x_wide.data(), dy_wide.data(), dweight_expected.data(),
                                 with_bias ? dbias_expected.data() : nullptr);

  CHECK((y.guards_hold() && dx.guards_hold() && dweight.guards_hold() && dbias.guards_hold()));
  return std::max(std::max(largest_difference(y.values(), y_expected.values()), largest_difference(dx.values(), dx_expected.values())),
                  std::max(largest_difference(dweight.values(), dweight_expected.values()),
                           largest_difference(dbias.values(), dbias_expected.values())));
}

std::string text_of_sizes(const Conv2dSizes& s) {
  std::string text;
  for (Index n :
       {s.in_channels, s.out_channels, s.height, s.width, s.kernel_height, s.kernel_width, s.stride, s.padding, s.dilation, s.groups})
    text += std::to_string(n) + " ";
  return text;
}

Conv2dSizes random_sizes(Noise& noise) {
  Conv2dSizes s;
  s.groups = noise.between(0, 2) ? 1 : noise.between(1, 4);
  s.in_channels = s.groups * noise.between(1, 4), s.out_channels = s.groups * noise.between(1, 11);
  s.kernel_height = noise.between(1, 4), s.kernel_width = noise.between(0, 2) ? s.kernel_height : noise.between(1, 5);
  s.stride = noise.between(1, 3), s.padding = noise.between(0, 3), s.dilation = noise.between(1, 3);
  s.height = noise.between(1, 19), s.width = noise.between(1, 37);
  return s;
}

}  // namespace

TEST_CASE_TEMPLATE("cpu_conv2d_random_sizes_equal_the_reference", Real, float, double) {
  Noise noise(11);
  int done = 0;
  while (done < 120) {
    const Conv2dSizes s = random_sizes(noise);
    if (s.out_plane() == 0) continue;
    const double error = largest_error<simd::Native, Real>(s, noise.between(1, 3), done % 3 != 0, std::uint64_t(done));
    CHECK_MESSAGE(error < rounding<Real>(120), text_of_sizes(s));
    ++done;
  }
}

TEST_CASE_TEMPLATE("cpu_conv2d_padding_and_stride_one_over_all_widths_equal_the_reference", Real, float, double) {
  for (Index width = 1; width < 36; ++width) {
    for (Index channels : {1, 2}) {
      const Conv2dSizes s{channels, 9, 3, width, 3, 3, 1, 1, 1, 1};
      CHECK_MESSAGE((largest_error<simd::Native, Real>(s, 1, true, 5) < rounding<Real>(60)), text_of_sizes(s));
    }
  }
}

TEST_CASE("cpu_conv2d_other_instruction_sets_equal_the_reference") {
  for (const Conv2dSizes& s : {Conv2dSizes{3, 5, 9, 11, 3, 3, 1, 1, 1, 1}, Conv2dSizes{4, 12, 9, 13, 3, 3, 2, 1, 1, 4}}) {
    CHECK(largest_error<simd::Generic, float>(s, 2, true, 6) < rounding<float>(60));
  }
}

TEST_CASE("cpu_conv2d_layers_larger_than_a_tile_equal_the_reference") {
  //                            C    K   H   W  kh kw s  p  d  g
  for (const Conv2dSizes& s : {Conv2dSizes{240, 3, 12, 12, 3, 3, 1, 1, 1, 1},        // more rows than one unfolded tile
                               Conv2dSizes{67, 520, 3, 3, 3, 3, 1, 0, 1, 1},         // more output channels than one block of the gradient
                               Conv2dSizes{600, 2, 3, 3, 1, 1, 1, 0, 1, 1},          // pointwise and deep
                               Conv2dSizes{2, 3, 3, 1100, 3, 3, 1, 1, 1, 1},         // rows longer than a tile
                               Conv2dSizes{2, 4, 4, 1100, 3, 3, 2, 1, 1, 2},         // directly
                               Conv2dSizes{1, 9, 200, 70, 5, 5, 1, 2, 1, 1},         // directly, several tiles
                               Conv2dSizes{1, 2, 710, 1800, 2, 2, 2, 0, 700, 1}}) {  // one channel a group, but a strip does not fit
    CHECK_MESSAGE((largest_error<simd::Native, float>(s, 1, true, 7) < rounding<float>(300)), text_of_sizes(s));
  }
}

TEST_CASE_TEMPLATE("cpu_conv2d_a_batch_in_parts_gives_the_bits_of_the_whole", Real, float, double) {
  for (const Conv2dSizes& s :
       {Conv2dSizes{3, 5, 9, 7, 3, 3, 1, 1, 1, 1}, Conv2dSizes{4, 8, 9, 7, 3, 3, 2, 1, 1, 4}, Conv2dSizes{5, 6, 4, 7, 1, 1}}) {
    const Index images = 5, in = s.in_channels * s.in_plane(), out = s.out_channels * s.out_plane();
    Noise noise(8);
    const auto x = noise.values<Real>(images * in), dy = noise.values<Real>(images * out),
               weight = noise.values<Real>(s.out_channels * s.patch());
    const auto run = [&](std::initializer_list<Index> parts) {
      Guarded<Real> y(images * out), dx(images * in), dweight(Index(weight.size()), Real(0.5)), dbias(s.out_channels, Real(0.25));
      Index b = 0;
      for (Index n : parts) {
        kernel::cpu::conv2d_forward<Builtin, simd::Native>(n, s, x.data() + b * in, weight.data(), static_cast<const Real*>(nullptr),
                                                           y.data() + b * out, scratch);
        kernel::cpu::conv2d_backward_input<Builtin, simd::Native>(n, s, dy.data() + b * out, weight.data(), dx.data() + b * in, scratch);
        kernel::cpu::conv2d_backward_weight<Builtin, simd::Native>(n, s, x.data() + b * in, dy.data() + b * out, dweight.data(),
                                                                   dbias.data(), scratch);
        b += n;
      }
      auto all = y.values();
      for (const auto& part : {dx.values(), dweight.values(), dbias.values()}) all.insert(all.end(), part.begin(), part.end());
      return all;
    };
    CHECK(run({5}) == run({2, 0, 1, 2}));
  }
}

TEST_CASE("cpu_conv2d_no_images_write_nothing") {
  const Conv2dSizes s{3, 5, 9, 7, 3, 3};
  const std::vector<float> weight(std::size_t(s.out_channels * s.patch()), 1.0f);
  Guarded<float> dweight(Index(weight.size()), 3.0f), dbias(s.out_channels, 4.0f), y(0), dx(0);
  kernel::cpu::conv2d_forward<Builtin, simd::Native>(0, s, weight.data(), weight.data(), static_cast<const float*>(nullptr), y.data(),
                                                     scratch);
  kernel::cpu::conv2d_backward_input<Builtin, simd::Native>(0, s, weight.data(), weight.data(), dx.data(), scratch);
  kernel::cpu::conv2d_backward_weight<Builtin, simd::Native>(0, s, weight.data(), weight.data(), dweight.data(), dbias.data(), scratch);
  CHECK(dweight.values() == std::vector<float>(weight.size(), 3.0f));
  CHECK(dbias.values() == std::vector<float>(5, 4.0f));
  CHECK((y.guards_hold() && dx.guards_hold() && dweight.guards_hold() && dbias.guards_hold()));
}

TEST_CASE("cpu_conv2d_an_infinity_in_x_reaches_only_its_windows") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (Index channels : {1, 2}) {
    const Conv2dSizes s{channels, 2, 5, 21, 3, 3, 1, 0, 1, 1};
    Noise noise(9);
    auto x = noise.values<float>(channels * s.in_plane());
    const auto weight = noise.values<float>(2 * s.patch()), dy = noise.values<float>(2 * s.out_plane());
    x[20] = infinity;  // the last column: only the last tap of the last window of the first row
    Guarded<float> y(2 * s.out_plane()), y_expected(2 * s.out_plane()), dweight(2 * s.patch(), 0.0f), expected(2 * s.patch(), 0.0f);
    kernel::cpu::conv2d_forward<Builtin, simd::Native>(1, s, x.data(), weight.data(), static_cast<const float*>(nullptr), y.data(),
                                                       scratch);
    kernel::conv2d_forward(1, s, x.data(), weight.data(), static_cast<const float*>(nullptr), y_expected.data());
    kernel::cpu::conv2d_backward_weight<Builtin, simd::Native>(1, s, x.data(), dy.data(), dweight.data(), static_cast<float*>(nullptr),
                                                               scratch);
    kernel::conv2d_backward_weight(1, s, x.data(), dy.data(), expected.data(), static_cast<float*>(nullptr));
    for (Index i = 0; i < y.size(); ++i) CHECK(std::isfinite(y[i]) == std::isfinite(y_expected[i]));
    for (Index i = 0; i < dweight.size(); ++i) CHECK(std::isfinite(dweight[i]) == std::isfinite(expected[i]));
  }
}

TEST_CASE("cpu_conv2d_too_little_scratch_is_refused") {
  const Conv2dSizes s{3, 5, 9, 7, 3, 3};
  const std::vector<float> x(std::size_t(s.in_channels * s.in_plane())), weight(std::size_t(s.out_channels * s.patch()));
  Guarded<float> y(s.out_channels * s.out_plane());
  try {
    kernel::cpu::conv2d_forward<Builtin, simd::Native>(1, s, x.data(), weight.data(), static_cast<const float*>(nullptr), y.data(),
                                                       {scratch.data, 1 * MiB});
    FAIL("not refused");
  } catch (const Error& error) { CHECK(error.id() == "conv2d.scratch"); }
}
