// SPDX-License-Identifier: Apache-2.0
// BR-11, layers vanish when they do not divide by the stages: 30 layers that each add 1, on 1 to 8 stages with 1 and 2 chunks.
#include "layer/split_cases.hpp"

using namespace weft;
using namespace weft::test;

namespace {

// y = x + 1.
struct AddOne : ElementwiseLayer {
  static constexpr const char* name = "add_one";
  static constexpr int version = 1;
  static constexpr LayerFacts facts(Features, Index) {
    LayerFacts facts;
    facts.in_place = true;
    return facts;
  }
  template <class Context>
  static void forward(Context& context) {
    for (Index i = 0; i < context.input_elems(); ++i) context.output()[i] = context.input()[i] + 1;
  }
  template <class Context>
  static void backward(Context& context) {
    context.pass_gradient();
  }
};

template <Index layers>
using Adds = Sequential<Input<1>, Repeat<layers, AddOne>>;

// The loss of a step over rows of zeros: what comes out of the model.
template <class MeshType>
double output_of(const MeshType& strategy, Index micros) {
  const PlanData plan = plan_at_start<Adds<30>, Recipe<Fp64, SumLoss, Sgd>>(strategy, {.global = micros, .micro = 1});
  double loss = 0;
  launch(int(plan.strategy.ranks), [&](ThreadCommunicator& comm) {
    using TheEngine = EngineOf<Adds<30>, SumLoss, double, Sgd, ThreadCommunicator>;
    TheEngine engine(plan, model_code<typename TheEngine::Kernels, double, Adds<30>, SumLoss>(), comm, Sgd{.rate = 0.1}, {.poison = true});
    const StepResult result = engine.step(micros, give(0), 0);
    if (comm.rank() == 0) loss = result.loss;
  });
  return loss;
}

template <class MeshType>
void check_partition(const MeshType& strategy, Index micros, Index chunks) {
  const PlanData plan = plan_data<Adds<30>, Recipe<Fp64, SumLoss>>(lower_strategy(strategy), {.global = micros, .micro = 1});
  REQUIRE(plan.fault.rule == PlanRule::none);
  REQUIRE(Index(plan.chunks.size()) == chunks);
  Index next = 0, smallest = 30, largest = 0;
  for (const ChunkData& chunk : plan.chunks) {
    CHECK(chunk.first_unit == next);
    next = chunk.end_unit;
    smallest = std::min(smallest, chunk.end_unit - chunk.first_unit), largest = std::max(largest, chunk.end_unit - chunk.first_unit);
  }
  CHECK(next == 30);
  CHECK(largest - smallest <= 1);
}

}  // namespace

TEST_CASE("br11_all_layers_are_there_on_any_number_of_stages_and_chunks") {
  for (Index stages = 1; stages <= 8; ++stages) {
    const auto one = mesh(Pipeline<>{.stages = stages});
    check_partition(one, 8, stages);
    CHECK(output_of(one, 8) == 30);
    if (stages == 1) continue;  // chunks are of a pipeline
    const auto two = mesh(Pipeline<schedule::Interleaved>{.stages = stages, .chunks = 2});
    check_partition(two, 2 * stages, 2 * stages);
    CHECK(output_of(two, 2 * stages) == 30);
  }
}

TEST_CASE("br11_fewer_layers_than_stages_is_an_error_that_names_both") {
  const auto refusal = [](const auto& strategy) {
    return fault_text(plan_data<Adds<3>, Recipe<Fp64, SumLoss>>(lower_strategy(strategy), {.global = 8, .micro = 1}));
  };
  const std::string text = refusal(mesh(Pipeline<>{.stages = 4}));
  CHECK(text.find("weft[pipeline.stages]") == 0);
  CHECK(text.find("stages 4") != std::string::npos);
  CHECK(text.find("units 3") != std::string::npos);
  CHECK(refusal(mesh(Pipeline<>{.stages = 3})).empty());
  CHECK(refusal(mesh(Pipeline<schedule::Interleaved>{.stages = 2, .chunks = 2})).find("weft[pipeline.stages]") == 0);
}
