// SPDX-License-Identifier: Apache-2.0
// Faults that people meet around the divisor of a gradient: accumulation, exchange, norms, schedules, ranks without data.
#include "run/engine_cases.hpp"

using namespace weft;
using namespace weft::test;

namespace {

struct WeightedLoss {  // 3 a + 4 b
  static constexpr const char* name = "weighted";
  static constexpr Features target(Features) { return token_features; }
  static constexpr Index counts_per_row(Features) { return 1; }
  template <class Context>
  static kernel::LossSum run(Context& context) {
    const auto* y = context.output_value();
    auto* d = context.output_gradient();
    double sum = 0;
    for (Index r = 0; r < context.rows(); ++r) {
      sum += 3 * y[2 * r] + 4 * y[2 * r + 1];
      if (d) d[2 * r] = 3 * context.scale(), d[2 * r + 1] = 4 * context.scale();
    }
    return {sum, context.rows()};
  }
};

// Steps of one weight from 0 by SGD with rate 1. micros[step][rank] lists the micro-gradients. Returns the weight after each step on every
// rank.
struct Trace {
  std::vector<double> weight, norm, loss;
  std::vector<char> applied;
};

Trace train(Index ranks, Index capacity, const std::vector<std::vector<std::vector<double>>>& micros, EngineOptions options = {}) {
  Trace trace;
  std::mutex mutex;
  with_engines<OneWeight, SumLoss, double>({.ranks = ranks}, {.global = ranks * capacity, .micro = 1}, Sgd{.rate = 1}, options,
                                           [&](auto& engine) {
                                             engine.parameters()[0] = 0;
                                             for (const auto& step : micros) {
                                               const auto& own = step[std::size_t(engine.communicator().rank())];
                                               Index at = 0;
                                               const StepResult result = engine.step(
                                                   Index(own.size()), [&](auto& micro) { give(own[std::size_t(at++)])(micro); }, 1.0);
                                               const std::lock_guard lock(mutex);
                                               if (engine.communicator().rank() == 0) {
                                                 trace.weight.push_back(engine.parameters()[0]), trace.norm.push_back(result.gradient_norm);
                                                 trace.loss.push_back(result.loss), trace.applied.push_back(result.applied);
                                               }
                                             }
                                             const double own = engine.parameters()[0];
                                             double all[16];
                                             engine.communicator().all_gather(all, &own, 1);
                                             for (Index r = 0; r < ranks; ++r) CHECK(all[r] == own);  // replicas are the same bits
                                           });
  return trace;
}

}  // namespace

// BR-01: the last, short window divides by what it has, and nothing is carried on.
TEST_CASE("accumulation_short_window_divides_by_its_own_count") {
  const Trace trace = train(1, 4, {{{1, 2, 3, 4}}, {{5, 6, 7}}});
  CHECK(trace.weight[0] == -2.5);
  CHECK(trace.weight[1] == -8.5);
  CHECK(train(1, 4, {{{1, 2, 3}}}).weight[0] == -2.0);
}

// BR-02: the gradient at the update is the full sum over ranks and micro-batches; the exchange cannot be attached to another micro-batch.
TEST_CASE("exchange_covers_all_micro_batches") {
  const Trace trace = train(2, 2, {{{1, 2}, {3, 8}}});
  CHECK(trace.weight[0] == -3.5);  // 14 / 4
  CHECK(trace.norm[0] == 3.5);
}

// BR-03: one owner of the divisor, however the global batch is cut.
TEST_CASE("gradient_does_not_depend_on_how_the_batch_is_cut") {
  for (const auto& [ranks, micros] : {std::pair<int, int>{1, 16}, {2, 8}, {4, 4}, {8, 2}, {16, 1}}) {
    std::vector<std::vector<double>> step;
    for (int r = 0; r < ranks; ++r) {
      step.emplace_back();
      for (int m = 0; m < micros; ++m) step.back().push_back(r * micros + m + 1);
    }
    const Trace trace = train(ranks, micros, {step});
    CHECK(trace.weight[0] == -8.5);
    CHECK(trace.norm[0] == 8.5);
  }
}

// Load balancing: ranks with unequal shares of the batch.
TEST_CASE("gradient_is_exact_with_unequal_shares") {
  const Trace trace = train(3, 4, {{{1, 2, 3, 4, 5, 6}, {7}, {8, 9, 10}}});
  CHECK(trace.weight[0] == -5.5);
}

// BR-14: a single rank honours accumulation like any number.
TEST_CASE("samples_per_update_do_not_depend_on_the_world") {
  for (Index delay : {1, 4})
    for (Index ranks : {1, 2}) {
      Index consumed = 0;
      std::mutex mutex;
      with_engines<OneWeight, SumLoss, double>({.ranks = ranks}, {.global = ranks * delay, .micro = 1}, Sgd{.rate = 1}, {},
                                               [&](auto& engine) {
                                                 for (int update = 0; update < 10; ++update)
                                                   engine.step(
                                                       delay,
                                                       [&](auto& micro) {
                                                         give(1)(micro);
                                                         const std::lock_guard lock(mutex);
                                                         ++consumed;
                                                       },
                                                       1.0);
                                                 CHECK(engine.num_updates() == 10);
                                               });
      CHECK(consumed == 10 * delay * ranks);
    }
}

// BR-16: ranks with different numbers of steps; one that has run out is not in the divisor, and both end.
TEST_CASE("rank_without_data_is_not_in_the_divisor") {
  Trace trace;
  with_engines<OneWeight, SumLoss, double>({.ranks = 2}, {.global = 2, .micro = 1}, Sgd{.rate = 1}, {}, [&](auto& engine) {
    engine.parameters()[0] = 0;
    const int rank = engine.communicator().rank(), own_steps = rank == 0 ? 3 : 5;
    double before = 0;
    for (int step = 0;; ++step) {
      const bool has = step < own_steps;
      const StepResult result = engine.step(has ? 1 : 0, give(rank == 0 ? 2 : 6), 1.0, step + 1 >= own_steps);
      if (rank == 0) trace.weight.push_back(engine.parameters()[0] - before);
      before = engine.parameters()[0];
      if (result.num_done == 2) break;
    }
  });
  CHECK(trace.weight == std::vector<double>{-4, -4, -4, -6, -6});
}

TEST_CASE("step_without_any_targets_applies_nothing_and_does_not_tick") {
  with_engines<OneWeight, SumLoss, double>({.ranks = 2}, {.global = 2, .micro = 1}, AdamW{.rate = 1}, {}, [&](auto& engine) {
    const double before = engine.parameters()[0];
    const StepResult result = engine.step(0, give(1), 1.0);
    CHECK(!result.applied);
    CHECK(result.count == 0);
    CHECK(engine.num_updates() == 0);
    CHECK(engine.parameters()[0] == before);
  });
}

// BR-04: the norm adds squares over distinct parameters, of the mean loss, before clipping; a clipped update has the limit's length.
TEST_CASE("norm_is_of_the_mean_gradient_before_clipping") {
  using TwoWeights = Sequential<Concat<Linear<1, 1, Bias::no>, Linear<1, 1, Bias::no>>>;
  for (Index ranks : {1, 2}) {
    with_engines<TwoWeights, WeightedLoss, double>({.ranks = ranks}, {.global = ranks, .micro = 1}, Sgd{.rate = 1}, {.clip_norm = 1},
                                                   [&](auto& engine) {
                                                     std::fill_n(engine.parameters(), engine.plan().graph.parameter_elems, 0.0);
                                                     const StepResult result = engine.step(1, give(1), 1.0);
                                                     CHECK(result.gradient_norm == doctest::Approx(5).epsilon(1e-12));
                                                     double squares = 0;
                                                     for (Index e = 0; e < engine.plan().graph.parameter_elems; ++e)
                                                       squares += engine.parameters()[e] * engine.parameters()[e];
                                                     CHECK(squares == doctest::Approx(1).epsilon(1e-5));
                                                   });
  }
}

// BR-05: a schedule ticks once per applied update, at any world size and accumulation; a skipped one leaves counter and rate.
TEST_CASE("schedule_ticks_once_per_applied_update") {
  const StepRate schedule{.every = 5, .factor = 0.1};
  for (Index ranks : {1, 2, 4})
    for (Index micros : {1, 4})
      with_engines<OneWeight, SumLoss, double>(
          {.ranks = ranks}, {.global = ranks * micros, .micro = 1}, Sgd{.rate = 1}, {}, [&](auto& engine) {
            const auto rate = [&] { return engine.optimizer().rate * schedule.factor_at(engine.num_updates()); };
            for (int update = 0; update < 10; ++update) engine.step(micros, give(1), rate());
            CHECK(rate() == doctest::Approx(0.01));
            const StepResult overflow = engine.step(micros, give(std::numeric_limits<double>::infinity()), rate());
            CHECK(!overflow.applied);
            CHECK(!overflow.finite);
            CHECK(engine.num_updates() == 10);
            CHECK(rate() == doctest::Approx(0.01));
          });
}

// BR-22: parameters without elements take part in everything.
TEST_CASE("layer_without_parameters_and_more_ranks_than_elements") {
  using Model = Sequential<Linear<1, 1, Bias::no>, Relu>;
  with_engines<Model, SumLoss, double>({.ranks = 5}, {.global = 5, .micro = 1}, AdamW{.rate = 0.1}, {.clip_norm = 1}, [&](auto& engine) {
    engine.parameters()[0] = 1;
    const StepResult result = engine.step(1, give(2), 0.1);
    CHECK(result.applied);
    CHECK(result.gradient_norm == 2);
  });
}

TEST_CASE("engine_refuses_what_does_not_fit_its_plan") {
  const PlanData plan =
      plan_at_start<OneWeight, Recipe<Fp64, SumLoss, Sgd>>(mesh(DataParallel{.ranks = 2}), Batch{.global = 2, .micro = 1});
  using Alone = EngineOf<OneWeight, SumLoss, double, Sgd, SelfCommunicator>;
  const auto code = model_code<typename Alone::Kernels, double, OneWeight, SumLoss>();
  CHECK_THROWS_WITH_AS(Alone(plan, code, SelfCommunicator{}, Sgd{}), doctest::Contains("weft[engine.ranks]"), Error);
  const PlanData adam = plan_at_start<OneWeight, Recipe<Fp64, SumLoss, AdamW>>(mesh(), Batch{});
  CHECK_THROWS_WITH_AS(Alone(adam, code, SelfCommunicator{}, Sgd{}), doctest::Contains("weft[engine.optimizer]"), Error);
  const PlanData single = plan_at_start<OneWeight, Recipe<Fp32, SumLoss, Sgd>>(mesh(), Batch{});
  CHECK_THROWS_WITH_AS(Alone(single, code, SelfCommunicator{}, Sgd{}), doctest::Contains("weft[engine.type]"), Error);
  const PlanData fits = plan_at_start<OneWeight, Recipe<Fp64, SumLoss, Sgd>>(mesh(), Batch{});
  Alone engine(fits, code, SelfCommunicator{}, Sgd{});
  CHECK_THROWS_WITH_AS(engine.step(
                           1,
                           [](auto& micro) {
                             micro.leading = {2, 1, 0};
                           },
                           1.0),
                       doctest::Contains("weft[engine.capacity]"), Error);
}
