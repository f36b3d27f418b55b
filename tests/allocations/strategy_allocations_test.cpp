// SPDX-License-Identifier: Apache-2.0
// No step allocates anything after the first, whatever the strategy: pipelines, tensor groups, shards, recomputing, ties across stages,
// policies of synchronisation, and mixes of them; also when fewer rows come than planned, and in evaluation.
#include "allocations/count.hpp"
#include "run/engine_cases.hpp"

using namespace weft;
using namespace weft::test;

namespace {

constexpr Index sequence = 4, micros_of_all = 8;
// A tie across stages, dropout, and fewer key/value heads than the widest tensor group has ranks.
using Text = Gpt<GptOptions{.vocabulary = 13, .sequence = sequence, .width = 16, .heads = 4, .layers = 8, .tied = true, .dropout = 0.1}>;
using TextRecipe = Recipe<Fp64, SoftmaxCrossEntropy<>, AdamW>;
using TheEngine = EngineOf<Text, SoftmaxCrossEntropy<>, double, AdamW, ThreadCommunicator>;

struct LocalSgd {
  static constexpr const char* name = "local_sgd";
  static constexpr int version = 1;
  static constexpr bool sums_gradients = false;
  static constexpr void synchronise(SyncStep& step) {
    if (step.number() % step.every() == 0) step.average(Shared::parameters);
  }
};

// Of all ranks in `steps` steps after the first two, and in an evaluation after the first.
struct Counted {
  long in_steps = -1, in_evaluation = -1;
};

template <class MeshType>
Counted count_allocations(const MeshType& axes, int steps = 4) {
  const PlanData plan = plan_at_start<Text, TextRecipe>(axes, {.global = micros_of_all, .micro = 1, .sequence = sequence});
  Counted counted;
  launch(int(plan.strategy.ranks), [&](ThreadCommunicator& comm) {
    const auto code =
        model_code_for<TheEngine::Kernels, double, Text, SoftmaxCrossEntropy<>, 2>(plan.strategy.tensor(), plan.graph.sequence);
    TheEngine engine(plan, code, comm, AdamW{}, {.clip_norm = 0.5});
    Index step = 0;
    const auto fill = [&](auto& to) {
      to.leading = {1, sequence - step % 2, 0};
      to.first_item = engine.place().data * plan.micros + to.number;
      for (Index i = 0; i < sequence; ++i)
        to.tokens()[i] = std::int32_t((to.first_item * 5 + i * 3) % 13),
        to.integer_targets()[i] = std::int32_t((to.first_item * 7 + i) % 13);
    };
    // The count of all ranks' allocations in body, which all ranks run.
    const auto count = [&](long& allocations, auto&& body) {
      comm.barrier();
      const long before = num_allocations;
      comm.barrier();
      body();
      comm.barrier();
      if (comm.rank() == 0) allocations = num_allocations - before;
      comm.barrier();
    };
    for (; step < 2; ++step) engine.step(plan.micros, fill, 0.01);
    count(counted.in_steps, [&] {
      for (; step < 2 + steps; ++step) engine.step(plan.micros, fill, 0.01);
    });
    engine.evaluate(fill);
    count(counted.in_evaluation, [&] { engine.evaluate(fill); });
  });
  return counted;
}

template <class MeshType>
void check_none(const char* name, const MeshType& axes) {
  const Counted counted = count_allocations(axes);
  CHECK_MESSAGE(counted.in_steps == 0, name << ": " << counted.in_steps << " allocations in steps");
  CHECK_MESSAGE(counted.in_evaluation == 0, name << ": " << counted.in_evaluation << " allocations in an evaluation");
}

}  // namespace

TEST_CASE("the_count_sees_allocations") {
  const long before = num_allocations;
  ::operator delete(::operator new(3));  // a call of the function: a compiler may leave out new-expressions
  CHECK(num_allocations == before + 1);
}

TEST_CASE("a_step_of_a_pipeline_allocates_nothing") {
  check_none("gpipe", mesh(Pipeline<schedule::GPipe>{.stages = 2}));
  check_none("1f1b", mesh(Pipeline<>{.stages = 4}));
  check_none("interleaved", mesh(Pipeline<schedule::Interleaved>{.stages = 2, .chunks = 2}));
  check_none("zero bubble", mesh(Pipeline<schedule::ZeroBubbleH1>{.stages = 4}));
  check_none("zero bubble, H2", mesh(Pipeline<schedule::ZeroBubbleH2>{.stages = 2}));
  check_none("zero bubble, V", mesh(Pipeline<schedule::ZeroBubbleV>{.stages = 2}));
}

TEST_CASE("a_step_of_a_tensor_group_allocates_nothing") {
  check_none("tensor", mesh(TensorParallel{.ranks = 2}));
  check_none("tensor, sequence", mesh(TensorParallel{.ranks = 2, .sequence = true}));
}

TEST_CASE("a_step_with_shards_allocates_nothing") {
  for (const Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::parameters})
    for (const Index shard_ranks : {0, 2})
      check_none(text_of("shard ", int(shard), " over ", shard_ranks).c_str(),
                 mesh(DataParallel{.ranks = 4, .bucket_bytes = 2000, .shard = shard, .shard_ranks = shard_ranks}));
}

TEST_CASE("a_step_that_recomputes_allocates_nothing") {
  check_none("recompute", mesh(Activations{.recompute = Recompute::full}));
  check_none("recompute, selective", mesh(Activations{.recompute = Recompute::selective}));
  check_none("recompute, pipeline", mesh(Pipeline<>{.stages = 2}, Activations{.recompute = Recompute::full}));
}

TEST_CASE("a_step_of_the_reproducible_mode_allocates_nothing") {
  check_none("reproducible, data", mesh(DataParallel{.ranks = 2}, Reproducible{}));
  check_none("reproducible, zero bubble", mesh(Pipeline<schedule::ZeroBubbleH1>{.stages = 2}, Reproducible{}));
  check_none("reproducible, zero 3, pipeline",
             mesh(DataParallel{.ranks = 2, .shard = Shard::parameters}, Pipeline<>{.stages = 2}, Reproducible{}));
}

TEST_CASE("a_step_of_mixed_strategies_allocates_nothing") {
  check_none("local sgd", mesh(Replicas<LocalSgd>{.ranks = 2, .every = 2}));
  check_none("zero 2, zero bubble, tensor",
             mesh(DataParallel{.ranks = 2, .shard = Shard::gradients}, Pipeline<schedule::ZeroBubbleH1>{.stages = 2},
                  TensorParallel{.ranks = 2, .sequence = true}));
  check_none("zero 3, pipeline, recompute", mesh(DataParallel{.ranks = 2, .shard = Shard::parameters}, Pipeline<>{.stages = 2},
                                                 Activations{.recompute = Recompute::selective}));
}
