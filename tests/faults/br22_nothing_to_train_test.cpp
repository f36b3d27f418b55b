// SPDX-License-Identifier: Apache-2.0
// BR-22, a rank, group or stage with nothing to train: parameters with fewer elements than ranks, or with none; stages without parameters;
// models without any; a rank without data. Every collective is entered by all, with clipping on, and the result is one rank's.
#include "layer/split_cases.hpp"

using namespace weft;
using namespace weft::test;

namespace {

// y = x (1 + Σ n · few[n]) over N numbers, with a parameter of shape (4, 0) beside it.
template <Index C, Index N>
struct Few {
  static constexpr const char* name = "few_numbers";
  static constexpr int version = 1;
  static constexpr Features output(Features in) { return in == Features{C} ? in : Features{}; }
  static constexpr LayerFacts facts(Features, Index) {
    LayerFacts facts;
    facts.parameters.push(parameter("nothing", ParameterKind::weight, uniform_by_fan_in(1), 4, 0));
    if (N > 0) facts.parameters.push(parameter("few", ParameterKind::bias, uniform_by_fan_in(1), N));
    facts.needs_output = true;
    return facts;
  }
  template <class Context>
  static void forward(Context& context) {
    double sum = 0;
    for (Index n = 0; n < N; ++n) sum += context.parameter(1)[n] * double(n + 1);
    for (Index i = 0; i < context.input_elems(); ++i) context.output()[i] = context.input()[i] * (1 + sum);
  }
  template <class Context>
  static void backward(Context& context) {
    double sum = 0, scale = 1;
    for (Index n = 0; n < N; ++n) scale += context.parameter(1)[n] * double(n + 1);
    for (Index i = 0; i < context.input_elems(); ++i) sum += context.output_gradient()[i] * context.output_value()[i] / scale;
    for (Index n = 0; n < N; ++n) context.gradient(1)[n] += sum * double(n + 1);
    for (Index i = 0; context.input_gradient() && i < context.input_elems(); ++i)
      context.input_gradient()[i] = context.output_gradient()[i] * scale;
  }
};

// Three numbers on one unit, none on others, and units without parameters between them.
using Model = Sequential<Linear<6, 8>, Few<8, 3>, Relu, Few<8, 0>, Gelu, Dropout<0.2>, Linear<8, 1>, Linear<1, 5>>;
using Bare = Sequential<Input<5>, Relu, Dropout<0.2>>;
constexpr SplitCase how{.items = 16, .micro = 2};

// One data rank of four has nothing in the second step.
template <class MeshType>
std::vector<double> with_an_idle_rank(const MeshType& strategy, Index per_rank) {
  std::vector<double> losses;
  const PlanData plan = plan_at_start<Model, Recipe<Fp64, SoftmaxCrossEntropy<>, Sgd>>(strategy, {.global = 16, .micro = 2});
  launch(int(plan.strategy.ranks), [&](ThreadCommunicator& comm) {
    using TheEngine = EngineOf<Model, SoftmaxCrossEntropy<>, double, Sgd, ThreadCommunicator>;
    TheEngine engine(plan, model_code<typename TheEngine::Kernels, double, Model, SoftmaxCrossEntropy<>>(), comm, Sgd{.rate = 0.05},
                     {.clip_norm = 0.5, .poison = true});
    GraphData graph = plan.graph;
    graph.whole_output = graph.output;
    for (int step = 0; step < 3; ++step) {
      // Items 0 to 11: of four ranks the last has none; one rank has them all.
      const Index items = step == 1 ? std::min(per_rank, std::max<Index>(0, 12 - engine.place().data * per_rank)) : per_rank;
      const StepResult result = engine.step(
          items / 2, [&](auto& to) { fill_by_place(to, graph, how, engine.place().data * per_rank + to.number * 2); }, 0.05);
      if (comm.rank() == 0) losses.push_back(result.loss), losses.push_back(result.gradient_norm);
    }
  });
  return losses;
}

}  // namespace

TEST_CASE("br22_shards_without_elements_take_part") {
  const SplitRun one = train_split<Model, 1, false>(mesh(DataParallel{}), how);
  CHECK(one.tensors.at("1.few").size() == 3);
  CHECK(one.tensors.at("1.nothing").empty());
  for (Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::parameters}) {
    const std::string cell = "shard " + std::to_string(int(shard));
    compare_runs(train_split<Model, 1, false>(mesh(DataParallel{.ranks = 4, .bucket_bytes = 8, .shard = shard}), how), one, cell + " of 4");
    compare_runs(train_split<Model, 1, false>(mesh(DataParallel{.ranks = 8, .shard = shard, .shard_ranks = 4}), how), one,
                 cell + " of 2 x 4");
  }
}

TEST_CASE("br22_stages_without_parameters_take_part") {
  const SplitRun one = train_split<Model, 1, false>(mesh(DataParallel{}), how);
  for (Shard shard : {Shard::none, Shard::parameters})
    for (const ChunkStarts& starts : {chunk_starts(1, 2, 7), chunk_starts(2, 3, 4), chunk_starts(4, 5, 6)}) {
      const auto strategy = mesh(DataParallel{.ranks = 2, .shard = shard}, Pipeline<>{.stages = 4, .chunk_starts = starts});
      compare_runs(train_split<Model, 1, false>(strategy, how), one, "stages from " + std::to_string(starts[1]));
    }
}

TEST_CASE("br22_a_model_without_parameters_runs") {
  const SplitRun one = train_split<Bare, 1, false>(mesh(DataParallel{}), how);
  CHECK(one.norms[0] == 0);
  compare_runs(train_split<Bare, 1, false>(mesh(DataParallel{.ranks = 4, .shard = Shard::parameters}), how), one, "sharded");
  compare_runs(train_split<Bare, 1, false>(mesh(DataParallel{.ranks = 2}, Pipeline<>{.stages = 2}), how), one, "stages");
  compare_runs(train_split<Bare, 2, true>(mesh(TensorParallel{.ranks = 2, .sequence = true}), how), one, "tensor ranks");
}

TEST_CASE("br22_a_rank_without_data_takes_part") {
  const std::vector<double> one = with_an_idle_rank(mesh(DataParallel{}), 16);
  for (Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::parameters})
    compare_numbers(with_an_idle_rank(mesh(DataParallel{.ranks = 4, .shard = shard}), 4), one, 1e-10,
                    "shard " + std::to_string(int(shard)));
  compare_numbers(with_an_idle_rank(mesh(DataParallel{.ranks = 4}, Pipeline<>{.stages = 2}), 4), one, 1e-10, "two stages");
}
