// SPDX-License-Identifier: Apache-2.0
// Initial values of parameters: drawn at an element's place in its whole parameter, so that they do not depend on who holds what.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>

#include "weft/plan/plan_data.hpp"
#include "weft/random/distribution.hpp"

namespace weft {

// rule(path, facts) -> InitialValue for every parameter; the layers' own values are those of RuleOfLayers.
struct RuleOfLayers {
  InitialValue operator()(std::string_view, const ParameterFacts& facts) const { return facts.initial; }
};

// GPT-2's: N(0, 0.02) for weights and tables, the projections into the residual stream divided by √(2·layers), biases zero.
struct GptInitialValues {
  Index layers = 1;
  InitialValue operator()(std::string_view path, const ParameterFacts& facts) const {
    if (facts.kind == ParameterKind::bias) return {};
    if (facts.kind != ParameterKind::weight && facts.kind != ParameterKind::embedding) return facts.initial;
    const bool into_residual = path.ends_with("projection.weight") || path.ends_with("down.weight");
    return {InitialValue::Kind::normal, into_residual ? 0.02 / std::sqrt(2.0 * double(layers)) : 0.02};
  }
};

// Elements first … first + elems of a parameter.
template <class Real>
void initialise(int parameter, Index repetition, std::uint64_t seed, Index first, Index elems, Real* data, const InitialValue& initial) {
  const random::Stream stream{.seed = seed,
                              .purpose = random::Purpose::initial_weights,
                              .step = 0,
                              .layer = (std::uint64_t(parameter) << 32) | std::uint64_t(repetition)};
  switch (initial.kind) {
    case InitialValue::Kind::constant: std::fill_n(data, elems, Real(initial.value)); break;
    case InitialValue::Kind::normal: random::fill_normal(stream, std::uint64_t(first), elems, 0, initial.value, data); break;
    case InitialValue::Kind::uniform: random::fill_uniform(stream, std::uint64_t(first), elems, -initial.value, initial.value, data); break;
  }
}

}  // namespace weft
