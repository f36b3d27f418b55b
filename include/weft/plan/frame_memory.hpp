// SPDX-License-Identifier: Apache-2.0
// Where the tensors of a frame live: by lifetime, from the order of its operations. One pass for values, one for gradients.
//
// What backward needs again is kept in the frame's *slot* (one a repetition and micro-batch in flight). Where backward is split, gradients
// that its weight part needs are kept in a *weight slot*. What is recomputed before backward lies in the *live* area, one for all. What is
// used within a pass only shares the *workspace*. What passes from one frame to the next without being kept alternates between two
// *boundary* buffers.
#pragma once

#include "weft/base/constexpr_vector.hpp"
#include "weft/graph/graph_data.hpp"
#include "weft/strategy/recompute.hpp"

namespace weft {

enum class Storage : char {
  none,
  slot,
  weight_slot,
  live,
  workspace,
  boundary,
  boundary_input
};  // boundary: on the output side of the frame

struct Place {
  Storage storage = Storage::none;
  Index offset = 0;  // bytes
  bool operator==(const Place&) const = default;
};

// Forward ops to run again before the backward op `before`.
struct Rerun {
  int before = 0, first = 0, last = 0;
};

struct FrameMemory {
  std::vector<Place> values{}, gradients{};         // by tensor of the frame; tensor 0's value is the output of the unit before
  std::vector<Place> gradient_parts{};              // by op: where a layer that cannot add its input gradient puts it before it is added
  std::vector<Place> saved{};                       // by leaf of the frame, then by saved tensor (4 each)
  std::vector<Rerun> reruns{};                      // in backward's order
  std::vector<char> copies_second{};                // by op: the gradient of `second` is copied or added, not shared
  std::vector<char> first_input{}, first_second{};  // by op: nothing was written yet to the gradient of input, of second
  Index slot_bytes = 0, weight_slot_bytes = 0, live_bytes = 0, forward_workspace_bytes = 0, backward_workspace_bytes = 0;
  Index output_value_bytes = 0, output_gradient_bytes = 0, input_gradient_bytes = 0;  // in boundary buffers; 0: none there
  bool flips = true;                                       // the input's gradient is not the memory of the output's
  bool output_kept = false, output_gradient_kept = false;  // in the slot; else a boundary buffer
  bool input_gradient_alone = false;                       // of the input itself only: none where the unit is the model's first
  Index output_value_offset = 0, output_gradient_offset = 0;
  Index output_gradient_slot_bytes = 0;  // of the weight slot, at its end: unused where a message or the loss brings the gradient
};

struct MemoryFacts {
  Index rows = 0;  // capacity of a micro-batch
  Index real_bytes = 4;
  bool wide = false;            // several micro-batches are in flight between joins
  bool split_backward = false;  // the weight part of backward comes later
  Recompute recompute = Recompute::none;
};

constexpr Index tensor_bytes(Features features, const MemoryFacts& facts) {
  return round_up(facts.rows * features.elems() * (features.element == Element::token ? 4 : facts.real_bytes), alignment_bytes);
}

// Rows of a tensor of one rank of a tensor group: its slice; or all of them, where a collective works on it with room for equal slices.
constexpr Index row_capacity(Index rows, const GraphData& graph, bool divided, bool gathered) {
  const Index slice = divide_up(rows, graph.tensor_ranks);
  return divided ? slice : gathered ? slice * graph.tensor_ranks : rows;
}

// First-fit packing of intervals over an op order: largest first, each at the lowest offset where no overlapping interval lies.
class IntervalPacker {
 public:
  constexpr void add(int tag, int from, int to, Index bytes) { items_.push_back({tag, from, to, bytes, 0}); }

  // Calls place(tag, offset); returns the bytes of all.
  template <class Function>
  constexpr Index pack(Function&& place) {
    for (std::size_t i = 1; i < items_.size(); ++i)  // insertion sort: few items, and std::sort costs constexpr steps
      for (std::size_t j = i; j > 0 && items_[j].bytes > items_[j - 1].bytes; --j) {
        const Item item = items_[j];
        items_[j] = items_[j - 1], items_[j - 1] = item;
      }
    Index end = 0;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      Item& item = items_[i];
      for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t j = 0; j < i; ++j) {
          const Item& other = items_[j];
          if (item.from > other.to || other.from > item.to) continue;
          if (item.offset >= other.offset + other.bytes || other.offset >= item.offset + item.bytes) continue;
          item.offset = other.offset + other.bytes, moved = true;
        }
      }
      end = item.offset + item.bytes > end ? item.offset + item.bytes : end;
      place(item.tag, item.offset);
    }
    return end;
  }

 private:
  struct Item {
    int tag, from, to;
    Index bytes, offset;
  };
  std::vector<Item> items_{};
};

// Whether op i of a frame is a layer in two parts whose input's gradient is summed over the tensor group by op i - 1: that may go on while
// the layer computes its parameters' gradients.
constexpr bool overlaps_backward(const GraphData& graph, const FrameSite& frame, int i) {
  if (i < 1) return false;
  const OpSite &op = graph.ops[std::size_t(frame.first_op + i)], &before = graph.ops[std::size_t(frame.first_op + i - 1)];
  return op.kind == OpKind::leaf && before.kind == OpKind::enter && op.input == before.output &&
         graph.leaves[std::size_t(op.leaf)].facts.splits_backward;
}

// What is known of a frame's tensors before they get a place.
class FrameLifetimes {
 public:
  constexpr FrameLifetimes(const GraphData& graph, int frame_index) : graph_(&graph), frame_(graph.frames[std::size_t(frame_index)]) {
    const Index n = frame_.num_tensors;
    producer = filled(n, -1), last_use = filled(n, -1), num_uses = filled(n, 0), kept = filled(n, char(0)), weighs = kept, gathered = kept;
    for (int i = 0; i < frame_.num_ops; ++i) {
      const OpSite& site = op(i);
      if (site.kind != OpKind::place || producer[std::size_t(site.output)] < 0) producer[std::size_t(site.output)] = i;
      use(site.input, i);
      if (site.kind >= OpKind::gather_rows && site.kind <= OpKind::slice_rows)
        gathered[std::size_t(site.input)] = gathered[std::size_t(site.output)] = 1;
      if (site.second >= 0) use(site.second, i);
      if (site.kind == OpKind::place) last_use[std::size_t(site.output)] = i;
      if (site.kind == OpKind::leaf) {
        if (leaf(i).facts.needs_input) kept[std::size_t(site.input)] = 1;
        if (leaf(i).facts.needs_output) kept[std::size_t(site.output)] = 1;
        if (leaf(i).facts.splits_backward) weighs[std::size_t(site.output)] = 1;
        if (leaf(i).facts.join_elems > 0) joins.push_back(i);
      }
    }
    last_use[std::size_t(frame_.output)] = frame_.num_ops;  // by the next frame
    gradient_end = producer;
    for (int i = 0; i < frame_.num_ops; ++i)
      if (overlaps_backward(graph, frame_, i)) gradient_end[std::size_t(op(i).output)] = i - 1;
  }

  constexpr const OpSite& op(int i) const { return graph_->ops[std::size_t(frame_.first_op + i)]; }
  constexpr const LeafSite& leaf(int i) const { return graph_->leaves[std::size_t(op(i).leaf)]; }
  constexpr Index bytes(int tensor, const MemoryFacts& facts) const {
    MemoryFacts own = facts;
    own.rows = row_capacity(facts.rows, *graph_, graph_->rows_divided[std::size_t(frame_.first_tensor + tensor)] != 0,
                            gathered[std::size_t(tensor)] != 0);
    return tensor_bytes(features(tensor), own);
  }
  constexpr Features features(int tensor) const { return graph_->tensors[std::size_t(frame_.first_tensor + tensor)]; }

  // Alive from op `from` to op `to` of the forward order, across a point where all micro-batches meet.
  constexpr bool crosses_forward(int from, int to) const {
    for (int join : joins)
      if (from < join && join <= to) return true;
    return false;
  }
  // The same for a gradient: written at op `from`, last read at op `to` <= from.
  constexpr bool crosses_backward(int from, int to) const {
    for (int join : joins)
      if (to <= join && join < from) return true;
    return false;
  }

  std::vector<int> gradient_end{};  // by tensor: the op up to which its gradient is read, in backward
  std::vector<int> producer{}, last_use{}, num_uses{}, joins{};
  std::vector<char> kept{};
  std::vector<char> gathered{};  // all rows of all ranks, or a slice of them, is what a collective takes or gives
  std::vector<char> weighs{};    // the gradient of this tensor is needed by the weight part of backward

 private:
  constexpr void use(int tensor, int i) { last_use[std::size_t(tensor)] = i, ++num_uses[std::size_t(tensor)]; }

  const GraphData* graph_;
  FrameSite frame_;
};

}  // namespace weft
