// SPDX-License-Identifier: Apache-2.0
// The sum of an input gradient over the tensor group goes on while the layer computes its parameters' gradients; to the same bits.
#include "layer/split_cases.hpp"

using namespace weft;
using namespace weft::test;

namespace {

thread_local std::string events;  // of this rank

// Notes what is done over the group: r an all-reduce, s one that is started, w waiting for it.
struct NotingCommunicator : ThreadCommunicator {
  explicit NotingCommunicator(ThreadCommunicator inner) : ThreadCommunicator(std::move(inner)) {}
  NotingCommunicator split(int color, int key) { return NotingCommunicator(ThreadCommunicator::split(color, key)); }
  template <class T>
  void all_reduce(T* data, Index count, Reduction reduction, Index tag = 0) {
    events += 'r';
    ThreadCommunicator::all_reduce(data, count, reduction, tag);
  }
  template <class T>
  Request start_all_reduce(T* data, Index count, Reduction reduction, Index tag = 0) {
    events += 's';
    return ThreadCommunicator::start_all_reduce(data, count, reduction, tag);
  }
  void wait(Request& request) {
    events += 'w';
    ThreadCommunicator::wait(request);
  }
};

// A linear layer that notes the parts of its backward: I and W.
template <Index C, Index K>
struct NotingLinear : Linear<C, K> {
  template <SplitKind kind, Index ranks, Index in, Index out>
  using Part = NotingLinear<in, out>;
  template <class Context>
  static void backward(Context& context) {
    backward_weight(context), backward_input(context);
  }
  template <class Context>
  static void backward_input(Context& context) {
    events += 'I';
    Linear<C, K>::backward_input(context);
  }
  template <class Context>
  static void backward_weight(Context& context) {
    events += 'W';
    Linear<C, K>::backward_weight(context);
  }
};

using Model =
    Sequential<Linear<3, 8>, LayerNorm<8>, Residual<NotingLinear<8, 16>, Gelu, Linear<16, 8>>, LayerNorm<8>, Linear<8, 5, Bias::no>>;
struct Outcome {
  std::string events;
  std::vector<double> losses;
};

Outcome train(bool overlap) {
  Outcome outcome;
  const SplitCase how{.items = 4, .micro = 4, .steps = 3};
  const PlanData plan = plan_at_start<Model, Recipe<Fp64, MeanSquaredError, Sgd>>(
      mesh(DataParallel{.overlap = overlap}, TensorParallel{.ranks = 2}), {.global = how.items, .micro = how.micro});
  launch(2, [&](ThreadCommunicator& comm) {
    using TheEngine = Engine<CpuExecutor, double, NotingCommunicator, Sgd>;
    TheEngine engine(plan, model_code<typename TheEngine::Kernels, double, Model, MeanSquaredError, 2>(), NotingCommunicator(comm),
                     Sgd{.rate = 0.1}, {.poison = true});
    for (Index step = 0; step < how.steps; ++step) {
      events.clear();
      const StepResult result = engine.step(
          1,
          [&](auto& to) {
            to.leading = {how.micro, 1, 0};
            for (Index i = 0; i < how.micro * 3; ++i) to.values()[i] = std::sin(double(i));
            for (Index i = 0; i < how.micro * 5; ++i) to.real_targets()[i] = std::cos(double(i));
          },
          0.1);
      if (comm.rank() == 0) outcome.losses.push_back(result.loss), outcome.events = events;
    }
  });
  return outcome;
}

}  // namespace

TEST_CASE("the_weight_gradient_is_computed_while_the_input_gradient_is_summed") {
  const Outcome overlapping = train(true), waiting = train(false);
  CHECK(waiting.events == "rWIrr");       // the sum of outputs; backward, and the sum of input gradients; control
  CHECK(overlapping.events == "rIsWwr");  // the same calls in the same order, with the product in between
  CHECK(overlapping.losses == waiting.losses);
  CHECK(overlapping.losses[2] < overlapping.losses[0]);
}
