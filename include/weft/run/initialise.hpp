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

template <class Real, class Rule>
void initialise(const GraphData& graph, std::uint64_t seed, Real* parameters, Real* buffers, Rule&& rule) {
  for (int p = 0; p < int(graph.parameters.size()); ++p) {
    const ParameterSite& site = graph.parameters[std::size_t(p)];
    if (site.owner != p) continue;
    for (Index repetition = 0; repetition < graph.frame_of(site).count; ++repetition) {
      Real* data = (site.facts.kind == ParameterKind::buffer ? buffers : parameters) + graph.first_elem(p, repetition);
      const InitialValue initial = rule(path_of(graph, p, repetition), site.facts);
      const random::Stream stream{.seed = seed,
                                  .purpose = random::Purpose::initial_weights,
                                  .step = 0,
                                  .layer = (std::uint64_t(p) << 32) | std::uint64_t(repetition)};
      const Index elems = site.facts.elems();
      switch (initial.kind) {
        case InitialValue::Kind::constant: std::fill_n(data, elems, Real(initial.value)); break;
        case InitialValue::Kind::normal: random::fill_normal(stream, 0, elems, 0, initial.value, data); break;
        case InitialValue::Kind::uniform: random::fill_uniform(stream, 0, elems, -initial.value, initial.value, data); break;
      }
    }
  }
}

}  // namespace weft
