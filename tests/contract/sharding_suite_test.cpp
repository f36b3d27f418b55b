// SPDX-License-Identifier: Apache-2.0
// Layers through the suite that users' rules go through; and rules that must not get through it.
#include "contract/sharding_suite.hpp"

using namespace weft;
using weft::contract::run_sharding_suite;

namespace {

// The least: an elementwise layer with a rule for features, and no Part: it takes its extents from the context.
template <SplitKind kind>
struct Doubled {
  static constexpr const char* name = "doubled";
  static constexpr int version = 1;
  static constexpr Features output(Features in) { return in; }
  static constexpr LayerFacts facts(Features, Index) { return {}; }
  static constexpr FixedVector<SplitRule, 4> splits(Features in) {
    FixedVector<SplitRule, 4> ways;
    ways.push(split_rule(kind, kind == SplitKind::features ? in.channels : 0));
    return ways;
  }
  template <class Context>
  static void forward(Context& context) {
    for (Index i = 0; i < context.input_elems(); ++i) context.output()[i] = 2 * context.input()[i];
  }
  template <class Context>
  static void backward(Context& context) {
    for (Index i = 0; context.input_gradient() && i < context.input_elems(); ++i)
      context.input_gradient()[i] = 2 * context.output_gradient()[i];
  }
};

// Takes the mean of its features off them: slices do concern each other, whatever the rule says.
template <bool backward_is_right = true>
struct Centred : Doubled<SplitKind::features> {
  static constexpr const char* name = "centred";
  template <class Context, class Real>
  static void centre(Context& context, const Real* from, Real* to) {
    const Index width = context.input_elems() / context.rows();
    for (Index r = 0; r < context.rows(); ++r) {
      Real mean = 0;
      for (Index c = 0; c < width; ++c) mean += from[r * width + c] / Real(width);
      for (Index c = 0; c < width; ++c) to[r * width + c] = from[r * width + c] - mean;
    }
  }
  template <class Context>
  static void forward(Context& context) {
    centre(context, context.input(), context.output());
  }
  template <class Context>
  static void backward(Context& context) {
    if constexpr (backward_is_right)
      if (context.input_gradient()) centre(context, context.output_gradient(), context.input_gradient());
    if constexpr (!backward_is_right) Doubled<SplitKind::features>::backward(context);
  }
};

struct NoWay : Doubled<SplitKind::features> {
  static constexpr FixedVector<SplitRule, 4> splits(Features) { return FixedVector<SplitRule, 4>{}; }
};

}  // namespace

TEST_CASE("the_archetype_of_a_layer_divides") { run_sharding_suite<Doubled<SplitKind::features>, 12, 2, 3>(); }
TEST_CASE("a_layer_that_divides_by_rows_only_divides") { run_sharding_suite<Doubled<SplitKind::rows>, 12, 2>(); }
// [suite]
TEST_CASE("gelu_divides") { run_sharding_suite<Gelu, 12, 2, 4>(); }
// [suite]

TEST_CASE("the_suite_sees_wrong_rules") {
  CHECK_NOTHROW((contract::case_02_gradients_are_right<Centred<>, 12>()));
  CHECK_THROWS_WITH((contract::case_04_among_slices_it_trains_as_one_rank<Centred<>, 12, 2>()),
                    doctest::Contains("centred: among slices, 2 tensor ranks, it does not train as one rank does"));
  CHECK_THROWS_WITH((contract::case_02_gradients_are_right<Centred<false>, 12>()), doctest::Contains("not the derivative"));
  CHECK_THROWS_WITH((contract::case_01_is_a_layer_with_rules<NoWay, 12>()), doctest::Contains("lists no way"));
  CHECK_THROWS_WITH((contract::case_03_is_divided_somewhere<NoWay, 12, 2>()), doctest::Contains("no plan takes any of its rules"));
}
