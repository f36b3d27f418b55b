// SPDX-License-Identifier: Apache-2.0
// Applies the optimizer's rule to what a rank updates: one pass over flat memory, and leaves alone what took no part in the step.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "weft/optim/optimizer.hpp"
#include "weft/run/control.hpp"
#include "weft/run/rank_state.hpp"

namespace weft {

enum class UnusedParameters : char { refuse, allow };

template <class State, Optimizer OptimizerRule>
class Updater {
 public:
  using Real = typename State::Real;

  Updater(State& state, const OptimizerRule& optimizer) : state_(state), plan_(state.plan), optimizer_(optimizer) { find_ranges(); }

  // For every parameter of a layer that reports what it touched: whether it took part on this rank.
  void tell_touched(ControlBlock& control) const {
    for_each_reporting([&](Index number, int, Index, Index flag) { control.touched(number) = state_.walker.touched()[std::size_t(flag)]; });
  }
  // Errors: weft[engine.unused], on all ranks in the same step, with the names.
  void require_touched(ControlBlock& control, UnusedParameters unused) {
    unused_.clear();
    const double working = double(plan_.strategy.data()) - control[ControlField::idle];
    std::string names;
    for_each_reporting([&](Index number, int parameter, Index repetition, Index flag) {
      const ParameterSite& site = plan_.graph.parameters[std::size_t(parameter)];
      if (site.facts.kind == ParameterKind::buffer || control.touched(number) >= working) return;
      if (unused == UnusedParameters::refuse) {
        names += text_of(names.empty() ? "" : ", ", path_of(plan_.graph, parameter, repetition), " on ",
                         int(working - control.touched(number)), " of ", int(working), " ranks");
        if (!state_.walker.touched()[std::size_t(flag)]) names += text_of(", rank ", state_.groups.world().rank(), " among them");
      } else if (control.touched(number) == 0 && site.owner == parameter) {
        const Index first = plan_.first_elem(state_.stage_number(), parameter, repetition);
        if (first >= 0) unused_.push_back({first, round_up(site.facts.elems(), parameter_alignment_elems), false});
      }
    });
    std::sort(unused_.begin(), unused_.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
    if (!names.empty())
      throw Error(
          "engine.unused",
          "parameters took no part in a step; remove them, or say EngineOptions::unused = allow to leave them as they are (" + names + ")");
  }

  void apply(const UpdateStep& step) const {
    for (const Range& range : ranges_) {
      Index at = range.first;
      for (const Range& hole : unused_) {  // rare
        if (hole.first < at || hole.first >= range.first + range.elems) continue;
        apply({at, hole.first - at, range.decayed}, step);
        at = hole.first + hole.elems;
      }
      apply({at, range.first + range.elems - at, range.decayed}, step);
    }
  }

 private:
  // Of the stage's arena, as if it were whole.
  struct Range {
    Index first = 0, elems = 0;
    bool decayed = false;
  };

  void apply(const Range& range, const UpdateStep& step) const {
    const auto& store = state_.store;
    if (store.shards() == 1)
      return apply_rule(range, range.first, state_.parameters() + range.first, state_.gradients() + range.first, step);
    for (const Block& block : store.blocks()) {  // its own part of each
      const Index own = block.first + store.own_first(block);
      const Index from = std::max(range.first, own), to = std::min(range.first + range.elems, own + store.own_elems(block));
      if (from < to)
        apply_rule({from, to - from, range.decayed}, store.state_first(block) + from - own, store.own_parameters(block) + (from - own),
                   store.own_gradients(block) + (from - own), step);
    }
  }
  void apply_rule(const Range& range, Index first_state, Real* parameters, const Real* gradients, const UpdateStep& step) const {
    if (range.elems == 0) return;
    Real* states[OptimizerRule::num_states + 1]{};
    for (Index s = 0; s < OptimizerRule::num_states; ++s) states[s] = state_.optimizer_state(s) + first_state;
    optimizer_.template update<typename State::Kernels::I>(range.elems, parameters, gradients, static_cast<Real* const*>(states),
                                                           range.decayed ? optimizer_.decay : 0.0, step);
  }

  // One after the other, joined where they decay alike.
  void find_ranges() {
    state_.store.for_each_parameter([&](const Block&, const ParameterSite& site, Index first) {
      const Range range{first, round_up(site.facts.elems(), parameter_alignment_elems),
                        optimizer_.decays(site.facts.kind == ParameterKind::weight || site.facts.kind == ParameterKind::embedding)};
      if (!ranges_.empty() && ranges_.back().decayed == range.decayed && ranges_.back().first + ranges_.back().elems == range.first)
        ranges_.back().elems += range.elems;
      else
        ranges_.push_back(range);
    });
  }

  // visit(number in the control block, parameter, repetition, flag of the walker)
  template <class Visit>
  void for_each_reporting(Visit&& visit) const {
    Index number = 0;
    for (int l = 0; l < int(plan_.graph.leaves.size()); ++l) {
      const LeafSite& leaf = plan_.graph.leaves[std::size_t(l)];
      if (!leaf.facts.reports_touched) continue;
      for (Index repetition = 0; repetition < plan_.graph.frames[std::size_t(leaf.frame)].count; ++repetition)
        for (int p = 0; p < leaf.facts.parameters.size(); ++p, ++number)
          visit(number, leaf.first_parameter + p, repetition,
                state_.walker.first_touched(l) + repetition * leaf.facts.parameters.size() + p);
    }
  }

  State& state_;
  const PlanData& plan_;
  const OptimizerRule& optimizer_;
  std::vector<Range> ranges_, unused_;
};

}  // namespace weft
