// SPDX-License-Identifier: Apache-2.0
// What one rank has: the plan, its place in it, its communicators, its memory.
#pragma once

#include <algorithm>

#include "weft/op/cpu_kernels.hpp"
#include "weft/plan/refuse.hpp"
#include "weft/run/unit_store.hpp"
#include "weft/run/walker.hpp"

namespace weft {

// Executor: whose kernels run. Real: the element type. Communicator: of the world; it is split into the plan's groups here, so that ranks
// make their state together.
template <class Executor, class RealType, class Communicator>
struct RankState {
  using Real = RealType;
  using Kernels = typename KernelsOf<Executor>::type;
  using Comm = RecordingCommunicator<Communicator>;
  using WalkerType = Walker<Kernels, Real, Comm>;
  using Store = UnitStore<Real, WalkerType, Communicator>;

  // Collective. Errors: those of require_valid.
  RankState(PlanData made, ModelCode<Real> model_code, Communicator communicator)
      : plan(std::move(made)),
        groups(std::move(communicator), valid(plan), most_calls(plan) + 8),
        place(plan.strategy.place(groups.world().rank() % int(plan.strategy.ranks))),
        arenas(Arenas::allocate(stage().memory, true)),
        walker(plan, stage_number(), model_code, arenas),
        store(plan, stage_number(), arenas, walker, groups),
        code(model_code) {
    if (groups.has(GroupKind::tensor)) walker.set_tensor_group(&groups[GroupKind::tensor]);
  }
  RankState(const RankState&) = delete;
  RankState& operator=(const RankState&) = delete;

  int stage_number() const { return int(place.stage); }
  const StageData& stage() const { return plan.stages[std::size_t(place.stage)]; }
  const ChunkData& chunk(int number) const { return plan.chunks[std::size_t(number)]; }
  bool is_here(int chunk_number) const { return chunk(chunk_number).stage == stage_number(); }
  bool is_last_chunk(int chunk_number) const { return chunk_number + 1 == int(plan.chunks.size()); }
  bool is_alone() const { return plan.strategy.ranks == 1; }
  // Whether ranks go through a fixed number of micro-batches together; one that has fewer goes through empty ones.
  bool lockstep() const {
    return plan.streams() || plan.strategy.shards_gradients() || plan.strategy.reproducible || plan.strategy.tensor() > 1;
  }

  Real* parameters() const { return arenas.parameters.template as<Real>(); }
  Real* buffers() const { return arenas.buffers.template as<Real>(); }
  Real* gradients() const { return arenas.gradients.template as<Real>(); }
  Real* optimizer_state(Index i) const {
    return arenas.optimizer.template as<Real>() + i * (arenas.optimizer.bytes() / plan.training.optimizer_states / Index(sizeof(Real)));
  }

  // visit(parameter, repetition, site, held): the elements of every parameter and buffer that this rank keeps: owned or as a guest, whole
  // or its shard. A parameter that is tied is visited as its owner.
  struct Held {
    Real *data = nullptr, *gradient = nullptr;  // where element `first` lies, and its gradient; null: none, or it lies elsewhere
    Index first = 0, elems = 0;                 // of this rank's part in a tensor group
    Index state = -1;                           // where the optimizer's numbers about it begin; -1: none here
    bool counts = false;  // whether this rank speaks for the elements: one rank does (or some: for_each_owned_stretch)
  };
  template <class Visit>
  void for_each_held(Visit&& visit) const {
    for (int p = 0; p < int(plan.graph.parameters.size()); ++p) {
      const ParameterSite& site = plan.graph.parameters[std::size_t(p)];
      if (site.owner != p) continue;
      for (Index repetition = 0; repetition < plan.graph.frame_of(site).count; ++repetition) {
        const Index first = plan.first_elem(stage_number(), p, repetition);
        if (first < 0) continue;
        const bool owns = plan.stage_of_unit(plan.owner_unit(p, repetition)) == stage_number();
        const bool speaks = owns && (place.tensor == 0 || site.split.dimension >= 0);
        if (site.facts.kind == ParameterKind::buffer)
          visit(p, repetition, site, Held{buffers() + first, nullptr, 0, site.facts.elems(), -1, speaks && place.data == 0});
        else
          visit_parts(p, repetition, site, first, speaks, visit);
      }
    }
  }

 private:
  // Shards of a parameter: of what is kept as shards the rank has its own only, of the rest it has all.
  template <class Visit>
  void visit_parts(int p, Index repetition, const ParameterSite& site, Index first, bool speaks, Visit& visit) const {
    const Index end = first + site.facts.elems();
    const StrategyData& strategy = plan.strategy;
    if (strategy.sharding() == Shard::none)
      return visit(p, repetition, site, Held{parameters() + first, gradients() + first, 0, end - first, first, speaks && place.data == 0});
    for (const Block& block : store.blocks()) {
      if (first < block.first || first >= block.first + block.elems) continue;
      const Index own = block.first + store.own_first(block), own_end = own + store.own_elems(block);
      const Index from = std::min(std::max(first, own), end), to = std::max(std::min(end, own_end), from);
      const auto part = [&](Index a, Index b, bool is_own) {
        if (a >= b) return;
        Held held{nullptr, nullptr, a - first, b - a, -1, false};
        if (is_own) {
          held.data = store.own_parameters(block) + (a - own), held.gradient = store.own_gradients(block) + (a - own);
          held.state = store.state_first(block) + (a - own);
          held.counts = speaks && place.data / store.shards() == 0;
        } else {
          held.data = parameters() + a;
        }
        visit(p, repetition, site, held);
      };
      if (!strategy.shards_parameters()) part(first, from, false);
      part(from, to, true);
      if (!strategy.shards_parameters()) part(to, end, false);
    }
  }

  static const PlanData& valid(const PlanData& made) {
    require_valid(made);
    return made;
  }
  // An upper bound of the calls that a rank makes in any group.
  static Index most_calls(const PlanData& made) {
    Index most = 0;
    for (int s = 0; s < int(made.stages.size()); ++s) {
      Index calls = 0;
      for_each_call(made, s, [&](const LedgerEntry&) { ++calls; });
      most = std::max(most, calls);
    }
    return most;
  }

 public:
  PlanData plan;
  Groups<Communicator> groups;
  RankPlace place;
  Arenas arenas;
  WalkerType walker;
  Store store;
  ModelCode<Real> code;
};

}  // namespace weft
