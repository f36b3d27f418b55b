// SPDX-License-Identifier: Apache-2.0
// BR-10, parameters replicated inside a tensor group: a bias is added once, a shared parameter's gradient is the sum over what all ranks
// saw, copies stay equal, and there is a check that says so.
#include "layer/split_cases.hpp"

#include <weft/run/check_copies.hpp>

using namespace weft;
using namespace weft::test;

namespace {

// y = g · x with one g for all features, by rows.
template <Index C>
struct SharedScale {
  static constexpr const char* name = "shared_scale";
  static constexpr int version = 1;
  static constexpr Features output(Features in) { return in == Features{C} ? in : Features{}; }
  static constexpr LayerFacts facts(Features, Index) {
    LayerFacts facts;
    facts.parameters.push(parameter("g", ParameterKind::norm, {InitialValue::Kind::constant, 1}, 1));
    facts.needs_input = true;
    return facts;
  }
  static constexpr FixedVector<SplitRule, 4> splits(Features) {
    FixedVector<SplitRule, 4> ways;
    ways.push(split_rule(SplitKind::rows, 0));
    return ways;
  }
  template <class Context>
  static void forward(Context& context) {
    for (Index i = 0; i < context.input_elems(); ++i) context.output()[i] = context.parameter(0)[0] * context.input()[i];
  }
  template <class Context>
  static void backward(Context& context) {
    for (Index i = 0; i < context.input_elems(); ++i) {
      context.gradient(0)[0] += context.output_gradient()[i] * context.input()[i];
      if (context.input_gradient()) context.input_gradient()[i] = context.output_gradient()[i] * context.parameter(0)[0];
    }
  }
};

// Calls body(engine) on every rank of a tensor group.
template <class Model, class Loss, Index tensor, bool sequence, class Body>
void on_tensor_group(const Batch& batch, Body&& body) {
  const PlanData plan = plan_at_start<Model, Recipe<Fp64, Loss, Sgd>>(mesh(TensorParallel{.ranks = tensor, .sequence = sequence}), batch);
  launch(int(tensor), [&](ThreadCommunicator& comm) {
    using TheEngine = EngineOf<Model, Loss, double, Sgd, ThreadCommunicator>;
    TheEngine engine(plan, model_code<typename TheEngine::Kernels, double, Model, Loss, tensor, sequence>(), comm, Sgd{.rate = 0.1});
    body(engine);
  });
}

std::mutex mutex;  // doctest's checks from one rank at a time

template <Index tensor, bool sequence>
void add_bias_once() {
  using Model = Sequential<Named<"fan", Linear<1, 4>>, Named<"sum", Linear<4, 1>>>;
  on_tensor_group<Model, SumLoss, tensor, sequence>({.global = 1, .micro = 1}, [](auto& engine) {
    engine.initialise(1, [](std::string_view path, const ParameterFacts&) {
      return InitialValue{InitialValue::Kind::constant, path == "fan.bias" ? 0.0 : 1.0};
    });
    const double y = engine.predict(give(1))[0];
    const StepResult result = engine.step(1, give(1), 0);
    const std::lock_guard lock(mutex);
    CHECK(engine.plan().graph.leaves[1].split == (tensor > 1 ? SplitKind::inputs : SplitKind::none));
    CHECK(y == 5);
    CHECK(result.loss == 5);
  });
}

}  // namespace

TEST_CASE("br10_the_bias_of_a_linear_layer_divided_by_inputs_is_added_once") {
  add_bias_once<1, false>();
  add_bias_once<2, false>();
  add_bias_once<4, false>();
  add_bias_once<2, true>();
}

TEST_CASE("br10_a_shared_scale_gets_the_sum_of_what_all_ranks_saw") {
  using Model = Sequential<Input<1>, Relu, SharedScale<1>>;
  on_tensor_group<Model, SumLoss, 2, true>({.global = 4, .micro = 4}, [](auto& engine) {
    engine.step(
        1,
        [](auto& micro) {
          micro.leading = {4, 1, 0};
          for (int i = 0; i < 4; ++i) micro.values()[i] = i + 1, micro.integer_targets()[i] = 0;
        },
        0);
    const std::lock_guard lock(mutex);
    CHECK(engine.plan().graph.leaves[1].split == SplitKind::rows);
    CHECK(engine.gradients()[0] * engine.gradient_scale() * 4 == 10);  // of the sum; the engine's is of the mean over 4 rows
  });
}

TEST_CASE("br10_copies_stay_equal_and_the_check_names_one_that_does_not") {
  using Model = Sequential<Embedding<13, 16>, Named<"block", Residual<Named<"norm", LayerNorm<16>>, CausalAttention<16, 8, 2>>>,
                           Named<"last", LayerNorm<16>>, Linear<16, 13>>;
  const SplitCase how{.items = 8, .micro = 8, .sequence = 4};
  const auto spoil = [&](const std::string& wanted, int on_rank, Index element) {
    std::string text;
    on_tensor_group<Model, SoftmaxCrossEntropy<>, 4, true>({.global = 8, .micro = 8, .sequence = 4}, [&](auto& engine) {
      for (int step = 0; step < 3; ++step)
        engine.step(
            1, [&](auto& to) { fill_by_place(to, engine.plan().graph, how, 0); }, 0.1);
      check_copies(engine);
      engine.state().for_each_held([&](int p, Index repetition, const ParameterSite&, const auto& held) {
        if (path_of(engine.plan().graph, p, repetition) == wanted && engine.communicator().rank() == on_rank) held.data[element] += 1e-9;
      });
      try {
        check_copies(engine);
        const std::lock_guard lock(mutex);
        text += "equal;";
      } catch (const Error& error) {
        const std::lock_guard lock(mutex);
        text += text.empty() || text.find(error.what()) == text.npos ? std::string(error.what()) + ";" : "";
      }
    });
    return text;
  };
  const std::string norm = spoil("block.norm.gain", 3, 5);
  CHECK(norm.find("block.norm.gain, rank 3") != norm.npos);
  CHECK(norm.find("equal") == norm.npos);  // on all ranks
  // Keys of a head that ranks 2 and 3 share: rows 4 to 5 of their (8, 16) parts. Queries are each rank's own.
  const std::string key = spoil("block.qkv.weight", 3, 4 * 16);
  CHECK(key.find("block.qkv.weight, rank 3") != key.npos);
  CHECK(spoil("block.qkv.weight", 3, 0).find("copies.differ") == std::string::npos);
}
