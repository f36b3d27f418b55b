// SPDX-License-Identifier: Apache-2.0
// The check of users' strategies: one that is right through each door (an axis, a schedule, a sharding rule, a policy), and what it must
// see.
#include <weft/plan.hpp>
#include <weft/run/check_strategy.hpp>

#include <doctest/doctest.h>

#include <atomic>

using namespace weft;

namespace {

constexpr Batch batch{.global = 16, .micro = 2, .sequence = 1};

// Rows of numbers that depend on their place only.
template <Index in, Index out>
void fill_rows(MicroBatchInput<double>& to, Index step) {
  for (Index i = 0; i < to.leading.batch; ++i) {
    const double row = double(step * 100 + to.first_item + i);
    for (Index c = 0; c < in; ++c) to.values()[i * in + c] = std::sin(row * 1.7 + double(c) * 0.9);
    for (Index c = 0; c < out; ++c) to.real_targets()[i * out + c] = std::cos(row + double(c));
  }
}
const auto fill = fill_rows<6, 2>;

void must_pass(const StrategyCheck& check) {
  CHECK_MESSAGE(check.passes(), check.text());
  CHECK(check.num_calls > 0);
  CHECK(check.text().find("differ by nan") == std::string::npos);
}

using Plain = Sequential<Linear<6, 8>, Repeat<6, Residual<LayerNorm<8>, Linear<8, 16>, Gelu, Linear<16, 8>, Dropout<0.1>>>, Linear<8, 2>>;

// ── an axis ──
struct Clones {
  static constexpr const char* name = "clones";
  static constexpr Role role = Role::batch;
  Index count = 1;
  static constexpr Shard shard = Shard::gradients;
  constexpr Index size() const { return count; }
  bool operator==(const Clones&) const = default;
};

// ── schedules ──
// All forwards, then backwards from the last micro-batch on.
struct LastFirst {
  static constexpr const char* name = "last_first";
  static constexpr int version = 1;
  static constexpr ScheduleTable table(ScheduleShape shape) {
    ScheduleTable out = empty_table(shape);
    for (int s = 0; s < shape.stages; ++s) {
      for (int m = 0; m < shape.micros; ++m) out.rows[std::size_t(s)].push_back({ActionKind::forward, s, m});
      for (int m = shape.micros; m-- > 0;) out.rows[std::size_t(s)].push_back({ActionKind::backward, s, m});
    }
    return out;
  }
};
// Its last stage goes on as others do not.
struct Crossed {
  static constexpr const char* name = "crossed";
  static constexpr int version = 1;
  static constexpr ScheduleTable table(ScheduleShape shape) {
    ScheduleTable out = LastFirst::table(shape);
    ActionRow& row = out.rows.back();
    const Action first = row.front();
    row.front() = row.back(), row.back() = first;
    return out;
  }
};

// ── policies ──
struct LocalSgd {
  static constexpr const char* name = "local_sgd";
  static constexpr int version = 1;
  static constexpr bool sums_gradients = false;
  static constexpr void synchronise(SyncStep& step) {
    if (step.number() % step.every() == 0) step.average(Shared::parameters);
  }
};
struct WithStates : LocalSgd {
  static constexpr void synchronise(SyncStep& step) {
    if (step.number() % step.every() != 0) return;
    step.average(Shared::parameters), step.average(Shared::optimizer_states);
  }
};
// Depends on more than the step.
std::atomic<int> num_asked{0};
struct Moody : LocalSgd {
  static void synchronise(SyncStep& step) {
    if (num_asked++ % 3 != 0) step.average(Shared::parameters);
  }
};

// ── sharding rules ──
enum class Fault { none, mixes, slices, adds, mixes_rows, differs };

// y = x + bias + mix · mean of the features: only where it does not mix can features be divided.
template <Index C, Fault fault>
struct Shift {
  static constexpr const char* name = "shift";
  static constexpr int version = 1;
  static constexpr Features output(Features in) { return in == Features{C} ? in : Features{}; }
  static constexpr LayerFacts facts(Features, Index) {
    LayerFacts facts;
    facts.parameters.push(parameter("bias", ParameterKind::bias, {InitialValue::Kind::normal, 1}, C));
    facts.needs_input = true;
    return facts;
  }
  static constexpr FixedVector<SplitRule, 4> splits(Features) {
    FixedVector<SplitRule, 4> ways;
    if (fault == Fault::differs) return ways;
    ways.push(split_rule(SplitKind::features, C, 0)), ways.push(split_rule(SplitKind::rows, 0));
    return ways;
  }
  template <SplitKind kind, Index ranks>
  using Part = Shift<kind == SplitKind::features ? C / ranks : C, fault>;

  static constexpr double mix = fault == Fault::mixes ? 0.1 : 0;
  template <class Context>
  static void forward(Context& context) {
    for (Index r = 0; r < context.rows(); ++r) {
      double mean = 0;
      for (Index c = 0; c < C; ++c) mean += context.input()[r * C + c] / double(C);
      if (fault == Fault::mixes_rows) mean = context.input()[0] * 0.1;
      for (Index c = 0; c < C; ++c)
        context.output()[r * C + c] =
            context.input()[r * C + c] + context.parameter(0)[c] + (fault == Fault::mixes_rows ? mean : mix * mean);
    }
  }
  template <class Context>
  static void backward(Context& context) {
    const double own = fault == Fault::differs ? 1 + 1e-6 * context.tensor_rank() : 1;
    for (Index r = 0; r < context.rows(); ++r) {
      double sum = 0;
      for (Index c = 0; c < C; ++c) sum += mix * context.output_gradient()[r * C + c] / double(C);
      for (Index c = 0; c < C; ++c) {
        context.gradient(0)[c] += context.output_gradient()[r * C + c] * own;
        if (context.input_gradient()) context.input_gradient()[r * C + c] = context.output_gradient()[r * C + c] + sum;
      }
    }
  }
};

// y = a ∘ b of (a | b): a rank has a slice of each.
template <Index C, Fault fault>
struct Pairs {
  static constexpr const char* name = "pairs";
  static constexpr int version = 1;
  static constexpr Features output(Features in) { return in == Features{2 * C} ? Features{C} : Features{}; }
  static constexpr LayerFacts facts(Features, Index) {
    LayerFacts facts;
    facts.needs_input = true;
    return facts;
  }
  static constexpr FixedVector<SplitRule, 4> splits(Features) {
    SplitRule rule = split_rule(SplitKind::features, C);
    if (fault != Fault::slices) rule.slicing.push(C), rule.slicing.push(C);
    FixedVector<SplitRule, 4> ways;
    ways.push(rule);
    return ways;
  }
  template <SplitKind, Index ranks>
  using Part = Pairs<C / ranks, fault>;

  template <class Context>
  static void forward(Context& context) {
    for (Index r = 0; r < context.rows(); ++r)
      for (Index c = 0; c < C; ++c) context.output()[r * C + c] = context.input()[r * 2 * C + c] * context.input()[r * 2 * C + C + c];
  }
  template <class Context>
  static void backward(Context& context) {
    if (!context.input_gradient()) return;
    for (Index r = 0; r < context.rows(); ++r)
      for (Index c = 0; c < C; ++c) {
        const Index a = r * 2 * C + c, b = a + C;
        context.input_gradient()[a] = context.output_gradient()[r * C + c] * context.input()[b];
        context.input_gradient()[b] = context.output_gradient()[r * C + c] * context.input()[a];
      }
  }
};

// y = W x + bias, divided by its inputs.
template <Index C, Index K, Fault fault>
struct Product {
  static constexpr const char* name = "product";
  static constexpr int version = 1;
  static constexpr Features output(Features in) { return in == Features{C} ? Features{K} : Features{}; }
  static constexpr LayerFacts facts(Features, Index) {
    LayerFacts facts;
    facts.parameters.push(parameter("weight", ParameterKind::weight, uniform_by_fan_in(C), K, C));
    facts.parameters.push(parameter("bias", ParameterKind::bias, {InitialValue::Kind::normal, 1}, K));
    facts.needs_input = true;
    return facts;
  }
  static constexpr FixedVector<SplitRule, 4> splits(Features) {
    FixedVector<SplitRule, 4> ways;
    ways.push(split_rule(SplitKind::inputs, C, 1, -1));
    return ways;
  }
  template <SplitKind kind, Index ranks, Index in, Index out>
  using Part = Product<in, out, fault>;

  template <class Context>
  static void forward(Context& context) {
    for (Index r = 0; r < context.rows(); ++r)
      for (Index k = 0; k < K; ++k) {
        double sum = context.adds_whole() || fault == Fault::adds ? context.parameter(1)[k] : 0;  // once in a tensor group
        for (Index c = 0; c < C; ++c) sum += context.input()[r * C + c] * context.parameter(0)[k * C + c];
        context.output()[r * K + k] = sum;
      }
  }
  template <class Context>
  static void backward(Context& context) {
    for (Index r = 0; r < context.rows(); ++r)
      for (Index c = 0; c < C; ++c) {
        double sum = 0;
        for (Index k = 0; k < K; ++k) {
          const double dy = context.output_gradient()[r * K + k];
          sum += dy * context.parameter(0)[k * C + c];
          context.gradient(0)[k * C + c] += dy * context.input()[r * C + c];
          if (c == 0) context.gradient(1)[k] += dy;
        }
        if (context.input_gradient()) context.input_gradient()[r * C + c] = sum;
      }
  }
};

template <Fault fault>
using Own = Sequential<Linear<6, 8>, Residual<Linear<8, 16>, Shift<16, fault>, Pairs<8, fault>, Product<8, 8, fault>>, Shift<8, fault>,
                       Linear<8, 2>>;

template <Fault fault>
StrategyCheck check_own(bool sequence = false) {
  return check_strategy<Own<fault>, MeanSquaredError, 2>(mesh(TensorParallel{.ranks = 2, .sequence = sequence}), batch, fill);
}

}  // namespace

TEST_CASE("axes_of_a_user_pass") {
  must_pass(check_strategy<Plain, MeanSquaredError>(mesh(Clones{.count = 4}), batch, fill));
  must_pass(check_strategy<Plain, MeanSquaredError>(mesh(Clones{.count = 2}, Pipeline<>{.stages = 3}), batch, fill));
}

TEST_CASE("strategies_of_weft_pass") {
  for (const Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::parameters}) {
    must_pass(check_strategy<Plain, MeanSquaredError>(mesh(DataParallel{.ranks = 4, .shard = shard}), batch, fill));
    must_pass(check_strategy<Plain, MeanSquaredError>(mesh(DataParallel{.ranks = 4, .shard = shard, .shard_ranks = 2}), batch, fill));
    must_pass(check_strategy<Plain, MeanSquaredError>(
        mesh(DataParallel{.ranks = 2, .shard = shard}, Pipeline<schedule::ZeroBubbleH1>{.stages = 2}), batch, fill));
  }
  must_pass(check_strategy<Plain, MeanSquaredError>(mesh(Pipeline<schedule::ZeroBubbleV>{.stages = 2}), batch, fill));
}

TEST_CASE("stages_that_end_with_a_bare_layer_use_all_their_memory") {
  using Bare = Sequential<Linear<6, 16>, Gelu, Linear<16, 16>, Gelu, Linear<16, 2>>;
  for (const Index stages : {2, 3, 4}) {
    must_pass(check_strategy<Bare, MeanSquaredError>(mesh(Pipeline<schedule::ZeroBubbleH1>{.stages = stages}), batch, fill));
    must_pass(check_strategy<Bare, MeanSquaredError>(mesh(Pipeline<schedule::ZeroBubbleH2>{.stages = stages}), batch, fill));
    must_pass(check_strategy<Bare, MeanSquaredError>(mesh(Pipeline<>{.stages = stages}), batch, fill));
  }
  must_pass(check_strategy<Bare, MeanSquaredError>(mesh(Pipeline<schedule::ZeroBubbleV>{.stages = 2}), batch, fill));
  must_pass(check_strategy<Bare, MeanSquaredError, 2>(mesh(Pipeline<schedule::ZeroBubbleH1>{.stages = 2}, TensorParallel{.ranks = 2}),
                                                      batch, fill));
}

// The gradient of a bias before batch norm is zero but for rounding, which differs.
TEST_CASE("layers_that_join_micro_batches_pass") {
  using Joined = Sequential<Input<1, 2, 3>, Conv2d<1, 4, Conv2dOptions{.kernel = 1}>, BatchNorm2d<4>, Relu, Flatten, Linear<24, 2>>;
  must_pass(check_strategy<Joined, MeanSquaredError>(mesh(DataParallel{.ranks = 2}), batch, fill));
}

TEST_CASE("schedules_of_a_user_pass_or_are_refused") {
  must_pass(check_strategy<Plain, MeanSquaredError>(mesh(Pipeline<LastFirst>{.stages = 4}), batch, fill));
  must_pass(check_strategy<Plain, MeanSquaredError>(mesh(DataParallel{.ranks = 2, .shard = Shard::parameters},
                                                         Pipeline<LastFirst>{.stages = 2}, Activations{.recompute = Recompute::full}),
                                                    batch, fill));
  std::string refusal;
  try {
    check_strategy<Plain, MeanSquaredError>(mesh(Pipeline<Crossed>{.stages = 2}), batch, fill);
  } catch (const Error& error) { refusal = error.id(); }
  CHECK_MESSAGE(refusal.starts_with("schedule."), refusal);
}

TEST_CASE("policies_of_a_user_pass") {
  for (const Index every : {1, 2}) {
    must_pass(check_strategy<Plain, MeanSquaredError>(mesh(Replicas<LocalSgd>{.ranks = 4, .every = every}), batch, fill));
    must_pass(check_strategy<Plain, MeanSquaredError>(mesh(Replicas<WithStates>{.ranks = 2, .every = every}, Pipeline<>{.stages = 2}),
                                                      batch, fill));
  }
}

TEST_CASE("a_policy_that_does_not_say_the_same_is_seen") {
  const StrategyCheck check = check_strategy<Plain, MeanSquaredError>(mesh(Replicas<Moody>{.ranks = 2}), batch, fill);
  CHECK(!check.passes());
  CHECK_MESSAGE(check.error.find("weft[") == 0, check.text());
}

TEST_CASE("sharding_rules_of_a_user_pass") {
  must_pass(check_own<Fault::none>());
  must_pass(check_own<Fault::none>(true));
}

TEST_CASE("a_rule_that_divides_features_which_concern_each_other_is_seen") {
  const StrategyCheck check = check_own<Fault::mixes>();
  CHECK(!check.passes());
  CHECK_MESSAGE(check.losses.worst > 1e-6, check.text());
  CHECK(check.parameters.where.find("rank") != std::string::npos);
}

TEST_CASE("a_rule_that_divides_rows_which_concern_each_other_is_seen") {
  const StrategyCheck check = check_own<Fault::mixes_rows>(true);
  CHECK(!check.passes());
  CHECK_MESSAGE(check.gradients.worst > 1e-6, check.text());
}

TEST_CASE("features_that_are_sliced_otherwise_than_the_layer_takes_them_are_seen") {
  const StrategyCheck check = check_own<Fault::slices>();
  CHECK(!check.passes());
  CHECK_MESSAGE(check.losses.worst > 1e-6, check.text());
}

TEST_CASE("a_summand_that_every_rank_adds_is_seen") {
  const StrategyCheck check = check_own<Fault::adds>();
  CHECK(!check.passes());
  CHECK_MESSAGE(check.losses.worst > 1e-6, check.text());
}

TEST_CASE("copies_that_drift_apart_are_seen") {
  const StrategyCheck check = check_own<Fault::differs>();
  CHECK(!check.passes());
  CHECK_MESSAGE(check.copies.find("weft[copies.differ]") == 0, check.text());
  CHECK(check.gradients.worst > 1e-8);
  CHECK(check.gradients.where.find("rank 1") != std::string::npos);
}

// Fewer rows than the plan's: nothing is said about memory then.
TEST_CASE("rows_that_are_missing_are_no_fault") {
  must_pass(
      check_strategy<Plain, MeanSquaredError>(mesh(DataParallel{.ranks = 2}, Pipeline<>{.stages = 2}), batch, [](auto& micro, Index step) {
        if (micro.first_item % 3 == 0) micro.leading.batch = 1;
        fill(micro, step);
      }));
}

// Data that depends on who asks is the commonest fault of a loader.
TEST_CASE("data_that_depends_on_the_rank_is_seen") {
  std::atomic<Index> calls{0};
  const StrategyCheck check = check_strategy<Plain, MeanSquaredError>(mesh(Pipeline<>{.stages = 2}), batch, [&](auto& micro, Index step) {
    fill(micro, step);
    micro.values()[0] += 1e-3 * double(calls++);
  });
  CHECK(!check.passes());
  CHECK_MESSAGE(check.losses.worst > 1e-8, check.text());
}

TEST_CASE("a_rank_that_throws_is_in_the_result") {
  std::atomic<int> calls{0};
  const StrategyCheck check = check_strategy<Plain, MeanSquaredError>(mesh(DataParallel{.ranks = 2}), batch, [&](auto& micro, Index step) {
    if (calls++ == 30) throw std::runtime_error("no more data");  // 8 in each of 3 steps of one rank, then of two
    fill(micro, step);
  });
  CHECK(!check.passes());
  CHECK_MESSAGE(check.error.find("no more data") != std::string::npos, check.text());
}
