// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/conv2d.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"

namespace {

using namespace weft;
using namespace weft::test;

//                          C  K  H  W kh kw  s  p  d  g
constexpr Conv2dSizes cases[] = {{1, 2, 5, 4, 3, 3, 1, 0, 1, 1}, {2, 3, 6, 5, 3, 2, 1, 1, 1, 1}, {4, 6, 7, 7, 3, 3, 2, 1, 1, 2},
                                 {3, 6, 8, 7, 2, 3, 3, 2, 2, 3}, {2, 2, 9, 8, 3, 3, 1, 2, 2, 2}, {3, 4, 4, 3, 1, 1, 1, 0, 1, 1},
                                 {2, 3, 5, 5, 1, 1, 2, 1, 1, 1}, {1, 1, 3, 3, 3, 3, 1, 3, 1, 1}};

Index weight_elems(const Conv2dSizes& s) { return s.out_channels * s.patch(); }

// Out of an image with its padding around it, channel by channel, tap by tap: written down on its own.
std::vector<double> convolve_padded(const Conv2dSizes& s, const double* x, const double* weight, const double* bias) {
  const Index H = s.height + 2 * s.padding, W = s.width + 2 * s.padding;
  std::vector<double> padded(std::size_t(s.in_channels * H * W)), y;
  for (Index c = 0; c < s.in_channels; ++c)
    for (Index i = 0; i < s.height; ++i)
      for (Index j = 0; j < s.width; ++j)
        padded[std::size_t((c * H + i + s.padding) * W + j + s.padding)] = x[(c * s.height + i) * s.width + j];
  const Index per_group = s.in_channels / s.groups, outs = s.out_channels / s.groups;
  for (Index k = 0; k < s.out_channels; ++k)
    for (Index top = 0; top + s.dilation * (s.kernel_height - 1) < H; top += s.stride)
      for (Index left = 0; left + s.dilation * (s.kernel_width - 1) < W; left += s.stride) {
        double sum = bias[k];
        for (Index c = 0; c < per_group; ++c)
          for (Index i = 0; i < s.kernel_height; ++i)
            for (Index j = 0; j < s.kernel_width; ++j)
              sum += padded[std::size_t(((k / outs * per_group + c) * H + top + i * s.dilation) * W + left + j * s.dilation)] *
                     weight[((k * per_group + c) * s.kernel_height + i) * s.kernel_width + j];
        y.push_back(sum);
      }
  return y;
}

}  // namespace

TEST_CASE("conv2d_sizes_of_known_layers_are_those_of_torch") {
  constexpr Conv2dSizes first{3, 64, 224, 224, 7, 7, 2, 3};
  static_assert(first.out_height() == 112 && first.out_width() == 112, "the first layer of a ResNet halves the image");
  CHECK(Conv2dSizes{1, 1, 10, 11, 3, 3, 2, 1, 2}.out_height() == 4);
  CHECK(Conv2dSizes{1, 1, 10, 11, 3, 3, 2, 1, 2}.out_width() == 5);
  CHECK(Conv2dSizes{1, 1, 2, 9, 3, 3, 2}.out_height() == 0);  // does not fit, by one: truncating division would say 1
  CHECK(Conv2dSizes{1, 1, 2, 9, 3, 3, 2}.out_plane() == 0);
}

TEST_CASE("conv2d_any_sizes_equal_the_formula_on_a_padded_image") {
  Noise noise;
  for (const Conv2dSizes& s : cases) {
    const auto x = noise.values<double>(2 * s.in_channels * s.in_plane()), weight = noise.values<double>(weight_elems(s));
    const auto bias = noise.values<double>(s.out_channels);
    Guarded<double> y(2 * s.out_channels * s.out_plane());
    kernel::conv2d_forward(2, s, x.data(), weight.data(), bias.data(), y.data());
    auto expected = convolve_padded(s, x.data(), weight.data(), bias.data());
    const auto second = convolve_padded(s, x.data() + s.in_channels * s.in_plane(), weight.data(), bias.data());
    expected.insert(expected.end(), second.begin(), second.end());
    REQUIRE(Index(expected.size()) == y.size());
    CHECK(largest_difference(y.values(), expected) < 1e-13);
    CHECK(y.guards_hold());
  }
}

TEST_CASE("conv2d_gradients_are_the_finite_differences") {
  Noise noise(2);
  for (const Conv2dSizes& s : cases) {
    const Index batch = 2;
    auto x = noise.values<double>(batch * s.in_channels * s.in_plane()), weight = noise.values<double>(weight_elems(s));
    auto bias = noise.values<double>(s.out_channels);
    const auto dy = noise.values<double>(batch * s.out_channels * s.out_plane());
    const auto loss = [&] {
      std::vector<double> y(dy.size());
      kernel::conv2d_forward(batch, s, x.data(), weight.data(), bias.data(), y.data());
      return inner_product(y, dy);
    };
    Guarded<double> dx(Index(x.size())), dweight(Index(weight.size()), 0.0), dbias(s.out_channels, 0.0);
    kernel::conv2d_backward_input(batch, s, dy.data(), weight.data(), dx.data());
    kernel::conv2d_backward_weight(batch, s, x.data(), dy.data(), dweight.data(), dbias.data());
    CHECK(largest_gradient_error(x, dx.values(), loss) < 1e-8);
    CHECK(largest_gradient_error(weight, dweight.values(), loss) < 1e-8);
    CHECK(largest_gradient_error(bias, dbias.values(), loss) < 1e-8);
    CHECK((dx.guards_hold() && dweight.guards_hold() && dbias.guards_hold()));
  }
}

TEST_CASE_TEMPLATE("conv2d_parameter_gradients_are_added_to", Real, float, double) {
  const Conv2dSizes s = cases[1];
  Noise noise(3);
  const auto x = noise.values<Real>(s.in_channels * s.in_plane()), dy = noise.values<Real>(s.out_channels * s.out_plane());
  Guarded<Real> once(weight_elems(s), Real(0)), twice(weight_elems(s), Real(0)), bias_once(s.out_channels, Real(0)),
      bias_twice(s.out_channels, Real(0));
  kernel::conv2d_backward_weight(1, s, x.data(), dy.data(), once.data(), bias_once.data());
  for (int i = 0; i < 2; ++i) kernel::conv2d_backward_weight(1, s, x.data(), dy.data(), twice.data(), bias_twice.data());
  for (Index i = 0; i < once.size(); ++i) CHECK(twice[i] == doctest::Approx(2 * once[i]).epsilon(1e-5));
  for (Index i = 0; i < s.out_channels; ++i) CHECK(bias_twice[i] == doctest::Approx(2 * bias_once[i]).epsilon(1e-5));
}
