// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/pool2d.hpp>

#include <doctest/doctest.h>

#include "kernel/guarded.hpp"

namespace {

using namespace weft;
using namespace weft::test;

//                                c  H  W  k  s  p
constexpr Pool2dSizes cases[] = {{2, 6, 4, 2, 2, 0}, {1, 7, 5, 2, 2, 0}, {2, 6, 7, 3, 2, 1},
                                 {1, 5, 5, 3, 1, 1}, {2, 7, 8, 2, 3, 1}, {3, 4, 4, 4, 4, 0}};

}  // namespace

TEST_CASE("pool2d_sizes_of_known_layers_are_those_of_torch") {
  constexpr Pool2dSizes resnet{64, 112, 112, 3, 2, 1};
  static_assert(resnet.out_height() == 56 && resnet.out_width() == 56, "the first pooling of a ResNet halves the image");
  CHECK(Pool2dSizes{1, 7, 8, 2, 2, 0}.out_height() == 3);
  CHECK(Pool2dSizes{1, 1, 8, 2, 2, 0}.out_height() == 0);
}

TEST_CASE_TEMPLATE("max_pool2d_known_image_gives_known_maxima_and_places", Real, float, double) {
  const Real nan = std::numeric_limits<Real>::quiet_NaN(), infinity = std::numeric_limits<Real>::infinity();
  const std::vector<Real> x = {1,   5,   5, 2,          -infinity, -infinity,  //
                               3,   4,   5, -1,         -infinity, -infinity,  //
                               nan, 9,   0, Real(-0.0), 7,         nan,        //
                               8,   nan, 0, 0,          nan,       7};
  const Pool2dSizes s{1, 4, 6, 2, 2, 0};
  Guarded<Real> y(6);
  Guarded<std::int32_t> argmax(6);
  kernel::max_pool2d_forward(1, s, x.data(), y.data(), argmax.data());
  CHECK((y[0] == 5 && y[1] == 5 && y[2] == -infinity && std::isnan(y[3]) && y[4] == 0 && std::isnan(y[5])));
  CHECK(argmax.values() == std::vector<std::int32_t>{1, 2, 4, 19, 14, 22});
  CHECK((y.guards_hold() && argmax.guards_hold()));
}

TEST_CASE("max_pool2d_padding_is_never_chosen") {
  const Pool2dSizes s{1, 3, 3, 3, 2, 1};
  const std::vector<double> x(9, -5.0);
  Guarded<double> y(4);
  Guarded<std::int32_t> argmax(4);
  kernel::max_pool2d_forward(1, s, x.data(), y.data(), argmax.data());
  CHECK(y.values() == std::vector<double>(4, -5.0));
  CHECK(argmax.values() == std::vector<std::int32_t>{0, 1, 3, 4});
}

TEST_CASE("max_pool2d_gradient_is_the_finite_difference") {
  Noise noise(1);
  for (const Pool2dSizes& s : cases) {
    auto x = noise.values<double>(2 * s.channels * s.in_plane());
    const auto dy = noise.values<double>(2 * s.channels * s.out_plane());
    Guarded<std::int32_t> argmax(Index(dy.size()));
    std::vector<double> y(dy.size());
    const auto loss = [&] {
      kernel::max_pool2d_forward(2, s, x.data(), y.data(), argmax.data());
      return inner_product(y, dy);
    };
    loss();
    Guarded<double> dx(Index(x.size()));
    kernel::max_pool2d_backward(2, s, argmax.data(), dy.data(), dx.data());
    CHECK(largest_gradient_error(x, dx.values(), loss, 1e-7) < 1e-6);
    CHECK(dx.guards_hold());
  }
}

TEST_CASE("average_pool2d_known_image_gives_known_means") {
  const std::vector<double> x = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  Guarded<double> y(4);
  kernel::average_pool2d_forward(1, Pool2dSizes{1, 3, 3, 2, 2, 1}, x.data(), y.data());
  CHECK(y.values() == std::vector<double>{0.25, 1.25, 2.75, 7.0});  // padding counts as zeros: always divided by 4
}

TEST_CASE("average_pool2d_gradient_is_the_finite_difference") {
  Noise noise(2);
  for (const Pool2dSizes& s : cases) {
    auto x = noise.values<double>(2 * s.channels * s.in_plane());
    const auto dy = noise.values<double>(2 * s.channels * s.out_plane());
    const auto loss = [&] {
      std::vector<double> y(dy.size());
      kernel::average_pool2d_forward(2, s, x.data(), y.data());
      return inner_product(y, dy);
    };
    Guarded<double> dx(Index(x.size()));
    kernel::average_pool2d_backward(2, s, dy.data(), dx.data());
    CHECK(largest_gradient_error(x, dx.values(), loss) < 1e-8);
    CHECK(dx.guards_hold());
  }
}
