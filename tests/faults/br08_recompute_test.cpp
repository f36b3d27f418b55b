// SPDX-License-Identifier: Apache-2.0
// BR-08, recompute draws a new dropout mask: gradients are the same bits whether activations are kept or made again, on every rank, also
// with tensor groups and pipelines; and the mask of the gradient is the mask of the loss.
#include "layer/split_cases.hpp"

using namespace weft;
using namespace weft::test;

namespace {

using Text = Gpt<GptOptions{.vocabulary = 13, .sequence = 6, .width = 8, .heads = 2, .layers = 4, .dropout = 0.3}>;
constexpr SplitCase how{.items = 8, .micro = 2, .sequence = 6, .steps = 2};

// axes: of a mesh, before what says how activations are kept.
template <Index tensor, bool sequence, class... Axes>
void compare_recompute(const std::string& what, const Axes&... axes) {
  const SplitRun kept = train_split<Text, tensor, sequence>(mesh(axes..., Activations{}), how);
  CHECK(kept.differing == 0);
  for (Recompute recompute : {Recompute::selective, Recompute::full}) {
    const auto strategy = mesh(axes..., Activations{.recompute = recompute});
    const PlanData plan = plan_data<Text, Recipe<Fp64>>(lower_strategy(strategy), {.global = 8, .micro = 2, .sequence = 6});
    CHECK(plan.recomputed_flops_per_row() > 0);
    const SplitRun again = train_split<Text, tensor, sequence>(strategy, how);
    const std::string cell = what + ", recompute " + std::to_string(int(recompute));
    CHECK_MESSAGE(again.losses == kept.losses, cell);
    CHECK_MESSAGE(again.norms == kept.norms, cell);
    CHECK_MESSAGE(again.tensors == kept.tensors, cell);
    CHECK_MESSAGE(again.differing == 0, cell);
  }
}

// y = w ∘ x: the loss is linear in every w.
template <Index C>
struct Weights {
  static constexpr const char* name = "weights";
  static constexpr int version = 1;
  static constexpr Features output(Features in) { return in == Features{C} ? in : Features{}; }
  static constexpr LayerFacts facts(Features, Index) {
    LayerFacts facts;
    facts.parameters.push(parameter("w", ParameterKind::weight, {InitialValue::Kind::normal, 1}, C));
    facts.needs_input = true;
    return facts;
  }
  template <class Context>
  static void forward(Context& context) {
    for (Index i = 0; i < context.input_elems(); ++i) context.output()[i] = context.parameter(0)[i % C] * context.input()[i];
  }
  template <class Context>
  static void backward(Context& context) {
    for (Index i = 0; i < context.input_elems(); ++i) {
      context.gradient(0)[i % C] += context.output_gradient()[i] * context.input()[i];
      if (context.input_gradient()) context.input_gradient()[i] = context.output_gradient()[i] * context.parameter(0)[i % C];
    }
  }
};

}  // namespace

TEST_CASE("br08_gradients_are_the_same_bits_with_and_without_recompute") {
  compare_recompute<1, false>("one rank", DataParallel{});
  compare_recompute<1, false>("two data ranks", DataParallel{.ranks = 2});
  compare_recompute<1, false>("two stages", Pipeline<>{.stages = 2});
  compare_recompute<2, false>("two tensor ranks", TensorParallel{.ranks = 2});
}
TEST_CASE("br08_gradients_are_the_same_bits_in_pipelines_of_tensor_groups") {
  compare_recompute<2, true>("two tensor ranks, sequence", TensorParallel{.ranks = 2, .sequence = true});
  compare_recompute<2, true>("two stages of two tensor ranks", Pipeline<>{.stages = 2}, TensorParallel{.ranks = 2, .sequence = true});
  compare_recompute<2, true>("two sharded data ranks of two tensor ranks", DataParallel{.ranks = 2, .shard = Shard::parameters},
                             TensorParallel{.ranks = 2, .sequence = true});
}

TEST_CASE("br08_the_mask_of_the_gradient_is_the_mask_of_the_loss") {
  using Model = Sequential<Input<64>, Repeat<2, Weights<64>, Dropout<0.5>>>;
  for (Recompute recompute : {Recompute::none, Recompute::full}) {
    const PlanData plan = plan_at_start<Model, Recipe<Fp64, SumLoss, Sgd>>(mesh(DataParallel{}, Activations{.recompute = recompute}),
                                                                           {.global = 32, .micro = 8});
    launch(1, [&](ThreadCommunicator& comm) {
      using TheEngine = EngineOf<Model, SumLoss, double, Sgd, ThreadCommunicator>;
      TheEngine engine(plan, model_code<typename TheEngine::Kernels, double, Model, SumLoss>(), comm, Sgd{.rate = 0.1},
                       {.seed = 9, .poison = true});
      for (int step = 0; step < 3; ++step) {
        const StepResult result = engine.step(
            4,
            [&](auto& to) {
              to.leading = {8, 1, 0}, to.first_item = to.number * 8;
              for (Index i = 0; i < 8 * 64; ++i) to.values()[i] = std::sin(double(step * 10000 + to.first_item * 64 + i));
              for (Index i = 0; i < 8; ++i) to.integer_targets()[i] = 0;
            },
            0);
        CHECK(std::abs(result.loss) > 1e-3);
        engine.for_each_parameter([&](const std::string& path, const ParameterFacts& facts, double* w, double* gradient) {
          double sum = 0;
          for (Index i = 0; i < facts.elems(); ++i) sum += w[i] * gradient[i] * engine.gradient_scale();
          CHECK_MESSAGE(std::abs(sum - result.loss) <= 1e-12 * std::abs(result.loss), path << " " << sum << " " << result.loss);
        });
      }
    });
  }
}
