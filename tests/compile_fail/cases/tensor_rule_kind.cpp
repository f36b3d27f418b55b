// SPDX-License-Identifier: Apache-2.0
// id: tensor.rule
// A layer whose micro-batches meet says that rows do not concern each other.
#include <weft/plan.hpp>

using namespace weft;

// y = scale ∘ x, a layer of a user.
template <Index C>
struct Scale {
  static constexpr const char* name = "scale";
  static constexpr int version = 1;
  static constexpr Features output(Features in) { return in == Features{C} ? in : Features{}; }
  static constexpr LayerFacts facts(Features, Index) {
    LayerFacts facts;
    facts.parameters.push(parameter("scale", ParameterKind::norm, {InitialValue::Kind::constant, 1}, C));
    facts.needs_input = true;
    facts.join_elems = C;  // micro-batches meet here
    return facts;
  }
#ifdef WEFT_CONTROL
  static constexpr FixedVector<SplitRule, 4> splits(Features) {
    FixedVector<SplitRule, 4> ways;
    ways.push(split_rule(SplitKind::features, C, 0));
    return ways;
  }
  template <SplitKind kind, Index ranks>
  using Part = Scale<C / ranks>;
#else
  static constexpr FixedVector<SplitRule, 4> splits(Features) {
    FixedVector<SplitRule, 4> ways;
    ways.push(split_rule(SplitKind::rows, 0));
    return ways;
  }
#endif
  template <class Context>
  static void forward(Context&) {}
  template <class Context>
  static void backward(Context&) {}
};

using Model = Sequential<Linear<4, 8>, Scale<8>, Linear<8, 4>>;
using Train = Plan<Model, mesh(TensorParallel{.ranks = 2}), Batch{.global = 8, .micro = 2}>;

static_assert(Train::bytes_per_rank() <= 8 * GiB, "a rank may use 8 GiB");
int main() { return Train::num_ranks == 0; }
