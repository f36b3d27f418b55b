// SPDX-License-Identifier: Apache-2.0
// What a rank sends over each axis in a step: the calls of the ledger as rings send them, which is how papers count volume.
#pragma once

#include "weft/plan/ledger.hpp"
#include "weft/report/convention.hpp"
#include "weft/report/group_route.hpp"

namespace weft {

// Elements that one of p ranks sends: an all-reduce is a reduce-scatter and an all-gather, each of them n·(p-1)/p of n elements.
constexpr double sent_elems(const CallRecord& call, Index ranks) {
  const double count = double(call.count), p = double(ranks);
  switch (call.operation) {
    case Operation::all_reduce: return 2 * count * (p - 1) / p;
    case Operation::reduce_scatter:
    case Operation::all_gather:
    case Operation::all_to_all: return count * (p - 1);  // count is one rank's part
    case Operation::send: return count;
    case Operation::broadcast:
    case Operation::reduce: return count;
    default: return 0;
  }
}

// How many ranks meet in a call of the ledger.
constexpr Index ranks_of(const PlanData& plan, const LedgerEntry& entry) {
  const StrategyData& strategy = plan.strategy;
  switch (entry.group) {
    case GroupKind::world: return strategy.ranks;
    case GroupKind::data: return strategy.data();
    case GroupKind::pipe: return 2;
    case GroupKind::tensor: return strategy.tensor();
    case GroupKind::shard: return strategy.shards();
    case GroupKind::replica: return strategy.replicas();
    case GroupKind::tie: return Index(plan.ties[std::size_t(entry.number)].stages.size());
    case GroupKind::copies: return entry.copies;
  }
  return 1;
}

// Bytes by GroupKind.
struct Volume {
  double bytes[num_group_kinds]{};

  constexpr double operator[](GroupKind kind) const { return bytes[int(kind)]; }
  constexpr double total() const {
    double sum = 0;
    for (double each : bytes) sum += each;
    return sum;
  }
};

// Of a rank of a stage and a step; of a policy of synchronisation that speaks every so many updates, the mean. Where a convention divides
// messages, a rank sends its slice, and gathers the others' within its tensor group.
constexpr Volume volume(const PlanData& plan, int stage, const Convention& convention) {
  Volume out;
  const double tensor = double(plan.graph.tensor_ranks);
  for_each_kind_of_call(plan, stage, [&](const LedgerEntry& entry, Index count) {
    const double times = double(count) / double(entry.phase == LedgerPhase::synchronise ? plan.strategy.sync.every : 1);
    const double bytes = times * sent_elems(entry.call, ranks_of(plan, entry)) * element_bytes(entry, convention);
    const bool divides = entry.phase == LedgerPhase::message && convention.divides_messages && !entry.divided;
    out.bytes[int(entry.group)] += divides ? bytes / tensor : bytes;
    if (divides && entry.call.operation == Operation::receive)
      out.bytes[int(GroupKind::tensor)] += times * double(entry.call.count) * convention.activation_bytes * (tensor - 1) / tensor;
  });
  return out;
}

}  // namespace weft
