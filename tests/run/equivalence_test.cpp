// SPDX-License-Identifier: Apache-2.0
// The same training by any number of ranks and micro-batches, with ties, dropout, clipping, ignored targets, batch norm in residual blocks;
// and the fast kernels against the plain ones in whole models.
#include <weft/op/reference_kernels.hpp>

#include "run/engine_cases.hpp"

using namespace weft;
using namespace weft::test;

namespace {

using Text = Gpt<GptOptions{.vocabulary = 13, .sequence = 5, .width = 8, .heads = 2, .layers = 2, .dropout = 0.2}>;
using Block = Residual<Conv2d<4, 4, Conv2dOptions{.kernel = 3, .padding = 1, .bias = false}>, BatchNorm2d<4>, Relu,
                       Conv2d<4, 4, Conv2dOptions{.kernel = 1}>, BatchNorm2d<4>>;
using Images = Sequential<Input<1, 6, 6>, Conv2d<1, 4, Conv2dOptions{.kernel = 3, .padding = 1, .bias = false}>, BatchNorm2d<4>, Relu,
                          MaxPool2d<>, Repeat<2, Block, Relu>, Flatten, Dropout<0.2>, Linear<36, 5>>;

struct Run {
  std::vector<double> losses, norms, parameters, buffers;
};

// Three steps over the same 24 items, cut in one way. The last step leaves out what `short_by` says.
template <class Model, class Executor, class Real>
Run train(Index ranks, Index micro, Index sequence) {
  constexpr Index items = 24;
  Run run;
  const PlanData plan = plan_at_start<Model, Recipe<typename PrecisionOf<Real>::type, SoftmaxCrossEntropy<>, AdamW>>(
      mesh(DataParallel{.ranks = ranks, .bucket_bytes = 500}), Batch{.global = items, .micro = micro, .sequence = sequence});
  launch(int(ranks), [&](ThreadCommunicator& comm) {
    using TheEngine = Engine<Executor, Real, ThreadCommunicator, AdamW>;
    TheEngine engine(plan, model_code<typename TheEngine::Kernels, Real, Model, SoftmaxCrossEntropy<>>(), comm, AdamW{.rate = 0.01},
                     {.clip_norm = 0.5, .poison = true});
    const Index per_rank = items / ranks;
    const GraphData& graph = engine.plan().graph;
    for (int step = 0; step < 3; ++step) {
      const StepResult result = engine.step(
          per_rank / micro,
          [&](auto& to) {
            to.leading = {micro, sequence, 0};
            to.first_item = comm.rank() * per_rank + to.number * micro;
            const Index first = to.first_item * sequence, rows = micro * sequence, width = graph.input.elems();
            for (Index i = 0; i < rows * width; ++i) {
              if (graph.input.element == Element::token)
                to.tokens()[i] = std::int32_t((first + i) * 7 % 13);
              else
                to.values()[i] = Real(std::sin(0.3 * double(first * width + i)));
            }
            for (Index i = 0; i < rows; ++i)
              to.integer_targets()[i] = (first + i) % 7 == 3 ? -100 : std::int32_t((first + i) * 3 % graph.output.elems());
          },
          0.01);
      if (comm.rank() == 0) run.losses.push_back(result.loss), run.norms.push_back(result.gradient_norm);
    }
    if (comm.rank() != 0) return;
    run.parameters.assign(engine.parameters(), engine.parameters() + graph.parameter_elems);
    run.buffers.assign(engine.buffers(), engine.buffers() + graph.buffer_elems);
  });
  return run;
}

void compare(const std::vector<double>& a, const std::vector<double>& b, double tolerance, const std::string& what) {
  REQUIRE(a.size() == b.size());
  double largest = 1e-300, worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(b[i])), worst = std::max(worst, std::abs(a[i] - b[i]));
  CHECK_MESSAGE(worst <= tolerance * largest, what << ": " << worst << " of " << largest);
}
void compare(const Run& a, const Run& b, double tolerance, const std::string& what) {
  compare(a.losses, b.losses, tolerance, what + ", losses");
  compare(a.norms, b.norms, tolerance, what + ", norms");
  compare(a.parameters, b.parameters, tolerance, what + ", parameters");
  compare(a.buffers, b.buffers, tolerance, what + ", buffers");
}

template <class Model>
void compare_all(Index sequence) {
  const Run one = train<Model, CpuExecutor, double>(1, 24, sequence);
  CHECK(one.losses[2] < one.losses[0]);
  for (Index ranks : {1, 2, 3, 4, 8})
    for (Index micro : {1, 3, 6}) {
      if (24 % (ranks * micro) != 0) continue;
      compare(train<Model, CpuExecutor, double>(ranks, micro, sequence), one, 1e-10,
              std::to_string(ranks) + " ranks, micro " + std::to_string(micro));
    }
  compare(train<Model, Reference, double>(2, 6, sequence), one, 1e-10, "plain kernels");
}

}  // namespace

TEST_CASE("training_of_text_does_not_depend_on_ranks_and_micro_batches") { compare_all<Text>(5); }
TEST_CASE("training_of_images_does_not_depend_on_ranks_and_micro_batches") { compare_all<Images>(1); }
