// SPDX-License-Identifier: Apache-2.0
// Image models divided by channels: convolutions, batch norm over the global batch, pooling, flatten, dropout on slices of features.
#include "layer/split_cases.hpp"

using namespace weft;
using namespace weft::test;

namespace {

// No bias right before a batch norm: its gradient is 0, so that nothing but rounding would be compared.
constexpr Conv2dOptions same{.kernel = 3, .padding = 1, .bias = false}, same_with_bias{.kernel = 3, .padding = 1};

using Cnn = Sequential<Input<1, 8, 8>, Conv2d<1, 12, same_with_bias>, Relu, BatchNorm2d<12>, MaxPool2d<>, Conv2d<12, 8, same_with_bias>,
                       Relu, BatchNorm2d<8>, AveragePool2d<>, Flatten, Linear<32, 24>, Relu, Dropout<0.25>, Linear<24, 10>>;
// Channels go on into a linear layer; whole groups of a depthwise convolution; residual blocks.
using Grouped = Sequential<Input<2, 6, 6>, Conv2d<2, 8, same>, Relu, Conv2d<8, 16, Conv2dOptions{.kernel = 3, .padding = 1, .groups = 8}>,
                           Relu, BatchNorm2d<16>, MaxPool2d<>, Flatten, Linear<144, 5>>;
using Block = Residual<Conv2d<4, 8, same>, BatchNorm2d<8>, Relu, Conv2d<8, 4, Conv2dOptions{.kernel = 1}>>;
using Residuals = Sequential<Input<1, 6, 6>, Conv2d<1, 4, same>, BatchNorm2d<4>, Relu, Repeat<2, Block, Relu>, Flatten, Linear<144, 5>>;

template <class Model, Index tensor>
void compare_tensor(const SplitRun& one, const SplitCase& how, const std::string& what) {
  compare_runs(train_split<Model, tensor, false>(mesh(TensorParallel{.ranks = tensor}), how), one, what);
  SplitCase cut = how;
  cut.micro = 2;
  compare_runs(train_split<Model, tensor, false>(mesh(DataParallel{.ranks = 2, .bucket_bytes = 500}, TensorParallel{.ranks = tensor}), cut),
               one, what + ", two data ranks");
}

}  // namespace

TEST_CASE("convolutions_divided_by_channels_train_as_on_one_rank") {
  const SplitCase how{.items = 8, .micro = 4};
  const SplitRun one = train_split<Cnn, 1, false>(mesh(DataParallel{.ranks = 1}), how);
  CHECK(one.losses[2] < one.losses[0]);
  compare_tensor<Cnn, 2>(one, how, "2 tensor ranks");
  compare_tensor<Cnn, 3>(one, how, "3 tensor ranks");
  compare_tensor<Cnn, 4>(one, how, "4 tensor ranks");
}

TEST_CASE("rows_of_images_are_divided_with_sequence") {
  const SplitCase how{.items = 8, .micro = 4};
  const SplitRun one = train_split<Cnn, 1, false>(mesh(DataParallel{.ranks = 1}), how);
  compare_runs(train_split<Cnn, 2, true>(mesh(TensorParallel{.ranks = 2, .sequence = true}), how), one, "2 tensor ranks, sequence");
}

TEST_CASE("groups_of_a_convolution_are_divided") {
  const SplitCase how{.items = 8, .micro = 4};
  const SplitRun one = train_split<Grouped, 1, false>(mesh(DataParallel{.ranks = 1}), how);
  compare_tensor<Grouped, 2>(one, how, "grouped, 2 tensor ranks");
  compare_tensor<Grouped, 4>(one, how, "grouped, 4 tensor ranks");
}

TEST_CASE("residual_blocks_of_convolutions_are_divided") {
  const SplitCase how{.items = 8, .micro = 4};
  const SplitRun one = train_split<Residuals, 1, false>(mesh(DataParallel{.ranks = 1}), how);
  compare_tensor<Residuals, 2>(one, how, "residual, 2 tensor ranks");
}

TEST_CASE("channels_that_the_ranks_do_not_divide_are_refused") {
  const auto fault = [](Index ranks) {
    return plan_data<Grouped, Recipe<Fp64>>(lower_strategy(mesh(TensorParallel{.ranks = ranks})), {.global = 8, .micro = 4}).fault;
  };
  CHECK(fault(2).rule == PlanRule::none);
  CHECK(fault(3).rule == PlanRule::tensor_divides);
  CHECK(fault(3).found == 8);
  CHECK(fault(16).rule == PlanRule::tensor_divides);
}
