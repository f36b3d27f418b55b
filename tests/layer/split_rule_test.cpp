// SPDX-License-Identifier: Apache-2.0
// Layers of a user that can be divided in each way, with as little as a rule needs; and what happens to one without a rule.
#include "layer/split_cases.hpp"

#include <weft/report/describe.hpp>

using namespace weft;
using namespace weft::test;

namespace {

// y = x Wᵀ, by outputs and by inputs. It takes its extents from the context; the part is there for what it says of itself.
template <Index C, Index K>
struct Product {
  static constexpr const char* name = "product";
  static constexpr int version = 1;
  static constexpr Features output(Features in) { return in == Features{C} ? Features{K} : Features{}; }
  static constexpr LayerFacts facts(Features, Index) {
    LayerFacts facts;
    facts.parameters.push(parameter("weight", ParameterKind::weight, uniform_by_fan_in(C), K, C));
    facts.needs_input = true;
    return facts;
  }
  static constexpr FixedVector<SplitRule, 4> splits(Features) {
    FixedVector<SplitRule, 4> ways;
    ways.push(split_rule(SplitKind::outputs, K, 0)), ways.push(split_rule(SplitKind::inputs, C, 1));
    return ways;
  }
  template <SplitKind kind, Index ranks, Index in, Index out>
  using Part = Product<in, out>;

  template <class Context>
  static void forward(Context& context) {
    const Index in = context.input_features(), out = context.output_features();
    for (Index r = 0; r < context.rows(); ++r)
      for (Index k = 0; k < out; ++k) {
        double sum = 0;
        for (Index c = 0; c < in; ++c) sum += context.input()[r * in + c] * context.parameter(0)[k * in + c];
        context.output()[r * out + k] = sum;
      }
  }
  template <class Context>
  static void backward(Context& context) {
    const Index in = context.input_features(), out = context.output_features();
    for (Index r = 0; r < context.rows(); ++r)
      for (Index c = 0; c < in; ++c) {
        double sum = 0;
        for (Index k = 0; k < out; ++k) {
          const double dy = context.output_gradient()[r * out + k];
          sum += dy * context.parameter(0)[k * in + c];
          context.gradient(0)[k * in + c] += dy * context.input()[r * in + c];
        }
        if (context.input_gradient()) context.input_gradient()[r * in + c] = sum;
      }
  }
};

// y = gain ∘ x, by features and by rows; or without a rule.
template <Index C, bool divides>
struct Gain {
  static constexpr const char* name = "gain";
  static constexpr int version = 1;
  static constexpr Features output(Features in) { return in == Features{C} ? in : Features{}; }
  static constexpr LayerFacts facts(Features, Index) {
    LayerFacts facts;
    facts.parameters.push(parameter("gain", ParameterKind::norm, {InitialValue::Kind::constant, 1}, C));
    facts.needs_input = true;
    return facts;
  }
  static constexpr FixedVector<SplitRule, 4> splits(Features) {
    FixedVector<SplitRule, 4> ways;
    if (divides) ways.push(split_rule(SplitKind::features, C, 0)), ways.push(split_rule(SplitKind::rows, 0));
    return ways;
  }
  template <SplitKind kind, Index ranks>
  using Part = Gain<kind == SplitKind::features ? C / ranks : C, divides>;

  template <class Context>
  static void forward(Context& context) {
    for (Index i = 0; i < context.input_elems(); ++i) context.output()[i] = context.input()[i] * context.parameter(0)[i % C];
  }
  template <class Context>
  static void backward(Context& context) {
    for (Index i = 0; i < context.input_elems(); ++i) {
      context.gradient(0)[i % C] += context.output_gradient()[i] * context.input()[i];
      if (context.input_gradient()) context.input_gradient()[i] = context.output_gradient()[i] * context.parameter(0)[i % C];
    }
  }
};

// A table of one number a feature for each of V tokens, by tokens: a rank gives zeros for those that it does not have.
template <Index V, Index C>
struct Table {
  static constexpr const char* name = "table";
  static constexpr int version = 1;
  static constexpr Features input = token_features;
  static constexpr Features output(Features in) { return in == token_features ? Features{C} : Features{}; }
  static constexpr LayerFacts facts(Features, Index) {
    LayerFacts facts;
    facts.parameters.push(parameter("rows", ParameterKind::embedding, {InitialValue::Kind::normal, 1}, V, C));
    facts.needs_input = true;
    return facts;
  }
  static constexpr FixedVector<SplitRule, 4> splits(Features) {
    FixedVector<SplitRule, 4> ways;
    ways.push(split_rule(SplitKind::vocabulary, 0, 0));  // any number of ranks: the last one's slice is padded
    return ways;
  }
  template <SplitKind kind, Index ranks>
  using Part = Table<divide_up(V, ranks), C>;

  template <class Context, class Visit>
  static void for_each_own(Context& context, Visit&& visit) {
    for (Index r = 0; r < context.rows(); ++r) {
      const Index token = context.tokens()[r] - context.tensor_rank() * V;
      visit(r, token >= 0 && token < V ? token : -1);
    }
  }
  template <class Context>
  static void forward(Context& context) {
    for_each_own(context, [&](Index r, Index token) {
      for (Index c = 0; c < C; ++c) context.output()[r * C + c] = token < 0 ? 0 : context.parameter(0)[token * C + c];
    });
  }
  template <class Context>
  static void backward(Context& context) {
    for_each_own(context, [&](Index r, Index token) {
      for (Index c = 0; c < C && token >= 0; ++c) context.gradient(0)[token * C + c] += context.output_gradient()[r * C + c];
    });
  }
};

enum class Fault { nothing, dimension, parameters, segments, kind, in_place };

// A layer of 8 features whose only rule has a fault.
template <Fault fault>
struct Wrong {
  static constexpr const char* name = "wrong";
  static constexpr int version = 1;
  static constexpr Features output(Features in) { return in; }
  static constexpr LayerFacts facts(Features, Index) {
    LayerFacts facts;
    facts.parameters.push(parameter("weight", ParameterKind::weight, uniform_by_fan_in(8), 8, 8));
    facts.in_place = fault == Fault::in_place;
    return facts;
  }
  static constexpr FixedVector<SplitRule, 4> splits(Features) {
    SplitRule rule = split_rule(SplitKind::features, 8, 0);
    if (fault == Fault::dimension) rule = split_rule(SplitKind::outputs, 8, 2);
    if (fault == Fault::parameters) rule = split_rule(SplitKind::outputs, 8, 0, 0);
    if (fault == Fault::segments) rule.slicing.push(4), rule.slicing.push(3);
    if (fault == Fault::kind) rule.kind = SplitKind::none;
    if (fault == Fault::in_place) rule = split_rule(SplitKind::inputs, 8, 1);
    FixedVector<SplitRule, 4> ways;
    ways.push(rule);
    return ways;
  }
};

template <bool divides>
using Text =
    Sequential<Table<13, 12>, Repeat<2, Residual<Gain<12, divides>, Product<12, 24>, Gain<24, divides>, Product<24, 12>>>, Linear<12, 13>>;

constexpr SplitCase how{.items = 8, .micro = 4, .sequence = 3};

template <class Model, Index tensor>
void compare_with_one(const SplitRun& one) {
  compare_runs(train_split<Model, tensor, false>(mesh(TensorParallel{.ranks = tensor}), how), one, std::to_string(tensor) + " ranks");
  compare_runs(train_split<Model, tensor, true>(mesh(TensorParallel{.ranks = tensor, .sequence = true}), how), one,
               std::to_string(tensor) + " ranks, sequence");
}

std::string described(const StrategyData& strategy, bool divides) {
  const Batch batch{.global = 8, .micro = 4, .sequence = 3};
  return describe(divides ? plan_data<Text<true>>(strategy, batch) : plan_data<Text<false>>(strategy, batch));
}

}  // namespace

TEST_CASE("layers_of_a_user_are_divided_in_every_way") {
  using Model = Text<true>;
  const SplitRun one = train_split<Model, 1, false>(mesh(DataParallel{.ranks = 1}), how);
  CHECK(one.losses[2] < one.losses[0]);
  compare_with_one<Model, 2>(one);
  compare_with_one<Model, 4>(one);
  const std::string text = described(lower_strategy(mesh(TensorParallel{.ranks = 4, .sequence = true})), true);
  for (const char* way : {"vocabulary / 4", "rows / 4", "outputs / 4", "features / 4", "inputs / 4"})
    CHECK_MESSAGE(text.find(way) != text.npos, way);
}

TEST_CASE("a_layer_without_a_rule_is_replicated_and_reports_say_so") {
  using Model = Text<false>;
  const SplitRun one = train_split<Model, 1, false>(mesh(DataParallel{.ranks = 1}), how);
  compare_with_one<Model, 2>(one);
  const std::string text = described(lower_strategy(mesh(TensorParallel{.ranks = 4, .sequence = true})), false);
  CHECK(text.find("features / 4") == text.npos);
  for (const char* layer : {"(gain)", "(product)"}) {
    const std::size_t at = text.find(layer);
    REQUIRE(at != text.npos);
    CHECK(text.substr(at, text.find('\n', at) - at).find("replicated") != std::string::npos);
  }
  CHECK(described(lower_strategy(mesh(DataParallel{.ranks = 2})), false).find("replicated") == std::string::npos);  // nothing to divide
}

TEST_CASE("rules_that_do_not_fit_are_refused_at_start_up_too") {
  const auto refusal = []<class Layer>(Layer) {
    using Model = Sequential<Linear<4, 8>, Layer, Linear<8, 4>>;
    return fault_text(plan_data<Model>(lower_strategy(mesh(TensorParallel{.ranks = 2})), {.global = 8, .micro = 2}));
  };
  CHECK(refusal(Wrong<Fault::nothing>{}).empty());
  for (Fault fault : {Fault::dimension, Fault::parameters, Fault::segments, Fault::kind, Fault::in_place}) {
    std::string text;
    switch (fault) {
      case Fault::dimension: text = refusal(Wrong<Fault::dimension>{}); break;
      case Fault::parameters: text = refusal(Wrong<Fault::parameters>{}); break;
      case Fault::segments: text = refusal(Wrong<Fault::segments>{}); break;
      case Fault::kind: text = refusal(Wrong<Fault::kind>{}); break;
      default: text = refusal(Wrong<Fault::in_place>{}); break;
    }
    CHECK_MESSAGE(text.find("weft[tensor.rule]") == 0, int(fault) << ": " << text);
    CHECK_MESSAGE(text.find("1 (wrong), rule 0") != text.npos, int(fault) << ": " << text);
  }
}

TEST_CASE("a_layer_that_adds_a_residual_stays_whole") {
  // Both could be divided by outputs: for the linear layer behind, and for the loss.
  using Model =
      Sequential<Linear<6, 12>, LayerNorm<12>, Residual<Linear<12, 12>>, Relu, Linear<12, 12>, LayerNorm<12>, Residual<Linear<12, 12>>>;
  const SplitRun one = train_split<Model, 1, false>(mesh(DataParallel{.ranks = 1}), how);
  compare_with_one<Model, 2>(one);
}

TEST_CASE("layers_before_one_that_takes_segments_follow_its_slices") {
  // Half of a rank's 24 / T features are gates: the parameters and the mask of what stands before are those of the same features.
  using Model = Sequential<Linear<6, 12>, LayerNorm<12>, Residual<Linear<12, 24>, Gain<24, true>, Dropout<0.3>, SwiGlu, Linear<12, 12>>,
                           LayerNorm<12>, Linear<12, 13>>;
  const SplitRun one = train_split<Model, 1, false>(mesh(DataParallel{.ranks = 1}), how);
  compare_with_one<Model, 2>(one);
  compare_with_one<Model, 4>(one);
}
