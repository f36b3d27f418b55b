// SPDX-License-Identifier: Apache-2.0
// Whole tensors out of the ranks of an engine and back, however the strategy divides them: for files, for comparing, for another engine.
#pragma once

#include <string>
#include <vector>

#include "weft/run/rank_state.hpp"

namespace weft {

// gradients: of the mean loss of the last step, before clipping (the sums times gradient_scale). first_state: the optimizer's first number
// of every parameter; the second is first_state + 1.
enum class Collected : int { values, gradients, first_state };

// All parameters and buffers of a model as their layers know them, ties once. Shows them as an engine of one rank does.
template <class RealType>
struct WholeModel {
  using Real = RealType;
  struct Tensor {
    std::string path;
    ParameterFacts facts;  // whole extents
    std::vector<Real> data;
  };
  std::vector<Tensor> tensors;

  template <class Visit>
  void for_each_parameter(Visit&& visit) {
    for (Tensor& tensor : tensors) visit(tensor.path, tensor.facts, tensor.data.data(), static_cast<Real*>(nullptr));
  }
};

namespace collecting {

// A parameter as its layer knows it.
inline ParameterFacts whole_facts(const ParameterSite& site) {
  ParameterFacts facts = site.facts;
  if (site.split.dimension >= 0) facts.extents = site.split.whole;
  return facts;
}

// visit(parameter, repetition) in the order of the model, as all ranks see it.
template <class Visit>
void for_each_owner(const PlanData& plan, Visit&& visit) {
  for (int p = 0; p < int(plan.graph.parameters.size()); ++p) {
    const ParameterSite& site = plan.graph.parameters[std::size_t(p)];
    if (site.owner != p) continue;
    for (Index repetition = 0; repetition < plan.graph.frame_of(site).count; ++repetition) visit(p, repetition, site);
  }
}

}  // namespace collecting

// visit(path, whole facts, data) for every parameter and buffer in the model's order: on rank `root`, or on all if it is -1. Gradients and
// optimizer states: of parameters only. Collective, between steps. Communication: one reduce (or all-reduce) a tensor. Memory: two tensors.
template <class State, class Visit>
void for_each_collected(State& state, Collected what, double gradient_scale, int root, Visit&& visit) {
  using Real = typename State::Real;
  using Held = typename State::Held;
  struct Piece {
    int parameter;
    Index repetition;
    Held held;
  };
  const PlanData& plan = state.plan;
  std::vector<Piece> pieces;
  state.for_each_held([&](int p, Index repetition, const ParameterSite&, const Held& held) {
    if (held.counts) pieces.push_back({p, repetition, held});
  });
  std::size_t next = 0;
  std::vector<Real> data;
  collecting::for_each_owner(plan, [&](int p, Index repetition, const ParameterSite& site) {
    const bool skipped = what != Collected::values && site.facts.kind == ParameterKind::buffer;
    const ParameterFacts whole = collecting::whole_facts(site);
    data.assign(skipped ? 0 : std::size_t(whole.elems()), Real(0));
    for (; next < pieces.size() && pieces[next].parameter == p && pieces[next].repetition == repetition; ++next) {
      const Held& held = pieces[next].held;
      const Real* from = what == Collected::values      ? held.data
                         : what == Collected::gradients ? held.gradient
                                                        : state.optimizer_state(int(what) - int(Collected::first_state)) + held.state;
      if (skipped) continue;
      const Real scale = what == Collected::gradients ? Real(gradient_scale) : Real(1);
      for_each_owned_stretch(site, plan.graph.tensor_ranks, state.place.tensor, [&](Index own, Index first, Index count) {
        const Index begin = std::max(own, held.first), end = std::min(own + count, held.first + held.elems);
        for (Index i = begin; i < end; ++i) data[std::size_t(first + i - own)] = from[i - held.first] * scale;
      });
    }
    if (skipped) return;
    if (root < 0)
      state.groups.world().all_reduce(data.data(), Index(data.size()), Reduction::sum);
    else
      state.groups.world().reduce(data.data(), Index(data.size()), Reduction::sum, root);
    if (root < 0 || root == state.groups.world().rank()) visit(path_of(plan.graph, p, repetition), whole, data);
  });
}

// The model with all values zero, on this rank alone.
template <class State>
WholeModel<typename State::Real> whole_model_of(const State& state) {
  WholeModel<typename State::Real> model;
  collecting::for_each_owner(state.plan, [&](int p, Index repetition, const ParameterSite& site) {
    const ParameterFacts facts = collecting::whole_facts(site);
    model.tensors.push_back(
        {path_of(state.plan.graph, p, repetition), facts, std::vector<typename State::Real>(std::size_t(facts.elems()))});
  });
  return model;
}

// Every rank takes what it keeps of a whole model, which all ranks have. Collective where parameters are sharded.
template <class State>
void distribute(State& state, const WholeModel<typename State::Real>& model) {
  const PlanData& plan = state.plan;
  std::vector<std::size_t> number_of;  // by owner and repetition
  std::vector<std::size_t> first_of(plan.graph.parameters.size(), 0);
  std::size_t count = 0;
  collecting::for_each_owner(plan, [&](int p, Index repetition, const ParameterSite&) {
    if (repetition == 0) first_of[std::size_t(p)] = count;
    ++count;
  });
  if (count != model.tensors.size())
    throw Error("collect.model",
                text_of("the whole model has another number of tensors than the engine's; collect it from the same model (has ",
                        model.tensors.size(), ", wanted ", count, ")"));
  state.for_each_held([&](int p, Index repetition, const ParameterSite& site, const typename State::Held& held) {
    const auto& tensor = model.tensors[first_of[std::size_t(p)] + std::size_t(repetition)];
    const auto& data = tensor.data;
    if (Index(data.size()) != collecting::whole_facts(site).elems())
      throw Error("collect.model", text_of("a tensor has another size than the engine's parameter (", tensor.path, " has ", data.size(),
                                           " elements, wanted ", collecting::whole_facts(site).elems(), ")"));
    for_each_stretch(site, plan.graph.tensor_ranks, state.place.tensor, [&](Index own, Index first, Index elems) {
      const Index begin = std::max(own, held.first), end = std::min(own + elems, held.first + held.elems);
      for (Index i = begin; i < end; ++i) held.data[i - held.first] = data[std::size_t(first + i - own)];
    });
  });
  if (plan.strategy.shards_parameters()) state.store.publish();
}

}  // namespace weft
