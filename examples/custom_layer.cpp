// SPDX-License-Identifier: Apache-2.0
// A layer of one's own: y = x + scale · sin(frequency ∘ x), a periodic activation with learned frequencies (after Ziyin et al., arXiv
// 2006.08195). It says what it is, how it computes and how it differentiates; the plan, the ranks, the optimizer, the files and the checks
// treat it like any other.
#include <weft/run/check_gradients.hpp>
#include <weft/weft.hpp>

// [layer]
template <weft::Index C>
struct Periodic {
  static constexpr const char* name = "periodic";  // in reports, errors and the plan's fingerprint
  static constexpr int version = 1;                // change it when the mathematics changes
  static constexpr weft::Features input{C};

  // The shape rule: what comes out for what goes in; {} says that it does not fit.
  static constexpr weft::Features output(weft::Features in) { return in == input ? in : weft::Features{}; }

  static constexpr weft::LayerFacts facts(weft::Features, weft::Index) {
    weft::LayerFacts facts;
    facts.parameters.push(weft::parameter("frequency", weft::ParameterKind::norm, {weft::InitialValue::Kind::normal, 2.0}, C));
    facts.parameters.push(weft::parameter("scale", weft::ParameterKind::norm, {weft::InitialValue::Kind::constant, 0.5}, C));
    facts.needs_input = true;  // in backward: the plan keeps x until then
    facts.forward_flops_per_row = 4.0 * C, facts.backward_flops_per_row = 8.0 * C;
    return facts;
  }

  // Shapes: x, y (rows, C); frequency, scale (C). `context` is whatever executor the model runs on.
  template <class Context>
  static void forward(Context& context) {
    const auto *x = context.input(), *frequency = context.parameter(0), *scale = context.parameter(1);
    auto* y = context.output();
    for (weft::Index r = 0; r < context.rows(); ++r)
      for (weft::Index c = 0; c < C; ++c) y[r * C + c] = x[r * C + c] + scale[c] * std::sin(frequency[c] * x[r * C + c]);
  }

  // Gradients of parameters are added to, the input's is overwritten (facts.adds_input_gradient would say otherwise).
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
// [layer]

using Model = weft::Sequential<weft::Linear<1, 16>, Periodic<16>, weft::Residual<weft::LayerNorm<16>, Periodic<16>>, weft::Linear<16, 1>>;
constexpr weft::Batch batch{.global = 32, .micro = 8};

// Something that repeats: hard to continue for an activation that does not.
template <class Micro>
void fill(weft::Index step, int rank, Micro& micro) {
  for (int i = 0; i < 8; ++i) {
    const double x = double((step * 32 + rank * 16 + micro.number * 8 + i) * 53 % 1000) / 100 - 5;
    micro.values()[i] = decltype(+micro.values()[0])(x), micro.real_targets()[i] = decltype(+micro.values()[0])(std::sin(2 * x));
  }
}

int main() {
  // [check]
  // First the check that weft's own layers have to pass: gradients against finite differences, in float64.
  const weft::GradientCheck check =
      weft::check_gradients<Model, weft::MeanSquaredError>({.global = 8, .micro = 8}, [](auto& micro) { fill(0, 0, micro); });
  std::printf("gradient check: %lld elements, worst relative error %.1e\n", static_cast<long long>(check.num_checked), check.worst);
  if (!(check.worst < 1e-6))
    throw weft::Error("custom_layer.gradient", "the layer's backward is not the derivative of its forward: " + check.where);
  // [check]

  // Then train with it, on two ranks with two micro-batches each.
  using Train =
      weft::Plan<Model, weft::mesh(weft::DataParallel{.ranks = 2}), batch, weft::Recipe<weft::Fp32, weft::MeanSquaredError, weft::AdamW>>;
  std::printf("%s", weft::describe(Train::data()).c_str());
  weft::launch(Train::num_ranks, [](auto& rank) {
    auto trainer = weft::make_trainer<Train>(rank, weft::AdamW{.rate = 0.01});
    weft::GeneratedLoader data(2, rank.rank(), [](weft::Index step, int r, auto& micro) { fill(step, r, micro); });
    weft::StepResult result;
    for (int step = 0; step < 2000; ++step) result = trainer.step(data);
    if (rank.rank() == 0) std::printf("mean squared error after 2000 steps: %.6f\n", result.loss);
    if (!(result.loss < 0.05)) throw weft::Error("custom_layer.loss", "the periodic function was not learned");
  });
}
