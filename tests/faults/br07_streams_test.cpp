// SPDX-License-Identifier: Apache-2.0
// BR-07, random streams that should differ are equal, and the reverse: masks of data ranks, of copies and of slices; initial weights under
// any layout; random numbers that a loader draws.
#include "layer/split_cases.hpp"

#include <random>

using namespace weft;
using namespace weft::test;

namespace {

// What this thread's probe saw last in training.
thread_local std::vector<double> seen;

// Lets everything through, by features and by rows, and keeps what it saw.
struct Probe : ElementwiseLayer {
  static constexpr const char* name = "probe";
  static constexpr int version = 1;
  static constexpr LayerFacts facts(Features, Index) { return {}; }
  template <class Context>
  static void forward(Context& context) {
    if (context.training()) seen.assign(context.input(), context.input() + context.input_elems());
    context.pass_value();
  }
  template <class Context>
  static void backward(Context& context) {
    context.pass_gradient();
  }
};

constexpr Index rows = 64, width = 64;  // 4096 elements

// What the probe of each rank sees of a step in which everything that is dropped or not is 1 (or 0 and 2, afterwards).
template <class Model, Index tensor, bool sequence, class MeshType>
std::vector<std::vector<double>> probe(const MeshType& strategy, bool draws_more = false) {
  const Index data = lower_strategy(strategy).data();
  const PlanData plan = plan_at_start<Model, Recipe<Fp64, SumLoss, Sgd>>(strategy, {.global = data * rows, .micro = rows});
  std::vector<std::vector<double>> out(std::size_t(plan.strategy.ranks));
  launch(int(plan.strategy.ranks), [&](ThreadCommunicator& comm) {
    using TheEngine = EngineOf<Model, SumLoss, double, Sgd, ThreadCommunicator>;
    TheEngine engine(plan, model_code<typename TheEngine::Kernels, double, Model, SumLoss, tensor, sequence>(), comm, Sgd{.rate = 0.1},
                     {.seed = 5});
    engine.initialise(1, [](std::string_view path, const ParameterFacts&) {
      return InitialValue{InitialValue::Kind::constant, path == "up.bias" ? 1.0 : 0.0};
    });
    std::mt19937 loader(1);
    engine.step(
        1,
        [&](auto& to) {
          to.leading = {rows, 1, 0};
          to.first_item = engine.place().data * rows;
          for (int i = 0; draws_more && comm.rank() == 0 && i < 100; ++i) static_cast<void>(loader()), static_cast<void>(std::rand());
          const random::Words words(random::Stream{.seed = 5, .purpose = random::Purpose::data_augmentation});
          for (std::uint64_t i = 0; draws_more && comm.rank() == 0 && i < 100; ++i) static_cast<void>(words[i]);
          for (Index i = 0; i < rows * plan.graph.input.elems(); ++i) to.values()[i] = 1;
          for (Index i = 0; i < rows; ++i) to.integer_targets()[i] = 0;
        },
        0);
    out[std::size_t(comm.rank())] = seen;
  });
  return out;
}

double share_of_equal(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double equal = 0;
  for (std::size_t i = 0; i < a.size(); ++i) equal += a[i] == b[i];
  return equal / double(a.size());
}
void is_a_mask(const std::vector<double>& values, double most_elems) {
  CHECK(double(values.size()) == most_elems);
  for (double value : values) REQUIRE((value == 0 || value == 2));
}

using Plain = Sequential<Input<width>, Dropout<0.5>, Probe, Linear<width, 1>>;
using ByRows = Sequential<Input<width>, Relu, Dropout<0.5>, Probe, Linear<width, 1>>;
using ByFeatures = Sequential<Named<"up", Linear<1, width>>, Dropout<0.5>, Probe, Linear<width, 1>>;

}  // namespace

TEST_CASE("br07_data_ranks_draw_different_masks") {
  const auto masks = probe<Plain, 1, false>(mesh(DataParallel{.ranks = 2}));
  for (const auto& mask : masks) is_a_mask(mask, 4096);
  const double share = share_of_equal(masks[0], masks[1]);
  CHECK((share >= 0.4 && share <= 0.6));
}

TEST_CASE("br07_copies_in_a_tensor_group_draw_the_same_mask") {
  const auto masks = probe<Plain, 2, false>(mesh(TensorParallel{.ranks = 2}));
  is_a_mask(masks[0], 4096);
  CHECK(share_of_equal(masks[0], masks[1]) == 1);
  CHECK(masks[0] == probe<Plain, 1, false>(mesh(DataParallel{.ranks = 1}))[0]);
}

TEST_CASE("br07_slices_in_a_tensor_group_draw_different_masks_which_are_slices_of_the_whole") {
  const std::vector<double> whole_rows = probe<ByRows, 1, false>(mesh(DataParallel{.ranks = 1}))[0];
  const auto by_rows = probe<ByRows, 2, true>(mesh(TensorParallel{.ranks = 2, .sequence = true}));
  const std::vector<double> whole_features = probe<ByFeatures, 1, false>(mesh(DataParallel{.ranks = 1}))[0];
  const auto by_features = probe<ByFeatures, 2, false>(mesh(TensorParallel{.ranks = 2}));
  for (const auto& masks : {by_rows, by_features}) {
    for (const auto& mask : masks) is_a_mask(mask, 2048);
    const double share = share_of_equal(masks[0], masks[1]);
    CHECK((share >= 0.4 && share <= 0.6));
  }
  for (Index r = 0; r < rows; ++r)
    for (Index c = 0; c < width; ++c) {
      const std::size_t at = std::size_t(r * width + c);
      REQUIRE(by_rows[std::size_t(r / (rows / 2))][std::size_t(r % (rows / 2) * width + c)] == whole_rows[at]);
      REQUIRE(by_features[std::size_t(c / (width / 2))][std::size_t(r * (width / 2) + c % (width / 2))] == whole_features[at]);
    }
}

TEST_CASE("br07_what_a_loader_draws_changes_nothing") {
  CHECK(probe<Plain, 1, false>(mesh(DataParallel{.ranks = 2}), true) == probe<Plain, 1, false>(mesh(DataParallel{.ranks = 2})));
  CHECK(probe<ByFeatures, 2, false>(mesh(TensorParallel{.ranks = 2}), true) ==
        probe<ByFeatures, 2, false>(mesh(TensorParallel{.ranks = 2})));
}

TEST_CASE("br07_initial_weights_are_the_reference_s_bit_for_bit_under_any_layout") {
  using Model = Gpt<GptOptions{.vocabulary = 13, .sequence = 5, .width = 8, .heads = 4, .layers = 4}>;
  const SplitCase how{.items = 8, .micro = 2, .sequence = 5, .steps = 0};
  const SplitRun one = train_split<Model, 1, false>(mesh(DataParallel{.ranks = 1}), how);
  const auto same = [&](const SplitRun& run, const char* what) { CHECK_MESSAGE((run.tensors == one.tensors && run.differing == 0), what); };
  same(train_split<Model, 1, false>(mesh(Pipeline<>{.stages = 4}), how), "4 stages");
  same(train_split<Model, 4, false>(mesh(TensorParallel{.ranks = 4}), how), "4 tensor ranks");
  same(train_split<Model, 4, false>(mesh(Pipeline<>{.stages = 4}, TensorParallel{.ranks = 4}), how), "4 stages x 4 tensor ranks");
  same(train_split<Model, 4, false>(mesh(DataParallel{.ranks = 2, .shard = Shard::parameters}, TensorParallel{.ranks = 4}), how),
       "2 data ranks x 4 tensor ranks, sharded");
  // And no two blocks begin with the same weights.
  CHECK(one.tensors.at("blocks.0.mlp.up.weight") != one.tensors.at("blocks.1.mlp.up.weight"));
  CHECK(one.tensors.at("blocks.0.mlp.up.weight") != one.tensors.at("blocks.3.mlp.up.weight"));
}
