// SPDX-License-Identifier: Apache-2.0
// Where the groups of a mesh lie on a cluster: ranks fill nodes in order, so the last axis is the closest.
#pragma once

#include "weft/plan/plan_data.hpp"
#include "weft/report/cluster.hpp"

namespace weft {

inline constexpr int num_group_kinds = int(GroupKind::copies) + 1;

class GroupRoutes {
 public:
  constexpr GroupRoutes(const PlanData& plan, const Cluster& cluster) : strategy_(plan.strategy), cluster_(cluster) {
    const Index data = strategy_.data(), stages = strategy_.stages(), tensor = strategy_.tensor(), shards = strategy_.shards();
    at(GroupKind::world) = route(strategy_.ranks, divide_up(strategy_.ranks, cluster.devices_per_node));
    for (Index s = 0; s < stages; ++s)
      for (Index t = 0; t < tensor; ++t) {
        widen(GroupKind::data, data, {0, s, t}, {1, 0, 0});
        for (Index d = 0; d < data; d += shards) widen(GroupKind::shard, shards, {d, s, t}, {1, 0, 0});
        for (Index d = 0; d < shards; ++d) widen(GroupKind::replica, data / shards, {d, s, t}, {shards, 0, 0});
      }
    for (Index d = 0; d < data; ++d) {
      for (Index s = 0; s < stages; ++s) widen(GroupKind::tensor, tensor, {d, s, 0}, {0, 0, 1});
      for (Index t = 0; t < tensor; ++t) {
        widen(GroupKind::pipe, stages, {d, 0, t}, {0, 1, 0});
        for (const TieData& tie : plan.ties)
          for (std::size_t i = 1; i < tie.stages.size(); ++i)
            widen(GroupKind::tie, 2, {d, tie.stages[i - 1], t}, {0, tie.stages[i] - tie.stages[i - 1], 0});
      }
    }
    for (const TieData& tie : plan.ties)
      if (Index(tie.stages.size()) > at(GroupKind::tie).ranks) at(GroupKind::tie).ranks = Index(tie.stages.size());
  }

  constexpr const Route& operator[](GroupKind kind) const { return routes_[std::size_t(kind)]; }
  // Of a call: neighbours in a tensor group that have the same are as many as the call says.
  constexpr Route of(const LedgerEntry& entry) const {
    if (entry.group != GroupKind::copies) return (*this)[entry.group];
    return {entry.copies, 1, (*this)[GroupKind::tensor].link};
  }

  // From one stage to another: between nodes if any pair of ranks is.
  constexpr Route hop(Index from, Index to) const {
    if (from == to) return {};
    for (Index d = 0; d < strategy_.data(); ++d)
      for (Index t = 0; t < strategy_.tensor(); ++t)
        if (node({d, from, t}) != node({d, to, t})) return route(2, 2);
    return route(2, 1);
  }

 private:
  constexpr Index node(RankPlace place) const { return strategy_.rank(place) / cluster_.devices_per_node; }
  constexpr Route route(Index ranks, Index nodes) const { return {ranks, nodes, nodes > 1 ? cluster_.between : cluster_.inside}; }
  constexpr Route& at(GroupKind kind) { return routes_[std::size_t(kind)]; }
  // A group of a kind: first, first + step, … The one that lies on the most nodes counts: all groups of a kind work at the same time, and
  // wait for each other sooner or later.
  constexpr void widen(GroupKind kind, Index ranks, const RankPlace& first, const RankPlace& step) {
    Index nodes = 1, before = node(first);
    for (Index i = 1; i < ranks; ++i) {
      const Index now = node({first.data + i * step.data, first.stage + i * step.stage, first.tensor + i * step.tensor});
      nodes += now != before, before = now;
    }
    if (ranks > at(kind).ranks || nodes > at(kind).nodes) at(kind) = route(ranks, nodes);
  }

  const StrategyData& strategy_;
  Cluster cluster_;
  Route routes_[num_group_kinds]{};
};

}  // namespace weft
