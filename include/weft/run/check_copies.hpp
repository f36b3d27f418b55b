// SPDX-License-Identifier: Apache-2.0
// Whether ranks that are to hold the same do: a check for whoever doubts a strategy, a layer's sharding rule or a file.
#pragma once

#include <cstring>
#include <vector>

#include "weft/base/error.hpp"
#include "weft/base/hash.hpp"
#include "weft/graph/split.hpp"
#include "weft/run/groups.hpp"

namespace weft {

// Of elements of a parameter: a sum of numbers that each depend on one element and its place, so that the hashes of parts add up.
template <class Real>
std::int64_t hash_of(const Real* data, Index count, Index first_place) {
  std::int64_t sum = 0;
  for (Index i = 0; i < count; ++i) {
    std::int64_t bits = 0;
    std::memcpy(&bits, data + i, sizeof(Real));
    sum += std::int64_t(Fingerprint().add(bits).add(first_place + i).value() >> 33);  // so small that no sum overflows
  }
  return sum;
}

// Compares, bit for bit, parameters and buffers that several ranks keep: data ranks, unless each updates on its own, or the replicas of
// what they keep as shards; the ranks of a tensor group, what is not divided, and key/value heads that neighbours share; the stages of a
// tie. Communication: a number for every parameter in each group that keeps it, and one more in the world. Collective; between steps.
// Errors: weft[copies.differ], on all ranks, with the name and the first rank that differs from one before it in its group.
template <class EngineType>
void check_copies(EngineType& engine) {
  using Held = typename EngineType::State::Held;
  const PlanData& plan = engine.plan();
  auto& groups = engine.state().groups;
  const int stage = engine.state().stage_number();
  std::vector<std::int64_t> hashes;
  std::int64_t fault[2] = {0, 0};  // parameter + 1, repetition
  const auto compare = [&](auto& group, std::int64_t own, int parameter, Index repetition) {
    hashes.assign(std::size_t(group.size()), 0);
    group.all_gather(hashes.data(), static_cast<const std::int64_t*>(&own), 1);
    for (int r = 0; r < group.rank(); ++r)  // the later of two says it
      if (hashes[std::size_t(r)] != own && fault[0] == 0) fault[0] = parameter + 1, fault[1] = repetition;
  };
  struct Piece {
    int parameter;
    Index repetition;
    Held held;
  };
  std::vector<Piece> pieces;
  engine.state().for_each_held([&](int p, Index repetition, const ParameterSite&, const Held& held) {
    pieces.push_back({p, repetition, held});
  });
  // Of elements begin … end - 1 of what this rank's shard group, or the rank, has of a parameter.
  const auto hash = [&](int p, Index repetition, Index begin, Index end, bool is_sharded) {
    std::int64_t sum = 0;
    for (const Piece& piece : pieces) {
      if (piece.parameter != p || piece.repetition != repetition) continue;
      const Held& held = piece.held;
      const Index from = begin > held.first ? begin : held.first, to = end < held.first + held.elems ? end : held.first + held.elems;
      if (from < to) sum += hash_of(held.data + (from - held.first), to - from, from - begin);
    }
    if (is_sharded) groups[GroupKind::shard].all_reduce(&sum, 1, Reduction::sum);
    return sum;
  };
  for (int p = 0; p < int(plan.graph.parameters.size()); ++p) {
    const ParameterSite& site = plan.graph.parameters[std::size_t(p)];
    for (Index repetition = 0; site.owner == p && repetition < plan.graph.frame_of(site).count; ++repetition) {
      if (plan.first_elem(stage, p, repetition) < 0) continue;
      const bool is_sharded = site.facts.kind != ParameterKind::buffer && plan.strategy.shards_parameters();
      const GroupKind replicas = is_sharded ? GroupKind::replica : GroupKind::data;
      const std::int64_t own = hash(p, repetition, 0, site.facts.elems(), is_sharded);
      if (groups.has(replicas) && !plan.strategy.updates_alone()) compare(groups[replicas], own, p, repetition);
      if (groups.has(GroupKind::tensor) && site.split.dimension < 0) compare(groups[GroupKind::tensor], own, p, repetition);
      for (const Stretch& stretch : plan.summed) {
        const Index begin = stretch.first - site.offset, end = begin + stretch.elems;
        const bool mine = stretch.frame == plan.graph.leaves[std::size_t(site.leaf)].frame && begin >= 0 && end <= site.facts.elems();
        if (mine && stretch.ranks != plan.graph.tensor_ranks)
          compare(groups.summing(stretch), hash(p, repetition, begin, end, is_sharded), p, repetition);
      }
      for (std::size_t t = 0; t < plan.ties.size(); ++t)
        if (plan.ties[t].parameter == p && plan.ties[t].contains(stage)) compare(groups.tie(t), own, p, repetition);
    }
  }
  std::vector<std::int64_t> all(2 * std::size_t(groups.world().size()), 0);
  groups.world().all_gather(all.data(), static_cast<const std::int64_t*>(fault), 2);
  for (std::size_t r = 0; 2 * r < all.size(); ++r)
    if (all[2 * r] > 0)
      throw Error("copies.differ",
                  text_of("ranks that are to hold the same parameter differ in it; a layer's sharding rule, or what wrote to the "
                          "parameter, is wrong (",
                          path_of(plan.graph, int(all[2 * r]) - 1, Index(all[2 * r + 1])), ", rank ", r, ")"));
}

}  // namespace weft
