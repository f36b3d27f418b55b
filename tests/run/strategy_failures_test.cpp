// SPDX-License-Identifier: Apache-2.0
// BR-19 and BR-20 where ranks share a step in other ways than by data: in pipelines, tensor groups and sharded models. A rank that fails
// somewhere in the middle, leaves, hangs, or says something else than the others: everybody is told, nothing of the step is applied, and
// the process can go on.
#include "run/engine_cases.hpp"

#include <weft/run/check_copies.hpp>

#include <thread>

using namespace weft;
using namespace weft::test;

namespace {

// When the calling rank's layers fail: the calls that are still to go well. Negative: never.
thread_local int forwards_left = -1, backwards_left = -1;

void count_down(int& left, const char* what) {
  if (left >= 0 && left-- == 0) throw std::runtime_error(text_of("no power in ", what));
}

// y = x, until it fails.
struct Fragile {
  static constexpr const char* name = "fragile";
  static constexpr int version = 1;
  static constexpr Features output(Features in) { return in; }
  static constexpr LayerFacts facts(Features, Index) { return {}; }
  static constexpr FixedVector<SplitRule, 4> splits(Features in) {
    FixedVector<SplitRule, 4> ways;
    ways.push(split_rule(SplitKind::features, in.elems())), ways.push(split_rule(SplitKind::rows, 0));
    return ways;
  }
  template <SplitKind, Index>
  using Part = Fragile;
  template <class Context>
  static void forward(Context& context) {
    count_down(forwards_left, "forward");
    std::copy_n(context.input(), context.input_elems(), context.output());
  }
  template <class Context>
  static void backward(Context& context) {
    count_down(backwards_left, "backward");
    if (context.input_gradient()) std::copy_n(context.output_gradient(), context.input_elems(), context.input_gradient());
  }
};

constexpr Index sequence = 4, micros_of_all = 8;
using Model = Sequential<Embedding<13, 8>, Repeat<4, Residual<LayerNorm<8>, Linear<8, 16>, Fragile, Gelu, Linear<16, 8>>>, Linear<8, 13>>;
using TheRecipe = Recipe<Fp64, SoftmaxCrossEntropy<>, AdamW>;
using TheEngine = EngineOf<Model, SoftmaxCrossEntropy<>, double, AdamW, ThreadCommunicator>;

void fill_rows(MicroBatchInput<double>& to, Index first_item) {
  to.leading = {1, sequence, 0};
  to.first_item = first_item;
  for (Index i = 0; i < sequence; ++i)
    to.tokens()[i] = std::int32_t((first_item * 5 + i * 3) % 13), to.integer_targets()[i] = std::int32_t((first_item * 7 + i) % 13);
}

// Of all that a rank keeps: parameters and the optimizer's numbers.
std::int64_t state_of(TheEngine& engine) {
  Fingerprint print;
  engine.state().for_each_held([&](int, Index, const ParameterSite&, const auto& held) {
    print.add(hash_of(held.data, held.elems, held.first));
    for (Index s = 0; held.state >= 0 && s < 2; ++s)
      print.add(hash_of(engine.state().optimizer_state(s) + held.state, held.elems, held.first));
  });
  return std::int64_t(print.value());
}

// What a rank has seen of a broken step.
struct Seen {
  std::string text = "nothing was thrown";
  bool unchanged = false;
};
struct Outcome {
  std::string launched = "nothing was thrown";  // what launch threw
  std::vector<Seen> seen;
};

// One whole step, then step(engine), which is to fail.
template <class Step>
Outcome broken_step(const StrategyData& strategy, Step&& step, std::chrono::milliseconds time_out = std::chrono::seconds(30)) {
  const PlanData plan = plan_at_start<Model, TheRecipe>(strategy, {.global = micros_of_all, .micro = 1, .sequence = sequence});
  Outcome outcome;
  outcome.seen.resize(std::size_t(strategy.ranks));
  try {
    launch(int(strategy.ranks),
           [&](ThreadCommunicator& comm) {
             forwards_left = backwards_left = -1;
             const auto code =
                 model_code_for<TheEngine::Kernels, double, Model, SoftmaxCrossEntropy<>, 2>(strategy.tensor(), strategy.sequence);
             TheEngine engine(plan, code, comm, AdamW{}, {.clip_norm = 0.5, .poison = true});
             engine.step(
                 plan.micros, [&](auto& to) { fill_rows(to, engine.place().data * plan.micros + to.number); }, 0.01);
             const std::int64_t before = state_of(engine);
             Seen& seen = outcome.seen[std::size_t(comm.rank())];
             try {
               step(engine);
             } catch (const std::exception& error) {
               seen = {error.what(), state_of(engine) == before && engine.num_updates() == 1};
               throw;
             }
           },
           {.threads = {.time_out = time_out}});
  } catch (const std::exception& error) { outcome.launched = error.what(); }
  return outcome;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

// The loss of a step of ranks with which nothing is wrong.
double whole_step(const StrategyData& strategy) {
  double loss = 0;
  const Outcome outcome = broken_step(strategy, [&](TheEngine& engine) {
    const Index micros = engine.plan().micros;
    const double own = engine
                           .step(
                               micros, [&](auto& to) { fill_rows(to, engine.place().data * micros + to.number); }, 0.01)
                           .loss;
    if (engine.communicator().rank() == 0) loss = own;
  });
  CHECK(outcome.launched == "nothing was thrown");
  return loss;
}

struct NamedStrategy {
  const char* name;
  StrategyData strategy;
};
std::vector<NamedStrategy> strategies() {
  const DataParallel zero3{.ranks = 2, .shard = Shard::parameters}, zero2{.ranks = 2, .shard = Shard::gradients};
  return {
      {"pipe4 1f1b", lower_strategy(mesh(Pipeline<>{.stages = 4}))},
      {"pipe4 zero bubble", lower_strategy(mesh(Pipeline<schedule::ZeroBubbleH1>{.stages = 4}))},
      {"pipe2 zero bubble V", lower_strategy(mesh(Pipeline<schedule::ZeroBubbleV>{.stages = 2}))},
      {"tensor2", lower_strategy(mesh(TensorParallel{.ranks = 2}))},
      {"tensor2 sequence", lower_strategy(mesh(TensorParallel{.ranks = 2, .sequence = true}))},
      {"data4 zero3", lower_strategy(mesh(DataParallel{.ranks = 4, .shard = Shard::parameters}))},
      {"data2 zero3 pipe2", lower_strategy(mesh(zero3, Pipeline<>{.stages = 2}))},
      {"data2 zero2 pipe2 tensor2", lower_strategy(mesh(zero2, Pipeline<>{.stages = 2}, TensorParallel{.ranks = 2}))},
  };
}

// Every rank but the culprit knows who it was, why, and what it was doing itself; nobody has applied anything.
void check_all_told(const Outcome& outcome, int culprit, const std::string& why, const std::string& name) {
  const std::string who = "rank " + std::to_string(culprit);
  CHECK_MESSAGE(has(outcome.launched, who), name << ": " << outcome.launched);
  CHECK_MESSAGE(has(outcome.launched, why), name << ": " << outcome.launched);
  for (std::size_t r = 0; r < outcome.seen.size(); ++r) {
    const std::string& text = outcome.seen[r].text;
    CHECK_MESSAGE(outcome.seen[r].unchanged, name << ", rank " << r << " has applied something");
    CHECK_MESSAGE(has(text, why), name << ", rank " << r << ": " << text);
    if (int(r) == culprit) continue;
    CHECK_MESSAGE(has(text, "weft[comm.rank_failed]: " + who), name << ", rank " << r << ": " << text);
    CHECK_MESSAGE(has(text, "; rank " + std::to_string(r) + " was in "), name << ", rank " << r << ": " << text);
  }
}

}  // namespace

TEST_CASE("rank_that_fails_in_the_middle_of_a_step_breaks_it_for_all") {
  for (const auto& [name, strategy] : strategies()) {
    const double right = whole_step(strategy);
    CHECK(right > 0);
    const int ranks = int(strategy.ranks);
    for (const int culprit : {0, ranks - 1}) {
      const auto step_where = [&](const char* place, int calls) {
        return [=](TheEngine& engine) {
          const bool fails = engine.communicator().rank() == culprit;
          if (fails && *place == 'f') forwards_left = calls;
          if (fails && *place == 'b') backwards_left = calls;
          const Index micros = engine.plan().micros;
          engine.step(
              micros,
              [&](auto& to) {
                if (fails && *place == 'd' && to.number == 1) throw std::runtime_error("no power at the disk");
                fill_rows(to, engine.place().data * micros + to.number);
              },
              0.01);
        };
      };
      check_all_told(broken_step(strategy, step_where("disk", 0)), culprit, "no power at the disk", text_of(name, ", data"));
      for (const int calls : {0, 1})
        for (const char* place : {"forward", "backward"})
          check_all_told(broken_step(strategy, step_where(place, calls)), culprit, text_of("no power in ", place),
                         text_of(name, ", ", place, " ", calls));
    }
    CHECK(whole_step(strategy) == right);  // the process goes on
  }
}

TEST_CASE("rank_that_leaves_in_a_pipeline_or_group_is_named") {
  for (const auto& [name, strategy] : strategies()) {
    const int culprit = int(strategy.ranks) - 1;
    const Outcome outcome = broken_step(strategy, [&](TheEngine& engine) {
      if (engine.communicator().rank() == culprit) return;
      const Index micros = engine.plan().micros;
      engine.step(
          micros, [&](auto& to) { fill_rows(to, engine.place().data * micros + to.number); }, 0.01);
    });
    CHECK_MESSAGE(has(outcome.launched, "weft[comm.rank_left]"), name << ": " << outcome.launched);
    for (int r = 0; r < culprit; ++r) {
      const Seen& seen = outcome.seen[std::size_t(r)];
      CHECK_MESSAGE(has(seen.text, text_of("rank ", culprit, " has left")), name << ", rank " << r << ": " << seen.text);
      CHECK_MESSAGE(has(seen.text, text_of("; rank ", r, " was in ")), name << ", rank " << r << ": " << seen.text);
      CHECK_MESSAGE(seen.unchanged, name << ", rank " << r);
    }
  }
}

// One that neither fails nor goes on: the time-out says who waits for what, and who does not wait.
TEST_CASE("rank_that_hangs_is_named_after_the_time_out") {
  for (const auto& [name, strategy] : strategies()) {
    const int culprit = int(strategy.ranks) - 1;
    std::atomic<int> told{0};
    const Outcome outcome = broken_step(
        strategy,
        [&](TheEngine& engine) {
          const Index micros = engine.plan().micros;
          const bool hangs = engine.communicator().rank() == culprit;
          try {
            engine.step(
                micros,
                [&](auto& to) {
                  while (hangs && to.number == 1 && told < culprit) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                  fill_rows(to, engine.place().data * micros + to.number);
                },
                0.01);
          } catch (...) {
            ++told;
            throw;
          }
        },
        std::chrono::milliseconds(100));
    CHECK_MESSAGE(has(outcome.launched, "weft[comm.time_out]"), name << ": " << outcome.launched);
    for (std::size_t r = 0; r < outcome.seen.size(); ++r) {
      const Seen& seen = outcome.seen[r];
      CHECK_MESSAGE(has(seen.text, "weft[comm.time_out]"), name << ", rank " << r << ": " << seen.text);
      CHECK_MESSAGE(has(seen.text, text_of("rank ", culprit, ": does not wait")), name << ", rank " << r << ": " << seen.text);
      CHECK_MESSAGE(seen.unchanged, name << ", rank " << r);
    }
  }
}

// Ranks that work on a micro-batch together are to be given the same rows: sizes that differ are refused before anything moves.
TEST_CASE("stages_and_tensor_ranks_with_different_rows_are_told_both_sizes") {
  for (const auto& [name, strategy] : strategies()) {
    if (strategy.data() > 1) continue;  // data ranks may have different numbers of rows
    const int culprit = int(strategy.ranks) - 1;
    const Outcome outcome = broken_step(strategy, [&](TheEngine& engine) {
      const Index micros = engine.plan().micros;
      engine.step(
          micros,
          [&](auto& to) {
            fill_rows(to, engine.place().data * micros + to.number);
            if (engine.communicator().rank() == culprit && to.number == 2) to.leading = {1, 2, 0};
          },
          0.01);
    });
    CHECK_MESSAGE(has(outcome.launched, "weft[comm.mismatch]"), name << ": " << outcome.launched);
    for (std::size_t r = 0; r < outcome.seen.size(); ++r) {
      CHECK_MESSAGE(outcome.seen[r].text == outcome.seen[0].text, name);
      CHECK_MESSAGE(outcome.seen[r].unchanged, name << ", rank " << r);
    }
    const std::string& text = outcome.seen[0].text;
    CHECK_MESSAGE(has(text, text_of("rank ", culprit, ":")), name << ": " << text);
    const auto both = [&](const char* whole, const char* half) { return has(text, whole) && has(text, half); };
    CHECK_MESSAGE((both(" of 32 float64", " of 16 float64") || both(" of 16 float64", " of 8 float64")), name << ": " << text);
  }
}

TEST_CASE("ranks_with_different_strategies_are_refused") {
  const auto refusal = [](const StrategyData& one, const StrategyData& other) {
    try {
      launch(int(one.ranks), [&](ThreadCommunicator& comm) {
        const StrategyData& strategy = comm.rank() + 1 == comm.size() ? other : one;
        const PlanData plan = plan_at_start<Model, TheRecipe>(strategy, {.global = micros_of_all, .micro = 1, .sequence = sequence});
        const auto code = model_code_for<TheEngine::Kernels, double, Model, SoftmaxCrossEntropy<>, 2>(strategy.tensor(), strategy.sequence);
        TheEngine(plan, code, comm, AdamW{});
      });
    } catch (const std::exception& error) { return std::string(error.what()); }
    return std::string("nothing was thrown");
  };
  const StrategyData pipe = lower_strategy(mesh(Pipeline<>{.stages = 4})),
                     zero3 = lower_strategy(mesh(DataParallel{.ranks = 4, .shard = Shard::parameters}));
  const std::string schedules = refusal(pipe, lower_strategy(mesh(Pipeline<schedule::GPipe>{.stages = 4})));
  CHECK_MESSAGE(has(schedules, "weft[engine.plans]"), schedules);
  const std::string shards = refusal(zero3, lower_strategy(mesh(DataParallel{.ranks = 4, .shard = Shard::optimizer})));
  CHECK_MESSAGE(has(shards, "weft[engine.plans]"), shards);
  // Other axes: other groups, so it shows earlier, while these are made or as plans that differ.
  const std::string axes = refusal(pipe, zero3);
  CHECK_MESSAGE((has(axes, "weft[engine.plans]") || has(axes, "weft[comm.")), axes);
}
