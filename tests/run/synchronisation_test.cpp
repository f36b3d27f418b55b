// SPDX-License-Identifier: Apache-2.0
// Policies of synchronisation: against replicas that are trained and averaged by hand, together with other axes, and what is refused.
#include "run/engine_cases.hpp"

using namespace weft;
using namespace weft::test;

namespace {

struct LocalSgd {
  static constexpr const char* name = "local_sgd";
  static constexpr int version = 1;
  static constexpr bool sums_gradients = false;
  static constexpr void synchronise(SyncStep& step) {
    if (step.number() % step.every() == 0) step.average(Shared::parameters);
  }
};
// And the momentum.
struct LocalWithState : LocalSgd {
  static constexpr void synchronise(SyncStep& step) {
    LocalSgd::synchronise(step);
    if (step.number() % step.every() == 0) step.average(Shared::optimizer_states);
  }
};

using Text = Gpt<GptOptions{.vocabulary = 13, .sequence = 4, .width = 8, .heads = 2, .layers = 3, .dropout = 0.2}>;
using TextRecipe = Recipe<Fp64, SoftmaxCrossEntropy<>, Sgd>;
using TheEngine = Engine<CpuExecutor, double, ThreadCommunicator, Sgd>;
constexpr Index items = 12, steps = 6;

// Replica r of `replicas` gets the items from r · items / replicas on.
auto filler(Index replica, Index replicas) {
  return [=](auto& to) {
    to.leading = {1, 4, 0};
    to.first_item = replica * (items / replicas) + to.number;
    for (Index i = 0; i < 4; ++i) {
      to.tokens()[i] = std::int32_t((to.first_item * 5 + i * 3) % 13);
      to.integer_targets()[i] = (to.first_item + i) % 5 == 2 ? -100 : std::int32_t((to.first_item * 7 + i) % 13);
    }
  };
}

template <class MeshType>
std::vector<double> train(const MeshType& axes, Sgd rule, double clip, std::vector<double>* losses = nullptr) {
  const PlanData plan = plan_at_start<Text, TextRecipe>(axes, {.global = items, .micro = 1, .sequence = 4});
  std::vector<double> out;
  launch(int(plan.strategy.ranks), [&](ThreadCommunicator& comm) {
    using Kernels = typename TheEngine::Kernels;
    TheEngine engine(plan, model_code_for<Kernels, double, Text, SoftmaxCrossEntropy<>, 2>(plan.strategy.tensor(), false), comm, rule,
                     {.seed = 3, .clip_norm = clip, .poison = true});
    for (Index s = 0; s < steps; ++s) {
      const StepResult result = engine.step(plan.micros, filler(engine.place().data, plan.strategy.data()), rule.rate);
      if (comm.rank() == 0 && losses) losses->push_back(result.loss);
    }
    const auto model = engine.collect({}, 0);
    for (const auto& tensor : model.tensors) out.insert(out.end(), tensor.data.begin(), tensor.data.end());
  });
  return out;
}

// The same by engines of one rank that know nothing of each other.
std::vector<double> train_by_hand(Index replicas, Index every, Sgd rule, double clip, bool states) {
  const PlanData plan = plan_at_start<Text, TextRecipe>(mesh(), {.global = items / replicas, .micro = 1, .sequence = 4});
  using One = Engine<CpuExecutor, double, SelfCommunicator, Sgd>;
  std::vector<std::unique_ptr<One>> engines;
  for (Index r = 0; r < replicas; ++r)
    engines.push_back(std::make_unique<One>(plan, model_code<typename One::Kernels, double, Text, SoftmaxCrossEntropy<>>(),
                                            SelfCommunicator{}, rule, EngineOptions{.seed = 3, .clip_norm = clip}));
  const auto average = [&](auto&& data_of) {
    for (Index e = 0; e < plan.graph.parameter_elems; ++e) {
      double mean = 0;
      for (auto& engine : engines) mean += data_of(*engine)[e] / double(replicas);
      for (auto& engine : engines) data_of(*engine)[e] = mean;
    }
  };
  for (Index s = 1; s <= steps; ++s) {
    for (Index r = 0; r < replicas; ++r) engines[std::size_t(r)]->step(items / replicas, filler(r, replicas), rule.rate);
    if (s % every != 0) continue;
    average([](One& engine) { return engine.parameters(); });
    if (states) average([](One& engine) { return engine.optimizer_state(0); });
  }
  std::vector<double> out;
  const auto model = engines[0]->collect();
  for (const auto& tensor : model.tensors) out.insert(out.end(), tensor.data.begin(), tensor.data.end());
  return out;
}

double difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

constexpr Sgd rule{.rate = 0.1, .momentum = 0.9};

}  // namespace

TEST_CASE("local_sgd_is_training_alone_and_taking_the_mean") {
  for (const Index replicas : {2, 3, 4})
    for (const Index every : {1, 2, 3}) {
      const auto by_hand = train_by_hand(replicas, every, rule, 0.7, false);
      CHECK(difference(train(mesh(Replicas<LocalSgd>{.ranks = replicas, .every = every}), rule, 0.7), by_hand) < 1e-12);
      const auto with_states = train_by_hand(replicas, every, rule, 0.7, true);
      CHECK(difference(train(mesh(Replicas<LocalWithState>{.ranks = replicas, .every = every}), rule, 0.7), with_states) < 1e-12);
      if (every > 1) CHECK(difference(by_hand, with_states) > 1e-6);  // with the mean in every step, momentum is linear in it
    }
}

TEST_CASE("local_sgd_with_pipelines_and_tensor_groups") {
  const auto by_hand = train_by_hand(2, 2, rule, 0.7, false);
  CHECK(difference(train(mesh(Replicas<LocalSgd>{.ranks = 2, .every = 2}, Pipeline<>{.stages = 2}), rule, 0.7), by_hand) < 1e-12);
  CHECK(difference(train(mesh(Replicas<LocalSgd>{.ranks = 2, .every = 2}, TensorParallel{.ranks = 2}), rule, 0.7), by_hand) < 1e-12);
  CHECK(difference(train(mesh(Pipeline<>{.stages = 3}, Replicas<LocalSgd>{.ranks = 2, .every = 2}, TensorParallel{.ranks = 2}), rule, 0.7),
                   by_hand) < 1e-12);
}

TEST_CASE("the_mean_in_every_step_of_plain_sgd_is_data_parallelism") {
  // With as many targets on every replica: here replicas that ignore different numbers of them, so not quite the same, and it shows.
  const Sgd plain{.rate = 0.1, .momentum = 0};
  const auto local = train(mesh(Replicas<LocalSgd>{.ranks = 2}), plain, 0), parallel = train(mesh(DataParallel{.ranks = 2}), plain, 0);
  CHECK(difference(local, parallel) < 1e-2);
  CHECK(difference(local, parallel) > 0);
}

TEST_CASE("the_ledger_holds_what_a_policy_says_and_when") {
  const PlanData plan =
      plan_at_start<Text, TextRecipe>(mesh(Replicas<LocalWithState>{.ranks = 2, .every = 3}), {.global = items, .micro = 1, .sequence = 4});
  const Index bytes = plan.stages[0].parameter_elems * 8;
  for (Index update = 1; update <= 6; ++update) CHECK(totals_at(plan, 0, update).bytes == (update % 3 == 0 ? 2 * bytes : 0));
  CHECK(totals(plan, 0, GroupKind::data).calls == 2);
  const PlanData other =
      plan_at_start<Text, TextRecipe>(mesh(Replicas<LocalSgd>{.ranks = 2, .every = 3}), {.global = items, .micro = 1, .sequence = 4});
  CHECK(fingerprint(plan) == fingerprint(other));  // a policy that inherits another's name and version says that it is the same
}

TEST_CASE("a_policy_that_does_not_fit_is_refused") {
  using Images = Sequential<Input<1, 4, 4>, Conv2d<1, 2, Conv2dOptions{.kernel = 3}>, BatchNorm2d<2>, Flatten, Linear<8, 3>>;
  const auto id = [](const PlanData& plan) { return fault_text(plan).substr(0, 24); };
  const PlanData joins = plan_data<Images>(lower_strategy(mesh(Replicas<LocalSgd>{.ranks = 2})), {.global = 4, .micro = 1});
  CHECK(id(joins).starts_with("weft[batch_norm.sync]"));
  const PlanData never =
      plan_data<Text>(lower_strategy(mesh(Replicas<LocalSgd>{.ranks = 2, .every = 0})), {.global = 4, .micro = 1, .sequence = 4});
  CHECK(id(never).starts_with("weft[sync.every]"));
}
