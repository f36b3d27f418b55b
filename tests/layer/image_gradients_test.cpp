// SPDX-License-Identifier: Apache-2.0
// Every layer of image models against finite differences in float64; batch norm over several micro-batches.
#include "layer/gradients.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE("gradients_of_convolutions") {
  check<Sequential<Input<2, 5, 4>, Conv2d<2, 3>, Flatten, Linear<18, 3>>>("plain");
  check<Sequential<Input<2, 6, 5>, Conv2d<2, 4, Conv2dOptions{.kernel = 3, .stride = 2, .padding = 1, .bias = false}>, Gelu,
                   Conv2d<4, 4, Conv2dOptions{.kernel = 2, .dilation = 2, .groups = 2}>, Flatten, Linear<4, 3>>>(
      "stride, padding, dilation, groups");
  check<Sequential<Input<3, 4, 4>, Conv2d<3, 6, Conv2dOptions{.kernel = 1}>,
                   Conv2d<6, 6, Conv2dOptions{.kernel = 3, .padding = 1, .groups = 6}>, Flatten, Linear<96, 3>>>("pointwise and depthwise");
}

TEST_CASE("gradients_of_pooling") {
  check<Sequential<Input<2, 6, 6>, Conv2d<2, 3>, MaxPool2d<>, Flatten, Linear<12, 3>>>("max");
  check<Sequential<Input<2, 6, 6>, Conv2d<2, 3>, AveragePool2d<Pool2dOptions{.kernel = 3, .stride = 2, .padding = 1}>, Flatten,
                   Linear<12, 3>>>("average");
}

TEST_CASE("gradients_of_batch_norm_over_the_global_batch") {
  using Model = Sequential<Input<1, 4, 4>, Conv2d<1, 3>, BatchNorm2d<3>, Gelu, Flatten, Linear<12, 3>>;
  check<Model>("one micro-batch", 6, 1, 1);
  check<Model>("three micro-batches", 2, 1, 3);
}

TEST_CASE("gradients_of_residual_blocks_with_batch_norm") {
  using Block = Residual<Conv2d<3, 3, Conv2dOptions{.kernel = 3, .padding = 1, .bias = false}>, BatchNorm2d<3>, Gelu,
                         Conv2d<3, 3, Conv2dOptions{.kernel = 1, .bias = false}>, BatchNorm2d<3>>;
  using Model =
      Sequential<Input<1, 4, 4>, Conv2d<1, 3, Conv2dOptions{.kernel = 3, .padding = 1}>, Repeat<2, Block, Gelu>, Flatten, Linear<48, 3>>;
  check<Model>("one micro-batch", 4, 1, 1);
  check<Model>("two micro-batches", 2, 1, 2);
}
