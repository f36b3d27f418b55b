// SPDX-License-Identifier: Apache-2.0
// Takes micro-batches through the model, forward and backward, unit by unit, at the places that the plan gave every tensor.
#pragma once

#include <limits>
#include <vector>

#include "weft/op/leaf_table.hpp"
#include "weft/run/arenas.hpp"

namespace weft {

// Between two points where micro-batches join: from behind join `first` to join `last`, as indices into PlanData::joins; -1 and the number
// of joins are the ends of the model.
struct Segment {
  int first = -1, last = 0;
};

// What the layers need to know of a micro-batch. `slot`: which of the held activations are its own.
struct MicroBatch {
  Leading leading{};
  Index first_item = 0;  // its first sequence (or image) in the global batch: random streams count from there
  Index slot = 0;
  bool training = true;
};

// KernelSet: for what the engine does itself (adding, copying). Real: the element type.
template <class KernelSet, class Real>
class Walker {
 public:
  Walker(const PlanData& plan, ModelCode<Real> code, Arenas& arenas) : plan_(plan), code_(code), arenas_(arenas) {
    const GraphData& graph = plan.graph;
    for (std::size_t f = 0; f < graph.frames.size(); ++f)
      for (Index repetition = 0; repetition < graph.frames[f].count; ++repetition) {
        units_.push_back({int(f), repetition, slot_bytes_, false});
        slot_bytes_ += plan.activations.frames[f].slot_bytes;
      }
    // In which of the two boundary buffers the gradient of a unit's output lies, from the last unit to the first.
    bool side = !plan.activations.frames.back().output_kept && (units_.size() - 1) % 2 == 1;  // over the prediction where that is not kept
    for (std::size_t u = units_.size(); u-- > 0;) {
      units_[u].gradient_side = side;
      side ^= plan.activations.frames[std::size_t(units_[u].frame)].flips;
    }
    Index offset = 0;
    for (const JoinSite& join : plan.joins) {
      const LayerFacts& facts = graph.leaves[std::size_t(join.leaf)].facts;
      const Index sums = round_up((facts.join_elems + 1) * 8, alignment_bytes);
      joins_.push_back({offset, offset + sums, offset + 2 * sums});
      offset += 2 * sums + round_up(facts.step_elems * Index(sizeof(Real)), alignment_bytes);
    }
    for (const LeafSite& leaf : graph.leaves) {
      first_touched_.push_back(num_touched_);
      num_touched_ += leaf.facts.parameters.size() * graph.frames[std::size_t(leaf.frame)].count;
    }
    touched_.assign(std::size_t(num_touched_), 0);
  }

  // ── what the engine reads and writes ──
  std::byte* input(Index slot) const { return arenas_.inputs.data() + slot * io_bytes(plan_.graph.input); }
  std::byte* targets(Index slot) const {
    return arenas_.inputs.data() + plan_.depth * io_bytes(plan_.graph.input) + slot * io_bytes(plan_.training.target);
  }
  const Real* prediction(Index slot) const { return output_value(last_unit(), slot); }
  Real* prediction_gradient(Index slot) const { return output_gradient(last_unit(), slot); }
  double* join_sums(std::size_t join, bool backward) const {
    return arenas_.joins.as<double>(backward ? joins_[join].backward : joins_[join].forward);
  }
  void set_stream(std::uint64_t seed, std::uint64_t step) { seed_ = seed, step_ = step; }
  void set_poison(bool poison) { poison_ = poison; }
  std::vector<char>& touched() { return touched_; }
  Index first_touched(int leaf) const { return first_touched_[std::size_t(leaf)]; }
  void set_cache(Real* cache, Index capacity, const std::vector<Index>* offsets) {
    cache_ = cache, cache_capacity_ = capacity, cache_offsets_ = offsets;
  }

  void forward(Segment segment, const MicroBatch& micro) {
    const Index end = segment.last < num_joins() ? join(segment.last).unit : last_unit();
    for (Index u = segment.first < 0 ? 0 : join(segment.first).unit; u <= end; ++u) {
      const FrameSite& frame = frame_of(u);
      const bool starts = segment.first >= 0 && u == join(segment.first).unit, stops = segment.last < num_joins() && u == end;
      const int from = starts ? join(segment.first).op : 0, to = stops ? join(segment.last).op : frame.num_ops - 1;
      for (int i = from; i <= to; ++i) forward_op(u, i, micro, stops && i == to ? segment.last : -1);
    }
  }

  // Once a step: the sums of a join have met.
  void joined(std::size_t number, double rows) {
    const JoinSite& site = plan_.joins[number];
    LeafCall<Real> call = leaf_call(site.unit, site.op, MicroBatch{}, int(number), false);
    call.join_rows = rows, call.training = true;
    code_.leaves[site.leaf].joined(call);
  }

  // after(unit, op) is called when the gradients of an op's parameters have got this micro-batch's part.
  template <class After>
  void backward(Segment segment, const MicroBatch& micro, After&& after) {
    const Index end = segment.first < 0 ? 0 : join(segment.first).unit;
    for (Index u = segment.last < num_joins() ? join(segment.last).unit : last_unit(); u >= end; --u) {
      const FrameSite& frame = frame_of(u);
      const bool starts = segment.last < num_joins() && u == join(segment.last).unit, stops = segment.first >= 0 && u == end;
      const int from = starts ? join(segment.last).op : frame.num_ops - 1, to = stops ? join(segment.first).op : 0;
      for (int i = from; i >= to; --i) {
        const bool statistics = stops && i == to;
        backward_op(u, i, micro, statistics ? segment.first : -1);
        if (!statistics) after(u, i);
      }
    }
  }

  // The number of elements of the parameter arena before which gradients are incomplete, once backward has passed op i of unit u.
  Index watermark(Index u, int i) const {
    const FrameSite& frame = frame_of(u);
    return frame.first_parameter_elem + units_[std::size_t(u)].repetition * frame.parameter_elems +
           (i < frame.num_ops ? plan_.watermarks[std::size_t(frame.first_op + i)] : frame.parameter_elems);
  }

 private:
  struct Unit {
    int frame;
    Index repetition;
    Index slot_offset;
    bool gradient_side;
  };
  struct JoinPlace {
    Index forward, backward, state;
  };

  int num_joins() const { return int(plan_.joins.size()); }
  const JoinSite& join(int i) const { return plan_.joins[std::size_t(i)]; }
  Index last_unit() const { return Index(units_.size()) - 1; }
  const FrameSite& frame_of(Index u) const { return plan_.graph.frames[std::size_t(units_[std::size_t(u)].frame)]; }
  const FrameMemory& memory_of(Index u) const { return plan_.activations.frames[std::size_t(units_[std::size_t(u)].frame)]; }
  Index io_bytes(Features features) const { return tensor_bytes(features, {.rows = plan_.rows, .real_bytes = Index(sizeof(Real))}); }
  std::byte* slot_data(Index u, Index slot) const {
    return arenas_.activations.data() + slot * slot_bytes_ + units_[std::size_t(u)].slot_offset;
  }
  std::byte* boundary(bool side) const { return arenas_.boundaries.data() + (side ? plan_.activations.boundary_bytes : 0); }

  Real* at(Index u, Place place, Index slot, std::byte* output_side, std::byte* input_side) const {
    switch (place.storage) {
      case Storage::slot: return reinterpret_cast<Real*>(slot_data(u, slot) + place.offset);
      case Storage::workspace: return reinterpret_cast<Real*>(arenas_.workspace.data() + place.offset);
      case Storage::boundary: return reinterpret_cast<Real*>(output_side);
      case Storage::boundary_input: return reinterpret_cast<Real*>(input_side);
      case Storage::none: break;
    }
    return nullptr;
  }
  Real* output_value(Index u, Index slot) const {
    const FrameMemory& memory = memory_of(u);
    return memory.output_kept ? reinterpret_cast<Real*>(slot_data(u, slot) + memory.output_value_offset)
                              : reinterpret_cast<Real*>(boundary(u % 2 == 1));
  }
  Real* output_gradient(Index u, Index slot) const {
    const FrameMemory& memory = memory_of(u);
    return memory.output_gradient_kept ? reinterpret_cast<Real*>(slot_data(u, slot) + memory.output_gradient_offset)
                                       : reinterpret_cast<Real*>(boundary(units_[std::size_t(u)].gradient_side));
  }
  // The value of a tensor of a unit; tensor 0 is what the unit before gave.
  Real* value(Index u, int tensor, Index slot) const {
    if (tensor == 0) return u == 0 ? reinterpret_cast<Real*>(input(slot)) : output_value(u - 1, slot);
    return at(u, memory_of(u).values[std::size_t(tensor)], slot, boundary(u % 2 == 1), nullptr);
  }
  // Null for the gradient of the model's input, which nobody needs.
  Real* gradient(Index u, int tensor, Index slot) const {
    if (tensor == 0) return u == 0 ? nullptr : output_gradient(u - 1, slot);
    const bool side = units_[std::size_t(u)].gradient_side;
    std::byte* input_side = u == 0 ? boundary(!side) : reinterpret_cast<std::byte*>(output_gradient(u - 1, slot));
    return at(u, memory_of(u).gradients[std::size_t(tensor)], slot, boundary(side), input_side);
  }
  Index elems(Index u, int tensor) const { return plan_.graph.tensors[std::size_t(frame_of(u).first_tensor + tensor)].elems(); }

  LeafCall<Real> leaf_call(Index u, int i, const MicroBatch& micro, int join_number, bool backward) {
    const GraphData& graph = plan_.graph;
    const FrameSite& frame = frame_of(u);
    const Unit& unit = units_[std::size_t(u)];
    const OpSite& op = graph.ops[std::size_t(frame.first_op + i)];
    const LeafSite& leaf = graph.leaves[std::size_t(op.leaf)];
    LeafCall<Real> call;
    call.leading = micro.leading;
    call.first_row = micro.first_item * micro.leading.sequence;
    call.training = micro.training;
    call.input = value(u, op.input, micro.slot), call.output = value(u, op.output, micro.slot);
    call.residual = op.second >= 0 ? value(u, op.second, micro.slot) : nullptr;
    for (int p = 0; p < leaf.facts.parameters.size(); ++p) {
      const Index first = graph.first_elem(leaf.first_parameter + p, unit.repetition);
      const bool buffer = leaf.facts.parameters[p].kind == ParameterKind::buffer;
      call.parameters[p] = (buffer ? arenas_.buffers : arenas_.parameters).template as<Real>() + first;
      if (!buffer && arenas_.gradients.bytes() > 0) call.gradients[p] = arenas_.gradients.as<Real>() + first;
    }
    const std::size_t saved = std::size_t(op.leaf - frame.first_leaf) * 4;
    for (std::size_t k = 0; k < 4; ++k) call.saved[k] = slot_data(u, micro.slot) + memory_of(u).saved[saved + k];
    if (leaf.facts.join_elems > 0 && arenas_.joins.bytes() > 0) {
      const int number = join_number >= 0 ? join_number : number_of_join(u, i);
      const JoinPlace& place = joins_[std::size_t(number)];
      call.join_sums = arenas_.joins.as<double>(backward ? place.backward : place.forward);
      call.join_rows = call.join_sums[leaf.facts.join_elems];
      call.step_state = arenas_.joins.as<Real>(place.state);
    }
    if (cache_ && leaf.facts.cache_elems_per_row > 0) {
      call.cache = cache_ + (*cache_offsets_)[std::size_t(op.leaf)] +
                   unit.repetition * cache_capacity_ * leaf.facts.cache_elems_per_row;  // of one sequence
      call.cache_capacity = cache_capacity_;
    }
    call.seed = seed_, call.step = step_, call.leaf = op.leaf, call.repetition = unit.repetition, call.graph = &graph;
    call.touched = touched_.data() + first_touched_[std::size_t(op.leaf)] + unit.repetition * leaf.facts.parameters.size();
    call.scratch = {arenas_.scratch.data(), arenas_.scratch.bytes()};
    return call;
  }
  int number_of_join(Index u, int i) const {
    int number = 0;
    while (join(number).unit != u || join(number).op != i) ++number;
    return number;
  }

  // With `poison`, what nobody may read is made NaN before it is written: a lifetime that the plan has too short shows.
  void spoil(Real* data, Index count) const {
    if (poison_ && data)
      for (Index e = 0; e < count; ++e) data[e] = std::numeric_limits<Real>::quiet_NaN();
  }

  // joining >= 0: the statistics of this join only; its result comes when all micro-batches have met.
  void forward_op(Index u, int i, const MicroBatch& micro, int joining) {
    const FrameSite& frame = frame_of(u);
    const OpSite& op = plan_.graph.ops[std::size_t(frame.first_op + i)];
    const Index rows = micro.leading.rows();
    if (op.kind == OpKind::leaf) {
      LeafCall<Real> call = leaf_call(u, i, micro, joining, false);
      if (joining >= 0) return code_.leaves[op.leaf].statistics(call);
      if (call.output != call.input && call.output != call.residual) spoil(call.output, rows * elems(u, op.output));
      code_.leaves[op.leaf].forward(call);
    } else if (op.kind == OpKind::add) {
      KernelSet::add(rows * elems(u, op.output), static_cast<const Real*>(value(u, op.input, micro.slot)),
                     static_cast<const Real*>(value(u, op.second, micro.slot)), value(u, op.output, micro.slot));
    } else {
      const Index width = elems(u, op.input), stride = elems(u, op.output);
      KernelSet::copy_columns(rows, static_cast<const Real*>(value(u, op.input, micro.slot)), width,
                              value(u, op.output, micro.slot) + op.column, stride, width);
    }
  }

  // Hands `from` on as (a part of) the gradient `to`, unless they are the same memory.
  void pass_on(Index rows, const Real* from, Index stride, Real* to, Index width, bool first) {
    if (!to || to == from) return;
    if (first)
      KernelSet::copy_columns(rows, from, stride, to, width, width);
    else
      KernelSet::add_columns(rows, from, stride, to, width, width);
  }

  void backward_op(Index u, int i, const MicroBatch& micro, int joining) {
    const FrameSite& frame = frame_of(u);
    const FrameMemory& memory = memory_of(u);
    const std::size_t n = std::size_t(i);
    const OpSite& op = plan_.graph.ops[std::size_t(frame.first_op + i)];
    const Index rows = micro.leading.rows(), width = elems(u, op.input);
    const Real* dy = gradient(u, op.output, micro.slot);
    Real* dx = gradient(u, op.input, micro.slot);
    if (op.kind == OpKind::place) return pass_on(rows, dy + op.column, elems(u, op.output), dx, width, memory.first_input[n]);
    if (op.second >= 0 && joining < 0)
      pass_on(rows, dy, elems(u, op.second), gradient(u, op.second, micro.slot), elems(u, op.second), memory.first_second[n]);
    if (op.kind == OpKind::add) return pass_on(rows, dy, width, dx, width, memory.first_input[n]);

    LeafCall<Real> call = leaf_call(u, i, micro, joining, true);
    const LayerFacts& facts = plan_.graph.leaves[std::size_t(op.leaf)].facts;
    call.output_gradient = dy;
    if (joining >= 0) return code_.leaves[op.leaf].backward_statistics(call);
    if (!facts.reports_touched)
      for (int p = 0; p < facts.parameters.size(); ++p) call.touched[p] = 1;
    const bool apart = dx && memory.gradient_parts[n].storage != Storage::none;
    call.input_gradient = apart ? at(u, memory.gradient_parts[n], micro.slot, nullptr, nullptr) : dx;
    call.accumulates = dx && !apart && !memory.first_input[n];
    if (!call.accumulates && call.input_gradient != dy) spoil(call.input_gradient, rows * width);
    code_.leaves[op.leaf].backward(call);
    if (apart) KernelSet::add_columns(rows, static_cast<const Real*>(call.input_gradient), width, dx, width, width);
  }

  const PlanData& plan_;
  ModelCode<Real> code_;
  Arenas& arenas_;
  std::vector<Unit> units_;
  std::vector<JoinPlace> joins_;
  std::vector<Index> first_touched_;
  std::vector<char> touched_;
  Index slot_bytes_ = 0, num_touched_ = 0;
  std::uint64_t seed_ = 0, step_ = 0;
  bool poison_ = false;
  Real* cache_ = nullptr;
  Index cache_capacity_ = 0;
  const std::vector<Index>* cache_offsets_ = nullptr;
};

}  // namespace weft
