// SPDX-License-Identifier: Apache-2.0
// What happens when something is wrong while training: unused parameters, ranks that fail, plans that differ, bad data, changing lengths.
#include "run/engine_cases.hpp"

using namespace weft;
using namespace weft::test;

namespace {

// Adds its bias only to rows whose input is positive: whether the bias takes part depends on the data, and the layer says so.
struct SometimesBias {
  static constexpr const char* name = "sometimes_bias";
  static constexpr int version = 1;
  static constexpr Features input{1};
  static constexpr Features output(Features in) { return in == input ? in : Features{}; }
  static constexpr LayerFacts facts(Features, Index) {
    LayerFacts facts;
    facts.parameters.push(parameter("bias", ParameterKind::bias, {InitialValue::Kind::constant, 0.5}, 1));
    facts.needs_input = true, facts.reports_touched = true;
    return facts;
  }
  template <class Context>
  static void forward(Context& context) {
    for (Index r = 0; r < context.rows(); ++r)
      context.output()[r] = context.input()[r] + (context.input()[r] > 0 ? context.parameter(0)[0] : 0);
  }
  template <class Context>
  static void backward(Context& context) {
    for (Index r = 0; r < context.rows(); ++r) {
      if (context.input()[r] > 0) context.gradient(0)[0] += context.output_gradient()[r], context.touch(0);
      if (context.input_gradient()) context.input_gradient()[r] = context.output_gradient()[r];
    }
  }
};
using Sometimes = Sequential<Named<"scale", Linear<1, 1, Bias::no>>, Named<"head", SometimesBias>>;

std::string message_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const std::exception& error) { return error.what(); }
  return "nothing was thrown";
}

// Two ranks, one step; rank r sees x[r]. Returns the parameters (scale, bias) of rank 0.
std::pair<double, double> step_of(double x0, double x1, UnusedParameters unused) {
  std::pair<double, double> parameters;
  with_engines<Sometimes, SumLoss, double>({.ranks = 2}, {.global = 2, .micro = 1},
                                           AdamW{.rate = 0.1, .decay = 0.1, .decay_on = DecayOn::all}, {.unused = unused},
                                           [&](auto& engine) {
                                             engine.parameters()[0] = 1, engine.parameters()[parameter_alignment_elems] = 0.5;
                                             const int rank = engine.communicator().rank();
                                             engine.step(1, give(rank == 0 ? x0 : x1), 0.1);
                                             if (rank == 0)
                                               parameters = {engine.parameters()[0], engine.parameters()[parameter_alignment_elems]};
                                           });
  return parameters;
}

}  // namespace

// BR-39
TEST_CASE("unused_parameter_is_named_in_the_same_step") {
  const std::string all = message_of([] { step_of(-1, -2, UnusedParameters::refuse); });
  CHECK(all.find("weft[engine.unused]") != std::string::npos);
  CHECK(all.find("head.bias on 2 of 2 ranks") != std::string::npos);
  const std::string one = message_of([] { step_of(1, -2, UnusedParameters::refuse); });
  CHECK(one.find("head.bias on 1 of 2 ranks") != std::string::npos);
}

TEST_CASE("unused_parameter_that_is_allowed_keeps_its_value") {
  const auto [scale, bias] = step_of(-1, -2, UnusedParameters::allow);
  CHECK(bias == 0.5);  // not decayed either
  CHECK(scale != 1);
  const auto [scale_used, bias_used] = step_of(1, -2, UnusedParameters::allow);  // on rank 0 only
  CHECK(bias_used == doctest::Approx(0.5 * (1 - 0.1 * 0.1) - 0.1).epsilon(1e-6));
  (void)scale_used;
}

// BR-19: nothing of the broken step is applied, and the error names the rank.
TEST_CASE("rank_that_fails_breaks_the_step_for_all") {
  std::vector<double> after(4, -1);
  const std::string text = message_of([&] {
    with_engines<OneWeight, SumLoss, double>({.ranks = 4}, {.global = 4, .micro = 1}, Sgd{.rate = 1}, {}, [&](auto& engine) {
      engine.parameters()[0] = 7;
      const int rank = engine.communicator().rank();
      try {
        engine.step(
            1,
            [&](auto& micro) {
              if (rank == 2) throw std::runtime_error("the disk of this rank is gone");
              give(1)(micro);
            },
            1.0);
      } catch (...) {
        after[std::size_t(rank)] = engine.parameters()[0];
        throw;
      }
    });
  });
  CHECK(text.find("rank 2") != std::string::npos);
  CHECK(text.find("the disk of this rank is gone") != std::string::npos);
  for (double weight : after) CHECK(weight == 7);
}

TEST_CASE("rank_that_leaves_early_is_named") {
  const std::string text = message_of([&] {
    with_engines<OneWeight, SumLoss, double>({.ranks = 3}, {.global = 3, .micro = 1}, Sgd{.rate = 1}, {}, [&](auto& engine) {
      for (int step = 0; step < (engine.communicator().rank() == 1 ? 2 : 5); ++step) engine.step(1, give(1), 1.0);
    });
  });
  CHECK(text.find("weft[comm.rank_left]") != std::string::npos);
  CHECK(text.find("1") != std::string::npos);
}

// BR-20: compared once when the engines are made.
TEST_CASE("ranks_with_different_plans_are_refused") {
  const std::string text = message_of([] {
    launch(2, [](ThreadCommunicator& comm) {
      using TheEngine = EngineOf<OneWeight, SumLoss, double, Sgd, ThreadCommunicator>;
      const auto plan = plan_at_start<OneWeight, Recipe<Fp64, SumLoss, Sgd>>(mesh(DataParallel{.ranks = 2}),
                                                                             {.global = comm.rank() == 0 ? 2 : 4, .micro = 1});
      TheEngine(plan, model_code<typename TheEngine::Kernels, double, OneWeight, SumLoss>(), comm, Sgd{});
    });
  });
  CHECK(text.find("weft[engine.plans]") != std::string::npos);
}

TEST_CASE("bad_tokens_and_targets_name_row_and_vocabulary") {
  using Model = Sequential<Named<"table", Embedding<5, 4>>, Linear<4, 3>>;
  const auto run = [](std::int32_t token, std::int32_t target) {
    return message_of([=] {
      with_engines<Model, SoftmaxCrossEntropy<>, float>({.ranks = 1}, {.global = 1, .micro = 1, .sequence = 2}, Sgd{}, {},
                                                        [=](auto& engine) {
                                                          engine.step(
                                                              1,
                                                              [=](auto& micro) {
                                                                micro.tokens()[0] = 0, micro.tokens()[1] = token;
                                                                micro.integer_targets()[0] = 1, micro.integer_targets()[1] = target;
                                                              },
                                                              0.1);
                                                        });
    });
  };
  CHECK(run(1, 2) == "nothing was thrown");
  CHECK(run(1, -100) == "nothing was thrown");
  const std::string token = run(5, 0), target = run(1, 3);
  CHECK(token.find("weft[embedding.token]") != std::string::npos);
  CHECK(token.find("token 5 at row 1") != std::string::npos);
  CHECK(token.find("table (embedding)") != std::string::npos);
  CHECK(target.find("weft[loss.target]") != std::string::npos);
  CHECK(target.find("classes 3") != std::string::npos);
}

// BR-26: lengths that change from step to step reserve nothing new, and what does not fit says the numbers.
TEST_CASE("changing_lengths_use_the_same_memory") {
  using Model = Gpt<GptOptions{.vocabulary = 11, .sequence = 64, .width = 16, .heads = 2, .layers = 2}>;
  with_engines<Model, SoftmaxCrossEntropy<>, float>(
      {.ranks = 2}, {.global = 4, .micro = 2, .sequence = 64}, AdamW{}, {.poison = true}, [](auto& engine) {
        const Index reserved = engine.arenas().bytes();
        CHECK(reserved == engine.plan().memory.total());
        for (Index step = 0; step < 100; ++step) {
          const Index length = step * 37 % 64 + 1, batch = step % 3;  // also none
          const StepResult result = engine.step(
              batch > 0 ? 1 : 0,
              [&](auto& micro) {
                micro.leading = {batch, length, 0};
                for (Index i = 0; i < batch * length; ++i)
                  micro.tokens()[i] = std::int32_t(i % 11), micro.integer_targets()[i] = std::int32_t((i + 1) % 11);
              },
              1e-3);
          CHECK(result.finite);
          CHECK(engine.arenas().bytes() == reserved);
        }
        const std::string text = message_of([&] { engine.evaluate([](auto& micro) { micro.leading = {3, 64, 0}; }); });
        CHECK(text.find("given 3 x 64, capacity 2 x 64") != std::string::npos);
      });
}

// A gradient that is not finite is skipped on all ranks alike.
TEST_CASE("non_finite_gradient_is_skipped_by_all") {
  with_engines<OneWeight, SumLoss, double>({.ranks = 2}, {.global = 2, .micro = 1}, Sgd{.rate = 1}, {}, [](auto& engine) {
    engine.parameters()[0] = 3;
    const double x = engine.communicator().rank() == 1 ? std::numeric_limits<double>::quiet_NaN() : 1;
    const StepResult result = engine.step(1, give(x), 1.0);
    CHECK(!result.applied);
    CHECK(!result.finite);
    CHECK(engine.parameters()[0] == 3);
  });
}

// The audit compares what was made with what the plan says, and names both.
TEST_CASE("audit_names_both_sides") {
  const PlanData plan =
      plan_at_start<OneWeight, Recipe<Fp64, SumLoss, Sgd>>(mesh(DataParallel{.ranks = 2}), Batch{.global = 2, .micro = 1});
  REQUIRE(ledger_of(plan).size() == 2);
  // A bucket of `elems`, the control exchange unless it is left out, and `more` calls.
  const auto outcome = [&](Index elems, bool control, int more) {
    std::string text;
    launch(2, [&](ThreadCommunicator& world) {
      Groups<ThreadCommunicator> groups(world, plan, 8);
      double data[64]{};
      groups.clear_records();
      groups.world().all_reduce(data, elems, Reduction::sum);
      if (control) groups.world().all_reduce(data, plan.control_elems, Reduction::sum);
      for (int i = 0; i < more; ++i) groups.world().barrier();
      const std::string message = message_of([&] {
        audit(
            plan, 0, groups, [](int) { return 1; }, 0);
      });
      if (world.rank() == 1) text = message;
    });
    return text;
  };
  CHECK(outcome(16, true, 0) == "nothing was thrown");
  CHECK(outcome(16, true, 1).find("weft[audit.count]") != std::string::npos);
  const std::string other = outcome(5, true, 0);
  CHECK(other.find("weft[audit.call]") != std::string::npos);
  CHECK(other.find("rank 1, call 0 of the data group") != std::string::npos);
  CHECK(other.find("all_reduce of 5 float64") != std::string::npos);
  CHECK(other.find("all_reduce of 16 float64") != std::string::npos);
  CHECK(outcome(16, false, 0).find("weft[audit.call]") != std::string::npos);
}
