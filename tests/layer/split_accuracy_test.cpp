// SPDX-License-Identifier: Apache-2.0
// Evaluation where the ranks of a tensor group have slices of the classes: loss and accuracy are one rank's.
#include "layer/split_cases.hpp"

#include <weft/run/trainer.hpp>

using namespace weft;
using namespace weft::test;

namespace {

using Model = Sequential<Linear<4, 24>, Relu, Linear<24, 12>, Relu, Linear<12, 10>>;

// Six micro-batches of four rows, dealt out to the data ranks.
struct SomeRows {
  Index rank = 0, ranks = 1, next = 0;
  Index begin_step() { return 1; }
  bool done() const { return next * ranks + rank >= 6; }
  template <class Micro>
  void fill(Micro& to) {
    to.leading = {4, 1, 0};
    to.first_item = (next++ * ranks + rank) * 4;
    for (Index i = 0; i < 16; ++i) to.values()[i] = std::sin(double(to.first_item * 4 + i));
    for (Index i = 0; i < 4; ++i) to.integer_targets()[i] = std::int32_t((to.first_item + i) * 3 % 10);
  }
};

struct Judgement {
  double loss = 0, accuracy = 0;
};

template <Index tensor>
Judgement judge(Index data) {
  Judgement out;
  using TheRecipe = Recipe<Fp64, SoftmaxCrossEntropy<>, Sgd>;
  const PlanData plan =
      plan_at_start<Model, TheRecipe>(mesh(DataParallel{.ranks = data}, TensorParallel{.ranks = tensor}), {.global = 24, .micro = 4});
  launch(int(data * tensor), [&](ThreadCommunicator& comm) {
    auto trainer = make_trainer<Model, TheRecipe, CpuExecutor, tensor>(plan, comm, Sgd{.rate = 2.0});
    SomeRows rows{trainer.engine().place().data, data};
    for (int step = 0; step < 30; ++step) {
      rows.next = 0;
      trainer.engine().step(
          6 / data, [&](auto& to) { rows.fill(to); }, 2.0);
    }
    const double loss = trainer.evaluate(SomeRows{rows.rank, data}), accuracy = trainer.accuracy(SomeRows{rows.rank, data});
    if (comm.rank() == int(data * tensor) - 1) out = {loss, accuracy};
  });
  return out;
}

}  // namespace

TEST_CASE("accuracy_over_divided_classes_is_that_of_one_rank") {
  const Judgement one = judge<1>(1);
  CHECK(one.accuracy > 0.2);
  CHECK(one.accuracy < 1);
  for (const Judgement& found : {judge<2>(1), judge<3>(1), judge<4>(1), judge<2>(3)}) {
    CHECK(found.accuracy == doctest::Approx(one.accuracy).epsilon(1e-12));
    CHECK(std::abs(found.loss - one.loss) < 1e-10);
  }
}
