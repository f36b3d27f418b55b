// SPDX-License-Identifier: Apache-2.0
// The parts of one's own that examples/README.md shows: optimizer, loss, rate schedule, data source. They are trained with and checked
// here; regions between marks such as [loss] stand in documents: check_documents.py compares them.
#include <doctest/doctest.h>

#include <weft/run/check_gradients.hpp>
#include <weft/run/check_strategy.hpp>
#include <weft/weft.hpp>

#include <bit>

namespace {

// [optimizer]
// Moves by the sign of the gradient. Source: Bernstein et al., arXiv 1802.04434.
struct SignSgd {
  static constexpr const char* name = "sign_sgd";
  static constexpr int version = 1;
  static constexpr weft::Index num_states = 0;  // numbers that are kept for every parameter

  double rate = 1e-3, decay = 0;

  bool decays(bool weight) const { return weight; }
  const char* fault() const { return rate >= 0 ? nullptr : "rate is not negative"; }

  template <class Isa, class Real>
  void update(weft::Index n, Real* parameters, const Real* gradients, Real* const*, double range_decay,
              const weft::UpdateStep& step) const {
    const Real kept = Real(1 - step.rate * range_decay), move = Real(step.rate);
    for (weft::Index i = 0; i < n; ++i) parameters[i] = kept * parameters[i] - move * Real((gradients[i] > 0) - (gradients[i] < 0));
  }
};
static_assert(weft::explain_optimizer<SignSgd>(), "if a part were missing, the error would say which");
// [optimizer]

// [schedule]
struct InverseRootRate {
  weft::Index warm_up = 100;
  double factor_at(weft::Index applied) const { return 1 / std::sqrt(1 + double(applied) / double(warm_up)); }
};
// [schedule]

// [loss]
// log cosh (prediction - target), summed: quadratic near the target, linear far from it.
struct LogCosh {
  static constexpr const char* name = "log_cosh";
  static constexpr weft::Features target(weft::Features output) {
    return output.element == weft::Element::real ? output : weft::Features{};
  }
  static constexpr weft::Index counts_per_row(weft::Features output) { return output.elems(); }

  template <class Context>
  static weft::kernel::LossSum run(Context& context) {
    const auto *prediction = context.output_value(), *target = context.real_targets();  // (rows, C)
    auto* gradient = context.output_gradient();  // (rows, C), null in evaluation; may be the prediction's memory
    const weft::Index elems = context.rows() * context.output_features();
    double loss = 0;
    for (weft::Index i = 0; i < elems; ++i) {
      const auto error = prediction[i] - target[i];
      const double size = std::abs(double(error));
      loss += size + std::log1p(std::exp(-2 * size)) - std::log(2.0);
      if (gradient) gradient[i] = context.scale() * std::tanh(error);
    }
    return {loss, elems};
  }
};
// [loss]

// [source]
// Item i: the eight bits of i as inputs, and as its class whether more than half of them are set.
struct Majority {
  using Input = float;

  weft::Index num_items() const { return 256; }
  weft::Index inputs_per_item() const { return 8; }
  weft::Index targets_per_item() const { return 1; }
  weft::Leading leading(weft::Index items) const { return {items, 1, 0}; }
  std::string name() const { return "majority"; }
  void read(std::uint64_t, weft::Index, std::span<const weft::Index> items, float* inputs, std::int32_t* targets) const {
    for (const weft::Index item : items) {
      for (int bit = 0; bit < 8; ++bit) *inputs++ = float(item >> bit & 1);
      *targets++ = std::popcount(std::uint64_t(item)) > 4;
    }
  }
};
static_assert(weft::data::ItemSource<Majority>, "a loader takes it");
// [source]

using Classifier = weft::Sequential<weft::Linear<8, 16>, weft::Relu, weft::Linear<16, 2>>;
using Recipe = weft::Recipe<weft::Fp32, weft::SoftmaxCrossEntropy<>, SignSgd>;
using Train = weft::Plan<Classifier, weft::mesh(weft::DataParallel{.ranks = 2}), weft::Batch{.global = 32, .micro = 16}, Recipe>;

}  // namespace

TEST_CASE("loss_of_the_tutorial_has_the_gradient_of_its_value") {
  using Model = weft::Sequential<weft::Linear<3, 4>, weft::Silu, weft::Linear<4, 2>>;
  // [check]
  const weft::GradientCheck check = weft::check_gradients<Model, LogCosh>({.global = 5, .micro = 5}, [](auto& micro) {
    for (int i = 0; i < 5 * 3; ++i) micro.values()[i] = std::sin(i);
    for (int i = 0; i < 5 * 2; ++i) micro.real_targets()[i] = 3 * std::cos(i);
  });
  // [check]
  INFO(check.where);
  CHECK(check.num_checked > 0);
  CHECK(check.worst < 1e-6);
}

TEST_CASE("parts_of_the_tutorial_learn_a_majority") {
  double accuracy = 0;
  // [train]
  weft::launch(Train::num_ranks, [&](auto& rank) {
    auto trainer = weft::make_trainer<Train>(rank, SignSgd{.rate = 0.01}, InverseRootRate{});
    weft::data::Loader data(Majority{}, {.global_batch = 32, .micro_batch = 16, .rank = rank.rank(), .ranks = rank.size(), .seed = 7});
    for (int step = 0; step < 400; ++step) trainer.step(data);
    const double share = trainer.accuracy(weft::data::Loader(Majority{}, weft::data::evaluation_options(32, 16, rank.rank(), rank.size())));
    if (rank.rank() == 0) accuracy = share;
  });
  // [train]
  CHECK(accuracy > 0.95);
}

TEST_CASE("the_strategy_of_the_tutorial_trains_as_one_rank") {
  using Model = weft::Sequential<weft::Linear<4, 16>, weft::Gelu, weft::Linear<16, 16>, weft::Gelu, weft::Linear<16, 2>>;
  // [strategy]
  // Items depend on their place in the global batch, and on the step.
  const auto fill = [](auto& micro, weft::Index step) {
    for (weft::Index r = 0; r < micro.leading.batch; ++r) {
      const double place = double(step * 16 + micro.first_item + r);
      for (int i = 0; i < 4; ++i) micro.values()[r * 4 + i] = std::sin(place * 5 + i);
      for (int i = 0; i < 2; ++i) micro.real_targets()[r * 2 + i] = std::cos(place * 3 + i);
    }
  };
  const auto strategy = weft::mesh(weft::DataParallel{.ranks = 2, .shard = weft::Shard::parameters}, weft::Pipeline<>{.stages = 3},
                                   weft::TensorParallel{.ranks = 2});
  const weft::StrategyCheck check =
      weft::check_strategy<Model, weft::MeanSquaredError, 2>(strategy, weft::Batch{.global = 16, .micro = 2}, fill);
  if (!check.passes()) throw weft::Error("strategy.training", check.text());
  // [strategy]
  CHECK(check.num_ranks == 12);
}
