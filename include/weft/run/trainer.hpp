// SPDX-License-Identifier: Apache-2.0
// Trains a planned model: steps, exact evaluation, and the loop around them with progress, log and hooks.
#pragma once

#include <algorithm>
#include <thread>

#include "weft/exec/cpu/peak.hpp"
#include "weft/optim/rate_schedules.hpp"
#include "weft/plan/plan.hpp"
#include "weft/run/engine.hpp"
#include "weft/run/largest_class.hpp"
#include "weft/run/progress.hpp"

namespace weft {

// Where a trainer gets its data. Every rank has a loader of its own, which gives the rank's part of every global batch.
//   Index begin_step();            how many micro-batches this rank has in the next step (0: none); called once a step
//   void fill(MicroBatchInput&);   the next of them
//   bool done();                   whether nothing is left for this rank after the steps so far (false for ever, if epochs follow each
//   other)
template <class L, class Real>
concept Loader = requires(L& loader, MicroBatchInput<Real>& micro) {
  { loader.begin_step() } -> std::convertible_to<Index>;
  loader.fill(micro);
  { loader.done() } -> std::convertible_to<bool>;
};

struct TrainerOptions {
  std::uint64_t seed = 1;  // of initial weights and dropout
  double clip_norm = 0;    // of the global gradient; 0: none
  UnusedParameters unused = UnusedParameters::refuse;
};

struct FitOptions {
  Index steps = 0;           // at most; 0: until all ranks' loaders are done
  Index evaluate_every = 0;  // steps; 0: never
  std::string log{};         // CSV file of rank 0
  bool progress = true;      // of rank 0, on stderr
  const char* row_unit = "tokens";
  Index most_skipped = 100;  // steps in a row with a gradient that is not finite, before training gives up
};

struct FitResult {
  Index steps = 0, updates = 0;
  double loss = 0, validation_loss = -1, best_validation_loss = -1;
  double rows_per_second = 0, seconds = 0;
  double peak_fraction = 0;  // of the multiply-add peak of the ranks' cores
  bool stopped = false;      // by a hook
};

// What a hook gets. Hooks are members of one object, each optional, called on every rank in the same order:
//   void after_step(const StepInfo&)         void after_evaluation(const StepInfo&)
//   bool stop()                              asked before every step; one rank's yes stops all after that step
struct StepInfo {
  Index step = 0;
  StepResult result{};
  double validation_loss = -1;
};
struct NoHooks {};

template <class Executor, class RealType, class Communicator, Optimizer OptimizerRule, RateSchedule Schedule = ConstantRate>
class Trainer {
 public:
  using Real = RealType;
  using EngineType = Engine<Executor, Real, Communicator, OptimizerRule>;

  // See make_trainer for the usual way to get one.
  Trainer(PlanData plan, ModelCode<Real> code, Communicator communicator, OptimizerRule optimizer, Schedule schedule,
          TrainerOptions options)
      : engine_(std::move(plan), code, std::move(communicator), optimizer,
                {.seed = options.seed, .clip_norm = options.clip_norm, .unused = options.unused}),
        schedule_(schedule) {}

  EngineType& engine() { return engine_; }
  const PlanData& plan() const { return engine_.plan(); }

  // The rate of the next update: the schedule's factor ticks once per applied update, whatever happened in between.
  double rate() const { return engine_.optimizer().rate * schedule_.factor_at(engine_.num_updates()); }

  // One step over the next global batch. A rank whose loader is done takes part with nothing.
  template <class L>
  StepResult step(L& loader, bool stop = false) {
    const Index micros = loader.done() ? 0 : loader.begin_step();
    return engine_.step(
        micros, [&](MicroBatchInput<Real>& micro) { loader.fill(micro); }, rate(), loader.done(), stop);
  }

  // The mean loss over everything the ranks' loaders have, each item once, whatever the number of ranks. Collective.
  template <class L>
  double evaluate(L&& loader) {
    double sums[2] = {0, 0};
    for_each_micro_batch(loader, [&](auto&& fill) {
      const kernel::LossSum sum = engine_.evaluate(fill);
      sums[0] += sum.loss, sums[1] += double(sum.count);
    });
    add_up(sums, 2);
    return sums[1] > 0 ? sums[0] / sums[1] : 0;
  }

  // The share of rows, in everything the ranks' loaders have, whose largest output is the target. Collective.
  template <class L>
  double accuracy(L&& loader) {
    double sums[2] = {0, 0};
    for_each_micro_batch(loader, [&](auto&& fill) {
      Index rows = 0;
      const std::int32_t* targets = nullptr;
      const Real* output = engine_.predict([&](MicroBatchInput<Real>& micro) {
        fill(micro);
        rows = micro.leading.rows(), targets = micro.integer_targets();
      });
      if (!output) return;
      double right = 0;
      for_each_largest_class(engine_, output, rows, [&](Index r, Index found) { right += found == targets[r]; });
      if (engine_.place().tensor == 0) sums[0] += right, sums[1] += double(rows);
    });
    add_up(sums, 2);
    return sums[1] > 0 ? sums[0] / sums[1] : 0;
  }

  // Trains until `steps`, or until every loader is done, or until a hook stops it. validation() gives a fresh loader of the held-out data.
  // Errors: weft[fit.not_finite] after most_skipped steps without a finite gradient; those of log and loaders.
  template <class L, class Validation, class Hooks = NoHooks>
  FitResult fit(L& loader, Validation&& validation, const FitOptions& options, Hooks&& hooks = {}) {
    const bool speaks = engine_.communicator().rank() == 0;
    Progress progress(speaks && options.progress);
    CsvLog log(speaks ? options.log : std::string());
    const double peak = measure_peak_flops<typename EngineType::Kernels::I, Real>();
    const double cores = double(std::min(plan().strategy.ranks, std::max(Index(1), Index(std::thread::hardware_concurrency()))));
    FitResult fit;
    Stopwatch all;
    double training_seconds = 0, rows = 0;
    Index skipped = 0;
    for (bool more = true; more && (options.steps == 0 || fit.steps < options.steps);) {
      Stopwatch one;
      bool stop = false;
      if constexpr (requires { hooks.stop(); }) stop = hooks.stop();
      StepInfo info{fit.steps + 1, step(loader, stop), -1};
      const StepResult& result = info.result;
      training_seconds += one.seconds();
      ++fit.steps, fit.updates += result.applied;
      if (result.count > 0) fit.loss = result.loss;
      rows += result.count / double(plan().training.counts_per_row);
      fit.rows_per_second = rows / training_seconds;
      // Tensor ranks have their part of a row's flops each; ranks that share cores share peaks.
      fit.peak_fraction = fit.rows_per_second * plan().training_flops_per_row() * double(plan().strategy.tensor()) / (peak * cores);
      skipped = result.finite ? 0 : skipped + 1;
      if (skipped > options.most_skipped)
        throw Error("fit.not_finite", "the gradient is not finite any more; lower the rate, clip the norm, or check the data (step " +
                                          std::to_string(fit.steps) + ", " + std::to_string(skipped) + " steps in a row)");
      fit.stopped = result.stop;
      more = !result.stop && result.num_done < plan().strategy.ranks;
      if constexpr (requires { hooks.after_step(info); }) hooks.after_step(info);
      const bool last = !more || fit.steps == options.steps;
      if (options.evaluate_every > 0 && (fit.steps % options.evaluate_every == 0 || last)) {
        info.validation_loss = fit.validation_loss = evaluate(validation());
        if (fit.best_validation_loss < 0 || fit.validation_loss < fit.best_validation_loss) fit.best_validation_loss = fit.validation_loss;
        char text[160];
        std::snprintf(text, sizeof text, "step %6lld  loss %.4f  validation %.4f  %8.0f %s/s  %3.0f %% of peak  %s",
                      static_cast<long long>(fit.steps), fit.loss, fit.validation_loss, fit.rows_per_second, options.row_unit,
                      100 * fit.peak_fraction, duration_text(all.seconds()).c_str());
        progress.note(text);
        if constexpr (requires { hooks.after_evaluation(info); }) hooks.after_evaluation(info);
      }
      log.row(fit.steps, result.loss, info.validation_loss, result.rate, result.gradient_norm, result.applied, fit.rows_per_second,
              all.seconds());
      const double left = options.steps > 0 ? all.seconds() / double(fit.steps) * double(options.steps - fit.steps) : 0;
      progress.show({fit.steps, options.steps, fit.loss, fit.rows_per_second, fit.peak_fraction, left, options.row_unit});
    }
    progress.end();
    fit.seconds = all.seconds();
    return fit;
  }

 private:
  // run(fill) for all micro-batches of a loader; where parameters are gathered for each, ranks with fewer go through empty ones.
  template <class L, class Run>
  void for_each_micro_batch(L& loader, Run&& run) {
    const auto fill = [&](MicroBatchInput<Real>& micro) { loader.fill(micro); };
    const auto nothing = [](MicroBatchInput<Real>& micro) { micro.leading.batch = 0; };
    if (!plan().strategy.shards_parameters()) {  // ranks of one data rank have the same micro-batches
      while (!loader.done())
        for (Index left = loader.begin_step(); left > 0; --left) run(fill);
      return;
    }
    Index left = 0;
    while (true) {
      while (left == 0 && !loader.done()) left = loader.begin_step();
      double busy = left > 0;
      engine_.communicator().all_reduce(&busy, 1, Reduction::sum);
      if (busy == 0) return;
      if (left > 0)
        run(fill), --left;
      else
        run(nothing);
    }
  }

  void add_up(double* sums, Index count) {
    if (plan().strategy.ranks > 1) engine_.communicator().all_reduce(sums, count, Reduction::sum);
  }

  EngineType engine_;
  Schedule schedule_;
};

// Data from a function, for problems that make their own: give(step, rank, MicroBatchInput&) fills one micro-batch. Never done.
template <class Give>
class GeneratedLoader {
 public:
  GeneratedLoader(Index micros, int rank, Give give) : micros_(micros), rank_(rank), give_(std::move(give)) {}

  Index begin_step() { return ++step_, micros_; }
  template <class Real>
  void fill(MicroBatchInput<Real>& micro) {
    give_(step_ - 1, rank_, micro);
  }
  bool done() const { return false; }

 private:
  Index micros_, step_ = 0;
  int rank_;
  Give give_;
};

// A trainer of Model on this rank: make_trainer<Model, TheRecipe, Executor>(plan, communicator, AdamW{…}, CosineRate{…}).
// The recipe's optimizer is the type of `optimizer`. tensor_ranks: the degrees of TensorParallel, besides 1, that the plan may have; each
// is code of its own. Errors: weft[code.tensor], those of Engine.
template <class Model, class RecipeType, class Executor, Index... tensor_ranks, class Communicator, class OptimizerRule,
          RateSchedule Schedule = ConstantRate>
auto make_trainer(const PlanData& plan, Communicator communicator, OptimizerRule optimizer, Schedule schedule = {},
                  const TrainerOptions& options = {}) {
  static_assert(explain_optimizer<OptimizerRule>(),
                "weft[optim.rule]: the third argument of make_trainer is an optimizer; see optim/optimizer.hpp");
  using Real = typename RecipeType::Precision::Real;
  using TrainerType = Trainer<Executor, Real, Communicator, OptimizerRule, Schedule>;
  return TrainerType(plan,
                     model_code_for<typename KernelsOf<Executor>::type, Real, Model, typename RecipeType::Loss, tensor_ranks...>(
                         plan.strategy.tensor(), plan.strategy.sequence),
                     std::move(communicator), optimizer, schedule, options);
}

// The same for a plan that the compiler has checked: make_trainer<Train>(communicator, AdamW{…}). Train's recipe names the optimizer.
template <class PlanType, class Executor = Cpu<kernel::cpu::Builtin>, class Communicator, class OptimizerRule,
          RateSchedule Schedule = ConstantRate>
auto make_trainer(Communicator communicator, OptimizerRule optimizer, Schedule schedule = {}, const TrainerOptions& options = {}) {
  static_assert(explain_optimizer<OptimizerRule>(),
                "weft[optim.rule]: the second argument of make_trainer is an optimizer; see optim/optimizer.hpp");
  using Real = typename PlanType::Recipe::Precision::Real;
  using TrainerType = Trainer<Executor, Real, Communicator, OptimizerRule, Schedule>;
  constexpr StrategyData strategy = lower_strategy(PlanType::strategy);
  const auto data_for = [](Index world) {
    if constexpr (requires { PlanType::data(world); })  // its mesh has an open axis
      return PlanType::data(world);
    else
      return PlanType::data();
  };
  PlanData plan = data_for(communicator.size());  // before the communicator moves on
  return TrainerType(std::move(plan),
                     model_code<typename KernelsOf<Executor>::type, Real, typename PlanType::Model, typename PlanType::Recipe::Loss,
                                strategy.tensor(), strategy.sequence>(),
                     std::move(communicator), optimizer, schedule, options);
}

}  // namespace weft
