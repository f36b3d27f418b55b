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
    const auto all = [&](Index d, Index s, Index t, auto&& visit) {
      for (Index i = 0; i < d; ++i)
        for (Index j = 0; j < s; ++j)
          for (Index k = 0; k < t; ++k) visit(RankPlace{i, j, k});
    };
    at(GroupKind::world) = route(strategy_.ranks, divide_up(strategy_.ranks, cluster.devices_per_node));
    all(1, stages, tensor, [&](RankPlace p) { widen(GroupKind::data, data, [&](Index i) { return RankPlace{i, p.stage, p.tensor}; }); });
    all(data, stages, 1, [&](RankPlace p) { widen(GroupKind::tensor, tensor, [&](Index i) { return RankPlace{p.data, p.stage, i}; }); });
    all(data, 1, tensor, [&](RankPlace p) { widen(GroupKind::pipe, stages, [&](Index i) { return RankPlace{p.data, i, p.tensor}; }); });
    all(data / shards, stages, tensor, [&](RankPlace p) {
      widen(GroupKind::shard, shards, [&](Index i) { return RankPlace{p.data * shards + i, p.stage, p.tensor}; });
    });
    all(shards, stages, tensor, [&](RankPlace p) {
      widen(GroupKind::replica, data / shards, [&](Index i) { return RankPlace{i * shards + p.data, p.stage, p.tensor}; });
    });
    for (const TieData& tie : plan.ties)
      all(data, 1, tensor, [&](RankPlace p) {
        widen(GroupKind::tie, Index(tie.stages.size()), [&](Index i) { return RankPlace{p.data, tie.stages[std::size_t(i)], p.tensor}; });
      });
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
  // The group that lies on the most nodes counts: all groups of a kind work at the same time, and wait for each other sooner or later.
  template <class Member>
  constexpr void widen(GroupKind kind, Index ranks, Member&& member) {
    Index nodes = 1;
    for (Index i = 1; i < ranks; ++i) nodes += node(member(i)) != node(member(i - 1));
    if (ranks > at(kind).ranks || nodes > at(kind).nodes) at(kind) = route(ranks, nodes);
  }

  const StrategyData& strategy_;
  Cluster cluster_;
  Route routes_[num_group_kinds]{};
};

}  // namespace weft
