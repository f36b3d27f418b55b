// SPDX-License-Identifier: Apache-2.0
// The reproducible mode's gradients: every micro-batch's is made apart and folded into partial sums, and these over the data ranks, always
// in the tree of plan/fold_tree.hpp.
#pragma once

#include <cstring>
#include <vector>

#include "weft/run/rank_state.hpp"

namespace weft {

template <class State>
class GradientFold {
 public:
  using Real = typename State::Real;

  explicit GradientFold(State& state) : state_(state), plan_(state.plan) {
    if (plan_.strategy.reproducible) parts_.reserve(std::size_t(plan_.fold.last * plan_.strategy.data()));
  }

  void begin_step() { std::memset(state_.arenas.fold.data(), 0, std::size_t(state_.arenas.fold.bytes())); }

  // Backward of op i of unit u has given its parameters this micro-batch's part: all of it, or what the kind of the action gives.
  void op_done(Index u, int i, ActionKind kind, int micro) {
    const FrameSite& frame = plan_.graph.frames[std::size_t(plan_.units[std::size_t(u)].frame)];
    const OpSite& op = plan_.graph.ops[std::size_t(frame.first_op + i)];
    if (op.kind != OpKind::leaf) return;
    const bool has_weight_part = state_.code.leaves[op.leaf].backward_weight != nullptr;
    if (kind != ActionKind::backward && has_weight_part != (kind == ActionKind::backward_weight)) return;
    const LeafSite& leaf = plan_.graph.leaves[std::size_t(op.leaf)];
    for (int p = leaf.first_parameter; p < leaf.first_parameter + leaf.facts.parameters.size(); ++p) {
      const ParameterSite& site = plan_.graph.parameters[std::size_t(p)];
      if (site.facts.kind == ParameterKind::buffer) continue;
      const ParameterSite& owner = plan_.graph.parameters[std::size_t(site.owner)];
      const Block* block = &state_.store.block_of_unit(u);
      if (site.owner != p) {
        block = guest_block(site.owner);
        if (block == nullptr) continue;  // tied within the unit: complete with the owner, which comes before it in the model
      }
      const Index elems = round_up(owner.facts.elems(), parameter_alignment_elems);
      push(block->first + owner.offset, state_.store.leaf_gradients(*block) + owner.offset, elems, micro);
    }
  }

  // Once a step: over the micro-batches of all data ranks. Communication: LedgerPhase::fold. The sums are then where gradients are without
  // this mode: whole, or each rank's own shard of them.
  void finish() {
    for (const Block& block : state_.store.blocks()) {
      if (block.elems == 0) continue;
      Real* sums = level(0) + block.first;
      parts_.clear();
      if (plan_.strategy.data() == 1) {
        Index number = 0;
        for_each_node(0, plan_.micros, [&](const FoldNode& node) { take(level(number++) + block.first, node, block.elems); });
        fold_rest(block.elems);
        continue;
      }
      auto& group = state_.groups[GroupKind::data];
      const Index slice = block.elems / plan_.strategy.data();
      for (Index l = 0; l < plan_.fold.last; ++l)
        group.all_to_all(state_.store.fold_buffer(l), static_cast<const Real*>(level(l) + block.first), slice, block.unit + 1);
      for (Index rank = 0; rank < plan_.strategy.data(); ++rank) {
        Index number = 0;
        for_each_node(rank * plan_.micros, (rank + 1) * plan_.micros,
                      [&](const FoldNode& node) { take(state_.store.fold_buffer(number++) + rank * slice, node, slice); });
      }
      fold_rest(slice);
      Real* own = sums + state_.place.data * slice;
      std::memcpy(own, parts_[0].data, std::size_t(slice) * sizeof(Real));
      if (plan_.strategy.shards() != plan_.strategy.data()) group.all_gather(sums, static_cast<const Real*>(own), slice, block.unit + 1);
    }
    add_own_ties();
  }

 private:
  struct Part {
    Real* data;
    FoldNode node;
  };

  Real* level(Index number) const {
    return state_.gradients() + number * (state_.arenas.gradients.bytes() / plan_.fold.most / Index(sizeof(Real)));
  }
  const Block* guest_block(int owner) const {
    for (const Block& block : state_.store.blocks())
      if (block.guest >= 0 && state_.stage().guests[std::size_t(block.guest)].parameter == owner) return &block;
    return nullptr;
  }
  static void add(Index elems, const Real* right, Real* left) { State::Kernels::add(elems, static_cast<const Real*>(left), right, left); }

  // A leaf joins the partial sums of a stretch of the arena; what they are follows from its number alone.
  void push(Index first, Real* leaf, Index elems, int micro) {
    const Index begin = state_.place.data * plan_.micros, number = begin + micro;
    Index nodes = num_nodes(begin, number);
    FoldNode node{number, 1};
    Real* top = leaf;
    for (; nodes > 0; --nodes) {
      FoldNode before;
      Index seen = 0;
      for_each_node(begin, number, [&](const FoldNode& each) {
        if (++seen == nodes) before = each;
      });
      if (!before.joins(node)) break;
      Real* left = level(nodes - 1) + first;
      add(elems, top, left);
      top = left, node = {before.first, 2 * before.count};
    }
    if (top == leaf) std::memcpy(level(nodes) + first, leaf, std::size_t(elems) * sizeof(Real));
    std::memset(leaf, 0, std::size_t(elems) * sizeof(Real));
  }

  // Nodes from the left, into those before them.
  void take(Real* data, FoldNode node, Index elems) {
    parts_.push_back({data, node});
    while (parts_.size() > 1 && parts_[parts_.size() - 2].node.joins(parts_.back().node)) {
      Part& left = parts_[parts_.size() - 2];
      add(elems, parts_.back().data, left.data);
      left.node.count *= 2;
      parts_.pop_back();
    }
  }
  void fold_rest(Index elems) {
    for (; parts_.size() > 1; parts_.pop_back()) add(elems, parts_.back().data, parts_[parts_.size() - 2].data);
  }

  // A tie whose uses are all on this stage: the owner's sum, then the other's.
  void add_own_ties() {
    for (const TieData& tie : plan_.ties) {
      if (tie.stages.size() != 1 || tie.stages[0] != state_.stage_number()) continue;
      const Block& owner = state_.store.block_of_unit(tie.unit);
      const Block* guest = guest_block(tie.parameter);
      if (guest == nullptr) continue;
      Real *sum = state_.store.own_gradients(owner), *other = state_.store.own_gradients(*guest);
      add(state_.store.own_elems(owner), other, sum);
      std::memcpy(other, sum, std::size_t(state_.store.own_elems(owner)) * sizeof(Real));
    }
  }

  State& state_;
  const PlanData& plan_;
  std::vector<Part> parts_;
};

}  // namespace weft
