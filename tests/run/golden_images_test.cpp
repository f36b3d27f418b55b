// SPDX-License-Identifier: Apache-2.0
// The reference trajectories of an MLP and of a CNN with batch norm, by 1 to 8 ranks and several micro-batch counts.
#include "run/golden_file.hpp"

using namespace weft;
using namespace weft::test;

namespace {

using Mlp = Sequential<Named<"fc1", Linear<64, 48>>, Relu, Named<"fc2", Linear<48, 32>>, Relu, Named<"fc3", Linear<32, 10>>>;
using SamePadding3x3 = Conv2d<1, 8, Conv2dOptions{.kernel = 3, .padding = 1, .bias = false}>;
using Cnn = Sequential<Input<1, 16, 16>, Named<"conv1", SamePadding3x3>, Named<"bn1", BatchNorm2d<8>>, Relu, MaxPool2d<>,
                       Named<"conv2", Conv2d<8, 16, Conv2dOptions{.kernel = 3, .padding = 1, .bias = false}>>,
                       Named<"bn2", BatchNorm2d<16>>, Relu, MaxPool2d<>, Flatten, Named<"fc", Linear<256, 10>>>;

std::string torch_name(std::string path) {
  for (const auto& [ours, theirs] :
       {std::pair<std::string, std::string>{".gain", ".weight"}, {".shift", ".bias"}, {".running_variance", ".running_var"}})
    if (path.ends_with(ours)) return path.substr(0, path.size() - ours.size()) + theirs;
  return path;
}

std::vector<GoldenStrategy> image_strategies(bool streams) {
  std::vector<GoldenStrategy> out = data_ranks({1, 2, 4, 8});
  const auto add = [&](const char* name, const auto&... axes) { out.push_back(golden_strategy(name, mesh(axes...))); };
  add("zero1_4", DataParallel{.ranks = 4, .shard = Shard::optimizer});
  add("tensor2", TensorParallel{.ranks = 2});
  add("tensor4", TensorParallel{.ranks = 4});
  add("data2 tensor2", DataParallel{.ranks = 2}, TensorParallel{.ranks = 2});
  if (!streams) return out;  // batch norm joins the micro-batches
  add("zero3_2", DataParallel{.ranks = 2, .shard = Shard::parameters});
  add("pipe2", Pipeline<>{.stages = 2});
  add("data2 pipe2", DataParallel{.ranks = 2}, Pipeline<schedule::ZeroBubbleH1>{.stages = 2});
  return out;
}

}  // namespace

TEST_CASE_TEMPLATE("golden_mlp_is_followed", Real, double, float) {
  const GoldenFile golden("mlp_tiny");
  follow<Mlp, Real, 2, 4>(golden, {.items = 16, .steps = 10, .rate = 0.1}, Sgd{.rate = 0.1}, image_strategies(true), {1, 2, 4, 16},
                          [&](const std::string& kind, const std::string& path) { return golden[kind + "/" + path]; });
}

TEST_CASE_TEMPLATE("golden_cnn_with_batch_norm_over_the_global_batch_is_followed", Real, double, float) {
  const GoldenFile golden("cnn_tiny");
  const Sgd rule{.rate = 0.05, .momentum = 0.9, .nesterov = true, .decay = 1e-4, .decay_on = DecayOn::all};
  follow<Cnn, Real, 2, 4>(golden, {.items = 16, .steps = 5, .rate = 0.05}, rule, image_strategies(false), {1, 2, 16},
                          [&](const std::string& kind, const std::string& path) { return golden[kind + "/" + torch_name(path)]; });
}
