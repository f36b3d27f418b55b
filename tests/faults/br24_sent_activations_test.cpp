// SPDX-License-Identifier: Apache-2.0
// BR-24, sent activations stay alive: on 4 stages with 1F1B at most 4, 3, 2, 1 micro-batches live, for 8 as for 64 of them; none after a
// step.
#include "faults/pipeline_cases.hpp"

using namespace weft;
using namespace weft::test;

namespace {

// How many micro-batches of a rank have gone forward through a probe and not backward; ranks are threads.
thread_local int live = 0, most = 0;

// y = x, and counts.
struct Probe {
  static constexpr const char* name = "probe";
  static constexpr int version = 1;
  static constexpr Features output(Features in) { return in; }
  static constexpr LayerFacts facts(Features, Index) { return {}; }
  template <class Context>
  static void forward(Context& context) {
    most = std::max(most, ++live);
    context.pass_value();
  }
  template <class Context>
  static void backward(Context& context) {
    --live;
    context.pass_gradient();
  }
};

// A unit a stage.
using Probed = Sequential<Input<4>, Repeat<4, Probe, Linear<4, 4>>>;

struct Counted {
  std::vector<int> peaks = std::vector<int>(4, 0), left = std::vector<int>(4, 0);
  std::vector<Index> planned = std::vector<Index>(4, 0), allocated = std::vector<Index>(4, 0);  // micro-batches; bytes
};

template <class Schedule>
Counted counted(Index micros) {
  const PlanData plan = plan_at_start<Probed, DeepRecipe>(mesh(Pipeline<Schedule>{.stages = 4}), {.global = micros, .micro = 1});
  Counted out;
  launch(4, [&](ThreadCommunicator& comm) {
    using TheEngine = EngineOf<Probed, SoftmaxCrossEntropy<>, double, Sgd, ThreadCommunicator>;
    TheEngine engine(plan, model_code<typename TheEngine::Kernels, double, Probed, SoftmaxCrossEntropy<>>(), comm, Sgd{.rate = 0.1},
                     {.poison = true});
    const auto step = [&] {
      engine.step(
          micros,
          [](auto& to) {
            to.leading = {1, 1, 0};
            for (int i = 0; i < 4; ++i) to.values()[i] = i;
            to.integer_targets()[0] = 1;
          },
          0.1);
    };
    step();
    live = most = 0;
    step();
    const std::size_t stage = std::size_t(engine.place().stage);
    out.peaks[stage] = most, out.left[stage] = live;
    out.planned[stage] = plan.chunks[stage].depth;
    out.allocated[stage] = engine.arenas().activations.bytes() + engine.arenas().messages.bytes();
  });
  return out;
}

}  // namespace

TEST_CASE("br24_1f1b_holds_as_many_micro_batches_as_there_are_stages_to_come") {
  const Counted few = counted<schedule::OneForwardOneBackward>(8), many = counted<schedule::OneForwardOneBackward>(64);
  CHECK(few.peaks == std::vector<int>{4, 3, 2, 1});
  CHECK(many.peaks == few.peaks);
  CHECK(few.planned == std::vector<Index>{4, 3, 2, 1});
  CHECK(many.planned == few.planned);
  CHECK(many.allocated == few.allocated);
  CHECK(few.left == std::vector<int>{0, 0, 0, 0});
  CHECK(many.left == few.left);
}

// The counter sees what it is there for.
TEST_CASE("br24_gpipe_holds_all") {
  const Counted few = counted<schedule::GPipe>(8);
  CHECK(few.peaks == std::vector<int>{8, 8, 8, 8});
  CHECK(few.left == std::vector<int>{0, 0, 0, 0});
  CHECK(counted<schedule::GPipe>(16).allocated[0] > few.allocated[0]);
}
