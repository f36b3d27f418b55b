// SPDX-License-Identifier: Apache-2.0
// Takes micro-batches through the model, forward and backward, unit by unit, at the places that the plan gave every tensor.
#pragma once

#include <limits>
#include <vector>

#include "weft/comm/concept.hpp"
#include "weft/op/leaf_table.hpp"
#include "weft/run/watched_tensors.hpp"

namespace weft {

// KernelSet: for what the engine does itself (adding, copying). Real: the element type. Comm: of the tensor group.
template <class KernelSet, class Real, class Comm>
class Walker : public WatchedTensors<Real> {
  using Places = WatchedTensors<Real>;
  using Places::before_forward, Places::after_forward, Places::before_backward, Places::after_backward;
  using Places::frame_of, Places::memory_of, Places::chunk_of, Places::rows_of, Places::slice_rows, Places::first_own_row, Places::own_rows;
  using Places::plan_, Places::arenas_, Places::units_, Places::tensor_rank_;
  using Places::value, Places::gradient, Places::at, Places::elems;
  using typename Places::Unit;

 public:
  // stage: of the pipeline; the walker goes through the chunks of this stage only.
  Walker(const PlanData& plan, int stage, ModelCode<Real> code, Arenas& arenas) : Places(plan, stage, arenas), code_(code) {
    const GraphData& graph = plan.graph;
    unit_parameters_.assign(units_.size(), nullptr);
    unit_gradients_.assign(units_.size(), nullptr);
    guest_of_.assign(plan.graph.parameters.size(), {});
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
  // Where the parameters and gradients of a unit are, and of a parameter that another stage owns.
  void set_unit(Index u, Real* parameters, Real* gradients) {
    unit_parameters_[std::size_t(u)] = parameters, unit_gradients_[std::size_t(u)] = gradients;
  }
  void set_guest(int parameter, Real* parameters, Real* gradients) { guest_of_[std::size_t(parameter)] = {parameters, gradients}; }
  Real* unit_parameters(Index u) const { return unit_parameters_[std::size_t(u)]; }
  Real* unit_gradients(Index u) const { return unit_gradients_[std::size_t(u)]; }

  double* join_sums(std::size_t join, bool backward) const {
    return arenas_.joins.template as<double>(backward ? joins_[join].backward : joins_[join].forward);
  }
  void set_stream(std::uint64_t seed, std::uint64_t step) { seed_ = seed, step_ = step; }
  // The group that divides layers, if there is one.
  void set_tensor_group(Comm* group) { tensor_ = group, tensor_rank_ = group ? group->rank() : 0; }
  void set_poison(bool poison) { poison_ = poison; }
  std::vector<char>& touched() { return touched_; }
  Index first_touched(int leaf) const { return first_touched_[std::size_t(leaf)]; }
  void set_cache(Real* cache, Index capacity, const std::vector<Index>* offsets) {
    cache_ = cache, cache_capacity_ = capacity, cache_offsets_ = offsets;
  }

  // before(unit) is called before a unit's first op.
  template <class Before>
  void forward(Segment segment, const MicroBatch& micro, Before&& before) {
    const Index end = segment.last < num_joins() ? join(segment.last).unit : chunk_of(micro).end_unit - 1;
    for (Index u = segment.first < 0 ? chunk_of(micro).first_unit : join(segment.first).unit; u <= end; ++u) {
      const FrameSite& frame = frame_of(u);
      before(u);
      const bool starts = segment.first >= 0 && u == join(segment.first).unit, stops = segment.last < num_joins() && u == end;
      const int from = starts ? join(segment.first).op : 0, to = stops ? join(segment.last).op : frame.num_ops - 1;
      for (int i = from; i <= to; ++i) run_forward(u, i, micro, stops && i == to ? segment.last : -1);
    }
  }

  // Once a step: the sums of a join have met.
  void joined(std::size_t number, double rows) {
    const JoinSite& site = plan_.joins[number];
    LeafCall<Real> call = leaf_call(site.unit, site.op, MicroBatch{}, int(number), false);
    call.join_rows = rows, call.training = true;
    code_.leaves[site.leaf].joined(call);
  }

  // The part of backward that others wait for: all of it but the parameters' gradients of layers that split it.
  template <class Before, class After>
  void backward_input(const MicroBatch& micro, Before&& before, After&& after) {
    part_ = Part::input;
    backward({-1, num_joins()}, micro, before, after);
    part_ = Part::all;
  }
  // The rest. before and after as in backward.
  template <class Before, class After>
  void backward_weight(const MicroBatch& micro, Before&& before, After&& after) {
    const ChunkData& chunk = chunk_of(micro);
    for (Index u = chunk.end_unit - 1; u >= chunk.first_unit; --u) {
      before(u);
      for (int i = frame_of(u).num_ops - 1; i >= 0; --i) {
        const OpSite& op = plan_.graph.ops[std::size_t(frame_of(u).first_op + i)];
        if (op.kind == OpKind::leaf && code_.leaves[op.leaf].backward_weight) {
          before_backward(u, i, micro);
          LeafCall<Real> call = leaf_call(u, i, micro, -1, true);
          call.output_gradient = gradient(u, op.output, micro);
          code_.leaves[op.leaf].backward_weight(call);
        }
        after(u, i);
      }
    }
  }

  // before(unit) is called before a unit's last op; after(unit, op) when the gradients of an op's parameters have got this micro-batch's
  // part.
  template <class Before, class After>
  void backward(Segment segment, const MicroBatch& micro, Before&& before, After&& after) {
    const Index end = segment.first < 0 ? chunk_of(micro).first_unit : join(segment.first).unit;
    for (Index u = segment.last < num_joins() ? join(segment.last).unit : chunk_of(micro).end_unit - 1; u >= end; --u) {
      const FrameSite& frame = frame_of(u);
      before(u);
      const bool starts = segment.last < num_joins() && u == join(segment.last).unit, stops = segment.first >= 0 && u == end;
      const int from = starts ? join(segment.last).op : frame.num_ops - 1, to = stops ? join(segment.first).op : 0;
      for (int i = from; i >= to; --i) {
        const bool statistics = stops && i == to;
        for (const Rerun& rerun : memory_of(u).reruns)
          if (rerun.before == i)
            for (int again = rerun.first; again <= rerun.last; ++again) run_forward(u, again, micro, -1);
        if (i > to && overlaps(u, i)) {
          backward_overlapped(u, i, micro);
          after(u, i), after(u, i - 1);
          --i;
          continue;
        }
        if (!statistics) before_backward(u, i, micro);
        backward_op(u, i, micro, statistics ? segment.first : -1);
        if (!statistics) after_backward(u, i, micro), after(u, i);
      }
    }
  }

  // The number of elements of the parameter arena before which gradients are incomplete, once backward has passed op i of unit u.
  Index watermark(Index u, int i) const {
    const FrameSite& frame = frame_of(u);
    return plan_.units[std::size_t(u)].first_parameter_elem +
           (i < frame.num_ops ? plan_.watermarks[std::size_t(frame.first_op + i)] : frame.parameter_elems);
  }

 private:
  enum class Part : char { all, input };

  struct Guest {
    Real *parameters = nullptr, *gradients = nullptr;
  };
  struct JoinPlace {
    Index forward, backward, state;
  };

  int num_joins() const { return int(plan_.joins.size()); }
  const JoinSite& join(int i) const { return plan_.joins[std::size_t(i)]; }
  LeafCall<Real> leaf_call(Index u, int i, const MicroBatch& micro, int join_number, bool backward) {
    const GraphData& graph = plan_.graph;
    const FrameSite& frame = frame_of(u);
    const Unit& unit = units_[std::size_t(u)];
    const OpSite& op = graph.ops[std::size_t(frame.first_op + i)];
    const LeafSite& leaf = graph.leaves[std::size_t(op.leaf)];
    LeafCall<Real> call;
    call.leading = micro.leading;
    call.first_row = micro.first_item * micro.leading.sequence;
    call.tensor_rank = int(tensor_rank_);
    const bool is_summed = spread_out(leaf.split) == Spread::partial;
    call.adds_whole = !is_summed || tensor_rank_ == 0;
    if (leaf.rows_divided) {
      call.rows_divided = true, call.row_offset = first_own_row(micro), call.sequence = micro.leading.sequence;
      call.leading = {own_rows(micro), 1, 0};
      call.first_row += call.row_offset;
    }
    call.training = micro.training;
    call.input = value(u, op.input, micro), call.output = value(u, op.output, micro);
    call.residual = op.second >= 0 && call.adds_whole ? value(u, op.second, micro) : nullptr;
    for (int p = 0; p < leaf.facts.parameters.size(); ++p) {
      const int owner = graph.parameters[std::size_t(leaf.first_parameter + p)].owner;
      const Index offset = graph.parameters[std::size_t(owner)].offset;
      const Index home = owner == leaf.first_parameter + p ? u : plan_.owner_unit(owner, unit.repetition);
      if (leaf.facts.parameters[p].kind == ParameterKind::buffer) {
        call.parameters[p] = arenas_.buffers.template as<Real>() + plan_.units[std::size_t(home)].first_buffer_elem + offset;
        continue;
      }
      // Another stage's, or a use whose gradients are folded apart from the owner's.
      const bool guest = unit_parameters_[std::size_t(home)] == nullptr,
                 apart = home != u && guest_of_[std::size_t(owner)].gradients != nullptr;
      Real* parameters = guest ? guest_of_[std::size_t(owner)].parameters : unit_parameters_[std::size_t(home)];
      Real* gradients = guest || apart ? guest_of_[std::size_t(owner)].gradients : unit_gradients_[std::size_t(home)];
      call.parameters[p] = parameters + offset;
      call.gradients[p] = gradients ? gradients + offset : nullptr;
    }
    const std::size_t saved = std::size_t(op.leaf - frame.first_leaf) * 4;
    for (std::size_t k = 0; k < 4; ++k)
      call.saved[k] = reinterpret_cast<std::byte*>(at(u, memory_of(u).saved[saved + k], micro, nullptr, nullptr));
    if (leaf.facts.join_elems > 0 && arenas_.joins.bytes() > 0) {
      const int number = join_number >= 0 ? join_number : number_of_join(u, i);
      const JoinPlace& place = joins_[std::size_t(number)];
      call.join_sums = arenas_.joins.template as<double>(backward ? place.backward : place.forward);
      call.join_rows = call.join_sums[leaf.facts.join_elems];
      call.step_state = arenas_.joins.template as<Real>(place.state);
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

  void run_forward(Index u, int i, const MicroBatch& micro, int joining) {
    before_forward(u, i, micro);
    forward_op(u, i, micro, joining);
    if (joining < 0) after_forward(u, i, micro);
  }
  // joining >= 0: the statistics of this join only; its result comes when all micro-batches have met.
  void forward_op(Index u, int i, const MicroBatch& micro, int joining) {
    const FrameSite& frame = frame_of(u);
    const OpSite& op = plan_.graph.ops[std::size_t(frame.first_op + i)];
    const Index rows = rows_of(u, op.output, micro);
    if (is_communication(op.kind)) {
      forward_communication(u, op, micro);
    } else if (op.kind == OpKind::leaf) {
      LeafCall<Real> call = leaf_call(u, i, micro, joining, false);
      if (joining >= 0) return code_.leaves[op.leaf].statistics(call);
      if (call.output != call.input && call.output != call.residual) spoil(call.output, rows * elems(u, op.output));
      code_.leaves[op.leaf].forward(call);
    } else if (op.kind == OpKind::add) {
      KernelSet::add(rows * elems(u, op.output), static_cast<const Real*>(value(u, op.input, micro)),
                     static_cast<const Real*>(value(u, op.second, micro)), value(u, op.output, micro));
    } else {
      const Index width = elems(u, op.input), stride = elems(u, op.output);
      KernelSet::copy_columns(rows, static_cast<const Real*>(value(u, op.input, micro)), width, value(u, op.output, micro) + op.column,
                              stride, width);
    }
  }

  // ── what a tensor group says: see OpKind ──
  void forward_communication(Index u, const OpSite& op, const MicroBatch& micro) {
    const Index rows = micro.leading.rows(), slice = slice_rows(micro), width = elems(u, op.input);
    const Real* x = value(u, op.input, micro);
    Real* y = value(u, op.output, micro);
    switch (op.kind) {
      case OpKind::all_reduce: copy(rows, x, y, width); return tensor_->all_reduce(y, rows * width, Reduction::sum);
      case OpKind::enter: return copy(rows, x, y, width);
      case OpKind::gather_rows:
      case OpKind::copy_rows: return tensor_->all_gather(y, x, slice * width);
      case OpKind::scatter_rows: return tensor_->reduce_scatter(y, x, slice * width, Reduction::sum);
      default: return copy(own_rows(micro), x + first_own_row(micro) * width, y, width);
    }
  }
  void backward_communication(Index u, int i, const MicroBatch& micro) {
    const OpSite& op = plan_.graph.ops[std::size_t(frame_of(u).first_op + i)];
    const FrameMemory& memory = memory_of(u);
    const Index rows = micro.leading.rows(), slice = slice_rows(micro), width = elems(u, op.input);
    Real* dy = gradient(u, op.output, micro);
    Real* dx = gradient(u, op.input, micro);
    const bool first = memory.first_input[std::size_t(i)];
    if (op.kind == OpKind::all_reduce) return pass_on(rows, dy, width, dx, width, first);
    if (op.kind == OpKind::copy_rows) return pass_on(own_rows(micro), dy + first_own_row(micro) * width, width, dx, width, first);
    Real* part = first || !dx ? dx : at(u, memory.gradient_parts[std::size_t(i)], micro, nullptr, nullptr);
    switch (op.kind) {
      case OpKind::enter:
        part = enter_part(u, i, micro);
        tensor_->all_reduce(part, rows * width, Reduction::sum);
        break;
      case OpKind::gather_rows: tensor_->reduce_scatter(part, static_cast<const Real*>(dy), slice * width, Reduction::sum); break;
      default: tensor_->all_gather(part, static_cast<const Real*>(dy), slice * width); break;  // scatter_rows, slice_rows
    }
    if (dx && part != dx) KernelSet::add_columns(rows_of(u, op.input, micro), static_cast<const Real*>(part), width, dx, width, width);
  }
  // Where the gradient of an entering tensor is summed over the group, with this rank's summand in it.
  Real* enter_part(Index u, int i, const MicroBatch& micro) {
    const OpSite& op = plan_.graph.ops[std::size_t(frame_of(u).first_op + i)];
    Real* dy = gradient(u, op.output, micro);
    Real* dx = gradient(u, op.input, micro);
    const bool first = memory_of(u).first_input[std::size_t(i)];
    Real* part = !dx ? dy : first ? dx : at(u, memory_of(u).gradient_parts[std::size_t(i)], micro, nullptr, nullptr);
    copy(micro.leading.rows(), dy, part, elems(u, op.input));
    return part;
  }

  // Whether backward of op i lets the sum of its input gradient go on while it computes the gradients of its parameters.
  bool overlaps(Index u, int i) const {
    if constexpr (!CanStartAllReduce<Comm, Real>) return false;
    if (!tensor_ || part_ == Part::input || !plan_.strategy.overlap || !overlaps_backward(plan_.graph, frame_of(u), i)) return false;
    for (const Rerun& rerun : memory_of(u).reruns)
      if (rerun.before == i - 1) return false;  // something has to be made again first
    return true;
  }
  // Op i and the one before it, which sums the input gradient over the group.
  void backward_overlapped(Index u, int i, const MicroBatch& micro) {
    if constexpr (CanStartAllReduce<Comm, Real>) {
      const FrameSite& frame = frame_of(u);
      const OpSite &op = plan_.graph.ops[std::size_t(frame.first_op + i)], &entering = plan_.graph.ops[std::size_t(frame.first_op + i - 1)];
      before_backward(u, i, micro);
      part_ = Part::input;
      backward_op(u, i, micro, -1);
      part_ = Part::all;
      after_backward(u, i, micro);
      before_backward(u, i - 1, micro);
      before_backward(u, i, micro);  // its weight part reads the same again
      Real* part = enter_part(u, i - 1, micro);
      const Index rows = micro.leading.rows(), width = elems(u, entering.input);
      auto request = tensor_->start_all_reduce(part, rows * width, Reduction::sum);
      LeafCall<Real> call = leaf_call(u, i, micro, -1, true);
      call.output_gradient = gradient(u, op.output, micro);
      code_.leaves[op.leaf].backward_weight(call);
      tensor_->wait(request);
      Real* dx = gradient(u, entering.input, micro);
      if (dx && part != dx) KernelSet::add_columns(rows, static_cast<const Real*>(part), width, dx, width, width);
      after_backward(u, i - 1, micro);
    }
  }
  static void copy(Index rows, const Real* from, Real* to, Index width) {
    if (from != to) KernelSet::copy_columns(rows, from, width, to, width, width);
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
    const Index rows = rows_of(u, op.input, micro), width = elems(u, op.input);
    if (is_communication(op.kind)) return backward_communication(u, i, micro);
    const Real* dy = gradient(u, op.output, micro);
    Real* dx = gradient(u, op.input, micro);
    if (op.kind == OpKind::place) return pass_on(rows, dy + op.column, elems(u, op.output), dx, width, memory.first_input[n]);
    if (op.second >= 0 && joining < 0)
      pass_on(rows, dy, elems(u, op.second), gradient(u, op.second, micro), elems(u, op.second), memory.first_second[n]);
    if (op.kind == OpKind::add) return pass_on(rows, dy, width, dx, width, memory.first_input[n]);

    LeafCall<Real> call = leaf_call(u, i, micro, joining, true);
    const LayerFacts& facts = plan_.graph.leaves[std::size_t(op.leaf)].facts;
    call.output_gradient = dy;
    if (joining >= 0) return code_.leaves[op.leaf].backward_statistics(call);
    if (!facts.reports_touched)
      for (int p = 0; p < facts.parameters.size(); ++p) call.touched[p] = 1;
    const bool apart = dx && memory.gradient_parts[n].storage != Storage::none;
    call.input_gradient = apart ? at(u, memory.gradient_parts[n], micro, nullptr, nullptr) : dx;
    call.accumulates = dx && !apart && !memory.first_input[n];
    if (!call.accumulates && call.input_gradient != dy) spoil(call.input_gradient, rows * width);
    const LeafFunctions<Real>& leaf = code_.leaves[op.leaf];
    (part_ == Part::input && leaf.backward_input ? leaf.backward_input : leaf.backward)(call);
    if (apart) KernelSet::add_columns(rows, static_cast<const Real*>(call.input_gradient), width, dx, width, width);
  }

  ModelCode<Real> code_;
  std::vector<JoinPlace> joins_;
  std::vector<Index> first_touched_;
  std::vector<char> touched_;
  std::vector<Real*> unit_parameters_, unit_gradients_;
  std::vector<Guest> guest_of_;  // by parameter
  Part part_ = Part::all;
  Comm* tensor_ = nullptr;
  Index num_touched_ = 0;
  std::uint64_t seed_ = 0, step_ = 0;
  bool poison_ = false;
  Real* cache_ = nullptr;
  Index cache_capacity_ = 0;
  const std::vector<Index>* cache_offsets_ = nullptr;
};

}  // namespace weft
