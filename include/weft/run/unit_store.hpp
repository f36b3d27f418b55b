// SPDX-License-Identifier: Apache-2.0
// Where a rank has the parameters and gradients of each unit: in its arenas, or, where they are sharded, in buffers that are gathered
// before use and divided after it.
#pragma once

#include <cstring>

#include "weft/plan/make_plan.hpp"
#include "weft/run/arenas.hpp"
#include "weft/run/groups.hpp"

namespace weft {

// A unit of this stage, or a guest: what is sharded as one.
struct Block {
  Index unit = 0;
  int guest = -1;  // number among the stage's guests
  Index first = 0, elems = 0;
  bool resident = false;  // other units use it too: whole all the time
  Index resident_first = 0;
};

template <class Real, class WalkerType, class Communicator>
class UnitStore {
 public:
  UnitStore(const PlanData& plan, int stage, Arenas& arenas, WalkerType& walker, Groups<Communicator>& groups)
      : plan_(plan), stage_(stage), arenas_(arenas), walker_(walker), groups_(groups) {
    const StageData& data = plan.stages[std::size_t(stage)];
    Index residents = 0;
    const auto add = [&](Block block) {
      block_of_unit_.resize(std::max(block_of_unit_.size(), std::size_t(block.unit) + 1), -1);
      if (block.guest < 0) block_of_unit_[std::size_t(block.unit)] = int(blocks_.size());
      block.resident_first = residents;
      if (block.resident) residents += block.elems;
      blocks_.push_back(block);
    };
    for (int c : data.chunks)
      for (Index u = plan.chunks[std::size_t(c)].first_unit; u < plan.chunks[std::size_t(c)].end_unit; ++u) {
        const UnitData& unit = plan.units[std::size_t(u)];
        add({u, -1, unit.first_parameter_elem, unit.parameter_elems, plan.is_shared(u)});
      }
    for (std::size_t g = 0; g < data.guests.size(); ++g)
      add({data.guests[g].unit, int(g), data.guests[g].first_elem, data.guests[g].elems, true});
    largest_ = aligned_elems(data.largest_unit_elems);
    resident_elems_ = aligned_elems(residents);
    for (const Block& block : blocks_) {
      Real* parameters = strategy().shards_parameters() ? (block.resident ? resident_parameters(block) : nullptr)
                                                        : arenas.parameters.as<Real>() + block.first;
      Real* gradients = strategy().reproducible         ? leaf_gradients(block)
                        : strategy().shards_gradients() ? (block.resident ? resident_gradients(block) : nullptr)
                                                        : arenas.gradients.as<Real>() + block.first;
      if (block.guest >= 0)
        walker.set_guest(data.guests[std::size_t(block.guest)].parameter, parameters, gradients);
      else
        walker.set_unit(block.unit, parameters ? parameters : gather_buffer(block.unit), gradients ? gradients : scatter_buffer());
    }
  }

  const std::vector<Block>& blocks() const { return blocks_; }
  const Block& block_of_unit(Index unit) const { return blocks_[std::size_t(block_of_unit_[std::size_t(unit)])]; }

  // visit(block, site, first): every parameter that this stage owns or has as a guest, in the order of the arena, where it begins
  // at element `first`, as if it were whole.
  template <class Visit>
  void for_each_parameter(Visit&& visit) const {
    for (const Block& block : blocks_) {
      if (block.guest >= 0) {
        const GuestData& guest = plan_.stages[std::size_t(stage_)].guests[std::size_t(block.guest)];
        const ParameterSite& site = plan_.graph.parameters[std::size_t(guest.parameter)];
        visit(block, site, block.first + site.offset);
        continue;
      }
      const FrameSite& frame = plan_.graph.frames[std::size_t(plan_.units[std::size_t(block.unit)].frame)];
      for (int l = frame.first_leaf; l < frame.first_leaf + frame.num_leaves; ++l) {
        const LeafSite& leaf = plan_.graph.leaves[std::size_t(l)];
        for (int p = leaf.first_parameter; p < leaf.first_parameter + leaf.facts.parameters.size(); ++p) {
          const ParameterSite& site = plan_.graph.parameters[std::size_t(p)];
          if (site.owner == p && site.facts.kind != ParameterKind::buffer) visit(block, site, block.first + site.offset);
        }
      }
    }
  }

  Index shards() const { return strategy().shards(); }
  Index shard() const { return shards() == 1 ? 0 : groups_shard(); }
  // This rank's part of a block: where it begins in the block, and how long it is.
  Index own_elems(const Block& block) const { return block.elems / shards(); }
  Index own_first(const Block& block) const { return shard() * own_elems(block); }
  Index state_first(const Block& block) const { return block.first / shards(); }
  // The part itself.
  Real* own_parameters(const Block& block) const {
    return arenas_.parameters.template as<Real>() + (strategy().shards_parameters() ? state_first(block) : block.first + own_first(block));
  }
  Real* own_gradients(const Block& block) const {
    return arenas_.gradients.template as<Real>() + (strategy().shards_gradients() ? state_first(block) : block.first + own_first(block));
  }

  // In the reproducible mode: where a micro-batch's gradients of a block start from nothing, before they are folded.
  Real* leaf_gradients(const Block& block) const {
    Real* leaf = arenas_.fold.template as<Real>();
    return block.guest < 0 ? leaf : leaf + largest_ + (block.first - first_guest_elem());
  }
  // And where the parts of all data ranks meet, of one level: as many elements as the block has.
  Real* fold_buffer(Index level) const {
    Index guests = 0, largest = plan_.stages[std::size_t(stage_)].largest_unit_elems;
    for (const GuestData& guest : plan_.stages[std::size_t(stage_)].guests) guests += guest.elems, largest = std::max(largest, guest.elems);
    return arenas_.fold.template as<Real>() + largest_ + aligned_elems(guests) + level * aligned_elems(largest);
  }

  // Makes the parameters of a unit whole. The last three that were asked for stay so.
  void gather(Index unit) {
    const Block& block = block_of_unit(unit);
    if (!strategy().shards_parameters() || block.resident || block.elems == 0) return;
    groups_[GroupKind::shard].all_gather(gather_buffer(unit), static_cast<const Real*>(own_parameters(block)), own_elems(block), unit + 1);
  }
  // Before backward of a unit: its gradients of this micro-batch start from nothing.
  void open_gradients(Index unit) {
    const Block& block = block_of_unit(unit);
    if (!strategy().shards_gradients() || block.resident) return;
    std::memset(scatter_buffer(), 0, std::size_t(block.elems) * sizeof(Real));
  }
  // After it: every rank adds its part, summed over the ranks, to what it has.
  template <class Add>
  void scatter(Index unit, Add&& add) {
    const Block& block = block_of_unit(unit);
    if (!strategy().shards_gradients() || block.resident || block.elems == 0) return;
    Real* whole = scatter_buffer();
    reduce_own_part(block, whole);
    add(own_elems(block), static_cast<const Real*>(whole + own_first(block)), own_gradients(block));
  }
  // Once a step: what is not divided a micro-batch at a time.
  template <class Copy>
  void scatter_rest(Copy&& copy) {
    const Shard sharding = strategy().sharding();
    if (sharding == Shard::none || strategy().reproducible) return;
    for (const Block& block : blocks_) {
      if (block.elems == 0 || (sharding != Shard::optimizer && !block.resident)) continue;
      Real* whole = sharding == Shard::optimizer ? arenas_.gradients.template as<Real>() + block.first : resident_gradients(block);
      reduce_own_part(block, whole);
      if (sharding != Shard::optimizer) copy(own_elems(block), static_cast<const Real*>(whole + own_first(block)), own_gradients(block));
    }
    if (strategy().replicas() > 1)
      for (const Block& block : blocks_)
        if (block.elems > 0) groups_[GroupKind::replica].all_reduce(own_gradients(block), own_elems(block), Reduction::sum, block.unit + 1);
  }
  // After the update: everybody who keeps a block whole gets the parts of the others.
  void publish() {
    if (strategy().sharding() == Shard::none) return;
    for (const Block& block : blocks_) {
      if (block.elems == 0 || (strategy().shards_parameters() && !block.resident)) continue;
      Real* whole = strategy().shards_parameters() ? resident_parameters(block) : arenas_.parameters.template as<Real>() + block.first;
      groups_[GroupKind::shard].all_gather(whole, static_cast<const Real*>(own_parameters(block)), own_elems(block), block.unit + 1);
    }
  }
  void clear_resident_gradients() {
    if (!strategy().shards_gradients()) return;
    for (const Block& block : blocks_)
      if (block.resident) std::memset(resident_gradients(block), 0, std::size_t(block.elems) * sizeof(Real));
  }

  // A block as a whole, wherever its parts are: in `buffer` if it is nowhere. Collective over the shard group, no part of a step.
  const Real* whole_parameters(const Block& block, Real* buffer) {
    if (!strategy().shards_parameters()) return arenas_.parameters.template as<Real>() + block.first;
    groups_[GroupKind::shard].all_gather(buffer, static_cast<const Real*>(own_parameters(block)), own_elems(block));
    return buffer;
  }

 private:
  static Index aligned_elems(Index elems) { return round_up(elems * Index(sizeof(Real)), alignment_bytes) / Index(sizeof(Real)); }
  Index first_guest_elem() const { return plan_.stages[std::size_t(stage_)].guests[0].first_elem; }
  const StrategyData& strategy() const { return plan_.strategy; }
  Index groups_shard() const { return plan_.strategy.place(groups_.world().rank()).data % shards(); }

  // The gathered arena: scatter buffers, resident gradients (where gradients are sharded), gather buffers, resident parameters.
  Real* gathered() const { return arenas_.gathered.template as<Real>(); }
  Real* scatter_buffer() const { return strategy().shards_gradients() ? gathered() : nullptr; }
  Real* resident_gradients(const Block& block) const { return gathered() + num_scatter_buffers * largest_ + block.resident_first; }
  Real* gather_buffers() const {
    return gathered() + (strategy().shards_gradients() ? num_scatter_buffers * largest_ + resident_elems_ : 0);
  }
  Real* gather_buffer(Index unit) const {
    return strategy().shards_parameters() ? gather_buffers() + unit % num_gather_buffers * largest_ : nullptr;
  }
  Real* resident_parameters(const Block& block) const { return gather_buffers() + num_gather_buffers * largest_ + block.resident_first; }

  void reduce_own_part(const Block& block, Real* whole) {
    groups_[GroupKind::shard].reduce_scatter(whole + own_first(block), static_cast<const Real*>(whole), own_elems(block), Reduction::sum,
                                             block.unit + 1);
  }

  const PlanData& plan_;
  int stage_;
  Arenas& arenas_;
  WalkerType& walker_;
  Groups<Communicator>& groups_;
  std::vector<Block> blocks_;
  std::vector<int> block_of_unit_;
  Index largest_ = 0, resident_elems_ = 0;
};

}  // namespace weft
