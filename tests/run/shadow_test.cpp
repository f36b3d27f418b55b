// SPDX-License-Identifier: Apache-2.0
// The watch over a step's memory sees what it is for: a tensor that is needed longer than the plan says, and a plan that holds too little.
#include <weft/run/shadow_memory.hpp>

#include "run/engine_cases.hpp"

using namespace weft;
using namespace weft::test;

namespace {

using Text = Gpt<GptOptions{.vocabulary = 13, .sequence = 4, .width = 8, .heads = 2, .layers = 4, .dropout = 0.2}>;
using TextRecipe = Recipe<Fp64, SoftmaxCrossEntropy<>, Sgd>;

const auto fill = [](auto& to) {
  to.leading = {1, 4, 0};
  for (int i = 0; i < 4; ++i) to.tokens()[i] = i, to.integer_targets()[i] = i + 1;
};

// One step of every rank, watched. prepare(engine, shadow) before it.
template <class Prepare>
void step_watched(const PlanData& plan, Prepare&& prepare) {
  launch(int(plan.strategy.ranks), [&](ThreadCommunicator& comm) {
    using TheEngine = Engine<CpuExecutor, double, ThreadCommunicator, Sgd>;
    TheEngine engine(plan, model_code<typename TheEngine::Kernels, double, Text, SoftmaxCrossEntropy<>>(), comm, Sgd{});
    ShadowMemory shadow(engine.arenas());
    engine.state().walker.set_shadow(&shadow);
    prepare(engine, shadow);
    engine.step(plan.micros, fill, 0.1);
  });
}

std::string id_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) { return error.id(); }
  return {};
}

// Reads a tensor once more after the last op of its unit's backward.
class ReadAgain : public ShadowMemory::Watcher {
 public:
  explicit ReadAgain(const TensorName& name) : name_(name) {}
  void after_op(ShadowMemory& shadow, Index unit, int op, bool backward, Index micro) override {
    if (unit == name_.unit && op == 0 && backward && micro == name_.micro) shadow.read_again(name_, "the test");
  }

 private:
  TensorName name_;
};

}  // namespace

TEST_CASE("a_lifetime_that_is_lengthened_on_purpose_is_seen") {
  const PlanData plan = plan_at_start<Text, TextRecipe>(mesh(), {.global = 2, .micro = 1, .sequence = 4});
  constexpr Index unit = 4;  // of the blocks
  const FrameSite& frame = plan.graph.frames[std::size_t(plan.units[unit].frame)];
  const FrameMemory& memory = plan.activations.frames[std::size_t(plan.units[unit].frame)];
  int kept = 0, seen = 0, tried = 0;
  for (int t = 1; t < frame.num_tensors; ++t) {
    const TensorName name{TensorKind::value, unit, t, 0};
    const bool is_kept = memory.values[std::size_t(t)].storage == Storage::slot;
    ++tried;
    ReadAgain again(name);
    const std::string id = id_of([&] { step_watched(plan, [&](auto&, ShadowMemory& shadow) { shadow.watcher = &again; }); });
    kept += is_kept && id.empty();
    seen += !is_kept && id == "shadow.read";
    CHECK_MESSAGE((is_kept ? id.empty() : true), "tensor " << t << " " << id);
  }
  CHECK(kept >= 5);
  CHECK(seen >= 2);  // all in the workspace but those that nothing happens to be written over
  CHECK(kept + seen >= tried - 2);
}

TEST_CASE("a_plan_that_holds_fewer_micro_batches_than_are_in_flight_is_seen") {
  PlanData plan = plan_at_start<Text, TextRecipe>(mesh(Pipeline<>{.stages = 2}), {.global = 6, .micro = 1, .sequence = 4});
  CHECK(id_of([&] { step_watched(plan, [](auto&, ShadowMemory&) {}); }).empty());
  PlanData shallow = plan;
  REQUIRE(shallow.chunks[0].depth == 2);
  shallow.chunks[0].depth = 1;
  CHECK(id_of([&] { step_watched(shallow, [](auto&, ShadowMemory&) {}); }) == "shadow.read");
  shallow = plan;
  REQUIRE(shallow.chunks[1].input_depth > 1);
  shallow.chunks[1].input_depth = 1;
  CHECK(id_of([&] { step_watched(shallow, [](auto&, ShadowMemory&) {}); }) == "shadow.read");
}

TEST_CASE("a_tensor_beyond_its_arena_is_seen") {
  const PlanData plan = plan_at_start<Text, TextRecipe>(mesh(), {.global = 2, .micro = 1, .sequence = 4});
  CHECK(id_of([&] {
          step_watched(plan, [](auto& engine, ShadowMemory& shadow) {
            const Buffer& workspace = engine.arenas().workspace;
            shadow.write({}, workspace.data() + workspace.bytes() - 64, 128);
          });
        }) == "shadow.bounds");
}
