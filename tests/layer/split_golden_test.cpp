// SPDX-License-Identifier: Apache-2.0
// The reference trajectories of the MLP and of the CNN with batch norm, by tensor groups alone and beside data ranks.
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

// This rank's part of a whole tensor.
std::vector<double> part_of(const std::vector<double>& whole, const ParameterSite& site, Index ranks, Index rank) {
  std::vector<double> own(std::size_t(site.facts.elems()), 0.0);
  for_each_stretch(site, ranks, rank, [&](Index at, Index from, Index count) {
    for (Index i = 0; i < count; ++i) own[std::size_t(at + i)] = whole[std::size_t(from + i)];
  });
  return own;
}

template <class Model, Index tensor, class Rule>
void follow_divided(const GoldenFile& golden, Index data, Index micro, Index steps, Rule rule) {
  constexpr Index items = 16;
  const auto strategy = mesh(DataParallel{.ranks = data, .bucket_bytes = 3000}, TensorParallel{.ranks = tensor});
  const PlanData plan = plan_at_start<Model, Recipe<Fp64, SoftmaxCrossEntropy<>, Rule>>(strategy, {.global = items, .micro = micro});
  const std::string cell =
      std::to_string(data) + " x " + std::to_string(tensor) + " ranks, micro-batches of " + std::to_string(micro) + ": ";
  std::mutex mutex;  // doctest's checks from one rank at a time
  launch(int(data * tensor), [&](ThreadCommunicator& comm) {
    using TheEngine = EngineOf<Model, SoftmaxCrossEntropy<>, double, Rule, ThreadCommunicator>;
    TheEngine engine(plan, model_code<typename TheEngine::Kernels, double, Model, SoftmaxCrossEntropy<>, tensor>(), comm, rule,
                     {.poison = true});
    const auto golden_part = [&](const std::string& kind, int p, const ParameterSite& site) {
      return part_of(golden[kind + "/" + torch_name(path_of(engine.plan().graph, p, 0))], site, tensor, engine.place().tensor);
    };
    engine.state().for_each_held([&](int p, Index, const ParameterSite& site, const auto& held) {
      if (site.facts.kind == ParameterKind::buffer) return;
      const std::vector<double> values = golden_part("param", p, site);
      std::copy(values.begin(), values.end(), held.data);
    });
    const Index per_rank = items / data, width = Index(golden["input"].size()) / items;
    const auto fill = [&](auto& to) {
      to.leading = {micro, 1, 0};
      to.first_item = engine.place().data * per_rank + to.number * micro;
      for (Index i = 0; i < micro * width; ++i) to.values()[i] = golden["input"][std::size_t(to.first_item * width + i)];
      for (Index i = 0; i < micro; ++i) to.integer_targets()[i] = std::int32_t(golden["target"][std::size_t(to.first_item + i)]);
    };
    Comparison compare{};
    for (Index step = 0; step < steps; ++step) {
      const StepResult result = engine.step(per_rank / micro, fill, rule.rate);
      const std::lock_guard lock(mutex);
      const double loss = golden["losses"][std::size_t(step)], norm = golden["grad_norms"][std::size_t(step)];
      CHECK_MESSAGE(std::abs(result.loss - loss) <= 1e-10 * std::abs(loss), cell << "loss of step " << step << ": " << result.loss);
      CHECK_MESSAGE(std::abs(result.gradient_norm - norm) <= 1e-10 * norm, cell << "norm of step " << step << ": " << result.gradient_norm);
      if (step > 0) continue;
      engine.state().for_each_held([&](int p, Index, const ParameterSite& site, const auto& held) {
        if (!held.gradient) return;
        std::vector<double> scaled(held.gradient, held.gradient + held.elems);
        for (double& value : scaled) value *= engine.gradient_scale();
        compare.check(cell + "gradient of " + path_of(engine.plan().graph, p, 0), scaled.data(), golden_part("grad", p, site));
      });
    }
    const std::lock_guard lock(mutex);
    engine.state().for_each_held([&](int p, Index, const ParameterSite& site, const auto& held) {
      compare.check(cell + path_of(engine.plan().graph, p, 0), held.data, golden_part(held.gradient ? "after" : "buffer_after", p, site));
    });
  });
}

}  // namespace

TEST_CASE("golden_mlp_is_followed_by_tensor_groups") {
  const GoldenFile golden("mlp_tiny");
  const Sgd rule{.rate = 0.1};
  follow_divided<Mlp, 2>(golden, 1, 16, 10, rule);
  follow_divided<Mlp, 3>(golden, 1, 4, 10, rule);
  follow_divided<Mlp, 4>(golden, 2, 4, 10, rule);
}

TEST_CASE("golden_cnn_is_followed_by_tensor_groups") {
  const GoldenFile golden("cnn_tiny");
  const Sgd rule{.rate = 0.05, .momentum = 0.9, .nesterov = true, .decay = 1e-4, .decay_on = DecayOn::all};
  follow_divided<Cnn, 2>(golden, 1, 16, 5, rule);
  follow_divided<Cnn, 2>(golden, 2, 2, 5, rule);
  follow_divided<Cnn, 4>(golden, 2, 4, 5, rule);
}
