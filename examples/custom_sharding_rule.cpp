// SPDX-License-Identifier: Apache-2.0
// A layer of one's own that says how the ranks of a tensor group can divide it. custom_layer.cpp is about what a layer says and computes;
// what is new here are splits() and Part. The same model is trained on one rank and on tensor groups of 2 and 4, and the losses are
// compared.
#include <weft/weft.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

// y = x + scale · sin(frequency ∘ x), feature by feature.
template <weft::Index C>
struct Periodic {
  static constexpr const char* name = "periodic";
  static constexpr int version = 1;
  static constexpr weft::Features input{C};

  static constexpr weft::Features output(weft::Features in) { return in == input ? in : weft::Features{}; }
  static constexpr weft::LayerFacts facts(weft::Features, weft::Index) {
    weft::LayerFacts facts;
    facts.parameters.push(weft::parameter("frequency", weft::ParameterKind::norm, {weft::InitialValue::Kind::normal, 2.0}, C));
    facts.parameters.push(weft::parameter("scale", weft::ParameterKind::norm, {weft::InitialValue::Kind::constant, 0.5}, C));
    facts.needs_input = true;
    facts.forward_flops_per_row = 4.0 * C, facts.backward_flops_per_row = 8.0 * C;
    return facts;
  }

  // [rule]
  // The ways to divide it. By features: no feature concerns another; the ranks must divide C; both parameters are sliced along their
  // dimension 0. By rows, where the group divides those (TensorParallel::sequence): nothing is sliced, and gradients are summed. Which way
  // is taken, and what the ranks say to each other for it, is the plan's affair. A layer without splits() is replicated: each rank has and
  // computes all of it, and what stands before it cannot hand it slices.
  static constexpr weft::FixedVector<weft::SplitRule, 4> splits(weft::Features) {
    weft::FixedVector<weft::SplitRule, 4> ways;
    ways.push(weft::split_rule(weft::SplitKind::features, C, 0, 0));
    ways.push(weft::split_rule(weft::SplitKind::rows, 0));
    return ways;
  }
  // The layer of one rank: the same with fewer features. (Not needed where a layer takes its extents from the context.)
  template <weft::SplitKind kind, weft::Index ranks>
  using Part = Periodic<kind == weft::SplitKind::features ? C / ranks : C>;
  // [rule]

  template <class Context>
  static void forward(Context& context) {
    const auto *x = context.input(), *frequency = context.parameter(0), *scale = context.parameter(1);
    auto* y = context.output();
    for (weft::Index r = 0; r < context.rows(); ++r)
      for (weft::Index c = 0; c < C; ++c) y[r * C + c] = x[r * C + c] + scale[c] * std::sin(frequency[c] * x[r * C + c]);
  }
  template <class Context>
  static void backward(Context& context) {
    const auto *x = context.input(), *dy = context.output_gradient(), *frequency = context.parameter(0), *scale = context.parameter(1);
    auto *dx = context.input_gradient(), *dfrequency = context.gradient(0), *dscale = context.gradient(1);
    for (weft::Index r = 0; r < context.rows(); ++r)
      for (weft::Index c = 0; c < C; ++c) {
        const weft::Index i = r * C + c;
        const auto sine = std::sin(frequency[c] * x[i]), cosine = std::cos(frequency[c] * x[i]);
        dscale[c] += dy[i] * sine;
        dfrequency[c] += dy[i] * scale[c] * x[i] * cosine;
        if (dx) dx[i] = dy[i] * (1 + scale[c] * frequency[c] * cosine);
      }
  }
};

using Model =
    weft::Sequential<weft::Linear<1, 16>, weft::Residual<weft::LayerNorm<16>, weft::Linear<16, 32>, Periodic<32>, weft::Linear<32, 16>>,
                     Periodic<16>, weft::Linear<16, 1>>;

template <weft::TensorParallel tensor>
using Train = weft::Plan<Model, weft::mesh(tensor), weft::Batch{.global = 32, .micro = 16},
                         weft::Recipe<weft::Fp64, weft::MeanSquaredError, weft::AdamW>>;

// The losses of 300 steps. The ranks of a tensor group are given the same rows.
template <weft::TensorParallel tensor>
std::vector<double> train() {
  std::vector<double> losses;
  weft::launch(Train<tensor>::num_ranks, [&](auto& rank) {
    auto trainer = weft::make_trainer<Train<tensor>>(rank, weft::AdamW{.rate = 0.01});
    weft::GeneratedLoader data(2, 0, [](weft::Index step, int, auto& micro) {
      for (int i = 0; i < 16; ++i) {
        const double x = double((step * 32 + micro.number * 16 + i) * 53 % 1000) / 100 - 5;
        micro.values()[i] = x, micro.real_targets()[i] = std::sin(2 * x);
      }
    });
    for (int step = 0; step < 300; ++step) {
      const double loss = trainer.step(data).loss;
      if (rank.rank() == 0) losses.push_back(loss);
    }
  });
  return losses;
}

void compare(const char* what, const std::vector<double>& losses, const std::vector<double>& one) {
  double worst = 0;
  for (std::size_t i = 0; i < one.size(); ++i) worst = std::max(worst, std::abs(losses[i] - one[i]) / one[i]);
  std::printf("%-28s loss %.6f after %zu steps", what, losses.back(), losses.size());
  if (&losses == &one)
    std::printf("\n");
  else
    std::printf(", differs from one rank's by at most %.1e\n", worst);
  if (!(worst < 1e-6)) throw weft::Error("custom_sharding_rule.loss", "a tensor group does not train as one rank does");
}

int main() {
  std::printf("%s\n", weft::describe(Train<weft::TensorParallel{.ranks = 4}>::data()).c_str());
  const std::vector<double> one = train<weft::TensorParallel{}>();
  compare("one rank:", one, one);
  compare("2 tensor ranks:", train<weft::TensorParallel{.ranks = 2}>(), one);
  compare("4 tensor ranks:", train<weft::TensorParallel{.ranks = 4}>(), one);
  compare("4 tensor ranks, rows too:", train<weft::TensorParallel{.ranks = 4, .sequence = true}>(), one);
}
