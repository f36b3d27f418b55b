// SPDX-License-Identifier: Apache-2.0
// One rank's graph of a tensor group: picks how each layer is divided and inserts the communication.
//
// A layer that makes slices of features begins a divided stretch where a layer that takes such slices ends it (the two products around an
// activation or attention), or where the model's output is a row of classes. Everything between is divided, everything else is replicated
// or, with `sequence`, divided by rows.
#pragma once

#include "weft/base/constexpr_vector.hpp"
#include "weft/graph/lower.hpp"

namespace weft {

class GraphSplitter {
 public:
  constexpr GraphSplitter(const GraphData& whole, Index ranks, bool sequence, bool divides_output)
      : whole_(whole), ranks_(ranks), sequence_(sequence), divides_output_(divides_output) {}

  constexpr GraphData run() {
    out_.leaves = whole_.leaves, out_.parameters = whole_.parameters;
    out_.input = whole_.input, out_.output = out_.whole_output = whole_.output;
    out_.longest_sequence = whole_.longest_sequence, out_.num_units = whole_.num_units, out_.fault = whole_.fault;
    out_.tensor_ranks = ranks_, out_.sequence = sequence_, out_.whole_parameters = whole_.num_parameters();
    for (ParameterSite& site : out_.parameters) site.split.whole = site.facts.extents;
    stream_ = {Spread::whole, whole_.input, {}};
    for (std::size_t f = 0; f < whole_.frames.size() && out_.fault.rule == GraphRule::none; ++f) frame(int(f));
    place_parameters();
    return out_;
  }

 private:
  // A tensor of the new frame: how it is spread, a rank's features, and how those lie in the whole ones.
  struct Tensor {
    Spread spread = Spread::whole;
    Features features{};
    Slicing slicing{};
  };

  constexpr const OpSite& old_op(int i) const { return whole_.ops[std::size_t(old_.first_op + i)]; }
  constexpr const LeafSite& old_leaf(int i) const { return whole_.leaves[std::size_t(old_op(i).leaf)]; }
  constexpr Features old_features(int tensor) const { return whole_.tensors[std::size_t(old_.first_tensor + tensor)]; }

  // The way of a layer, if it has it. Whether the ranks divide it is another question.
  constexpr SplitRule rule_of(int leaf, SplitKind kind) const {
    for (const SplitRule& rule : rules_of(leaf))
      if (rule.kind == kind) return rule;
    return {};
  }
  constexpr const FixedVector<SplitRule, 4>& rules_of(int leaf) const { return whole_.leaves[std::size_t(leaf)].splits; }
  constexpr bool has(int leaf, SplitKind kind) const { return rule_of(leaf, kind).kind != SplitKind::none; }

  constexpr void fail(GraphRule rule, int leaf, Index found) {
    if (out_.fault.rule == GraphRule::none) out_.fault = {.rule = rule, .leaf = leaf, .given = {found}, .number = ranks_};
  }

  // The only op that reads a tensor: in its frame, or, if that gives it on, in the next one. op < 0: there is none, or several.
  struct Reader {
    int frame = 0, op = -1;
  };
  constexpr Reader only_reader(int frame, int tensor) const {
    const FrameSite& site = whole_.frames[std::size_t(frame)];
    Reader found{frame, -1};
    for (int i = 0; i < site.num_ops; ++i) {
      const OpSite& op = whole_.ops[std::size_t(site.first_op + i)];
      if (op.second == tensor) return {frame, -1};
      if (op.input != tensor) continue;
      if (found.op >= 0) return {frame, -1};
      found.op = i;
    }
    if (tensor != site.output) return found;
    const bool goes_on =
        found.op < 0 && site.count == 1 && frame + 1 < int(whole_.frames.size()) && whole_.frames[std::size_t(frame + 1)].count == 1;
    return goes_on ? only_reader(frame + 1, 0) : Reader{frame, -1};
  }
  constexpr const OpSite& op_of(Reader reader) const {
    return whole_.ops[std::size_t(whole_.frames[std::size_t(reader.frame)].first_op + reader.op)];
  }

  // Whether slices that op i would make can stay slices until a layer takes them.
  constexpr bool leads_to_inputs(int i) const {
    for (Reader reader = only_reader(frame_, old_op(i).output); reader.op >= 0; reader = only_reader(reader.frame, op_of(reader).output)) {
      const OpSite& op = op_of(reader);
      if (op.kind != OpKind::leaf) return false;
      if (has(op.leaf, SplitKind::inputs)) return true;
      if (!has(op.leaf, SplitKind::features) || op.second >= 0) return false;
    }
    return false;
  }
  constexpr bool is_model_output(int i) const {
    return &whole_.frames.back() == &whole_.frames[std::size_t(frame_)] && old_.count == 1 && old_op(i).output == old_.output;
  }

  // How op i's output is sliced: as the layers behind it ask for.
  constexpr Slicing slicing_of(int i) const {
    const Index channels = old_leaf(i).out.channels;
    for (Reader reader = only_reader(frame_, old_op(i).output); reader.op >= 0; reader = only_reader(reader.frame, op_of(reader).output)) {
      const OpSite& op = op_of(reader);
      if (op.kind != OpKind::leaf || has(op.leaf, SplitKind::inputs) || !has(op.leaf, SplitKind::features)) break;
      const SplitRule rule = rule_of(op.leaf, SplitKind::features);
      if (rule.slicing.segments.size() > 0) return rule.slicing;
      if (whole_.leaves[std::size_t(op.leaf)].out.channels != channels) break;
    }
    return one_segment(channels);
  }
  static constexpr Slicing one_segment(Index extent) {
    Slicing out;
    out.push(extent);
    return out;
  }
  // What a layer that takes slices gives: the same slices, in larger or smaller features, or one segment where it named its own.
  constexpr Slicing passed_on(const LeafSite& whole, const SplitRule& rule, const Slicing& taken) const {
    if (whole.out.channels == whole.in.channels) return taken;
    if (rule.slicing.segments.size() > 0) return one_segment(whole.out.channels);
    Slicing out;
    for (int s = 0; s < taken.segments.size(); ++s) out.push(taken.segments[s] * whole.out.channels / whole.in.channels, taken.pieces[s]);
    return out;
  }

  constexpr int add_tensor(Tensor tensor) {
    tensors_.push_back(tensor);
    out_.tensors.push_back(tensor.features);
    out_.rows_divided.push_back(tensor.spread == Spread::rows);
    return int(tensors_.size()) - 1;
  }
  constexpr int communicate(OpKind kind, int input, Spread spread) {
    const int output = add_tensor({spread, tensors_[std::size_t(input)].features, {}});
    out_.ops.push_back({.kind = kind, .input = input, .output = output});
    return output;
  }
  // A tensor of the new frame that has the given spread; what it takes to get there is added. summed: of a whole tensor, each rank's
  // gradient will be a summand.
  constexpr int as(int tensor, Spread wanted, bool summed = false) {
    const Spread now = tensors_[std::size_t(tensor)].spread;
    if (now == wanted) return tensor;
    if (now == Spread::partial) return communicate(wanted == Spread::rows ? OpKind::scatter_rows : OpKind::all_reduce, tensor, wanted);
    if (now == Spread::rows && wanted == Spread::whole)
      return communicate(summed ? OpKind::gather_rows : OpKind::copy_rows, tensor, wanted);
    if (now == Spread::whole && wanted == Spread::rows) return communicate(OpKind::slice_rows, tensor, wanted);
    fail(GraphRule::tensor_features, 0, 0);
    return tensor;
  }
  constexpr Spread at_rest() const { return sequence_ ? Spread::rows : Spread::whole; }

  constexpr void frame(int number) {
    frame_ = number, old_ = whole_.frames[std::size_t(number)];
    tensors_.clear();
    FrameSite site = old_;
    site.first_op = int(out_.ops.size()), site.first_tensor = int(out_.tensors.size());
    std::vector<int> made = filled(old_.num_tensors, -1);  // by old tensor
    made[0] = add_tensor(stream_);
    for (int i = 0; i < old_.num_ops && out_.fault.rule == GraphRule::none; ++i) op(i, made);
    if (out_.fault.rule != GraphRule::none) return;
    int output = made[std::size_t(old_.output)];
    const bool last = number + 1 == int(whole_.frames.size());
    const Spread spread = tensors_[std::size_t(output)].spread;
    if (last)
      output = spread == Spread::features ? output : as(output, Spread::whole);
    else if (spread != Spread::features || tensors_[std::size_t(output)].features.element == Element::token)
      output = as(output, at_rest());
    if (old_.count > 1 && tensors_[std::size_t(output)].spread != stream_.spread) fail(GraphRule::tensor_rows, old_.first_leaf, 0);
    site.output = output;
    site.num_ops = int(out_.ops.size()) - site.first_op, site.num_tensors = int(out_.tensors.size()) - site.first_tensor;
    stream_ = tensors_[std::size_t(output)];
    out_.output = stream_.features;
    out_.frames.push_back(site);
  }

  constexpr void op(int i, std::vector<int>& made) {
    const OpSite& old = old_op(i);
    const int input = made[std::size_t(old.input)];
    const int second = old.second >= 0 ? made[std::size_t(old.second)] : -1;
    if (old.kind == OpKind::leaf) {
      made[std::size_t(old.output)] = leaf(i, input, second);
    } else if (old.kind == OpKind::add) {
      made[std::size_t(old.output)] = add(input, second);
    } else {  // place: columns of whole rows
      const int whole = as(input, Spread::whole);
      int& output = made[std::size_t(old.output)];
      if (output < 0) output = add_tensor({Spread::whole, old_features(old.output), {}});
      out_.ops.push_back({.kind = OpKind::place, .input = whole, .output = output, .column = old.column});
    }
  }
  constexpr int add(int a, int b) {
    const Spread spread = tensors_[std::size_t(b)].spread == Spread::rows || tensors_[std::size_t(a)].spread == Spread::rows ? Spread::rows
                          : tensors_[std::size_t(a)].spread == Spread::features && tensors_[std::size_t(b)].spread == Spread::features
                              ? Spread::features
                              : Spread::whole;
    a = as(a, spread), b = as(b, spread);
    const int output = add_tensor({spread, tensors_[std::size_t(a)].features, tensors_[std::size_t(a)].slicing});
    out_.ops.push_back({.kind = OpKind::add, .input = a, .second = b, .output = output});
    return output;
  }

  // Which way this layer goes, given how its input comes.
  constexpr SplitKind choose(int i, int input) const {
    const int number = old_op(i).leaf;
    const Spread spread = tensors_[std::size_t(input)].spread;
    if (spread == Spread::features) return has(number, SplitKind::inputs) ? SplitKind::inputs : SplitKind::features;
    if (has(number, SplitKind::vocabulary)) return SplitKind::vocabulary;
    const bool makes_slices = has(number, SplitKind::outputs) && old_op(i).second < 0;  // a residual is whole
    if (makes_slices && (leads_to_inputs(i) || (divides_output_ && is_model_output(i)))) return SplitKind::outputs;
    if (has(number, SplitKind::rows) && spread == Spread::rows) return SplitKind::rows;
    return SplitKind::none;
  }

  // Whether the ranks can share a layer in this way.
  constexpr void require_divisible(int leaf, SplitKind kind, const SplitRule& rule, const Slicing& slicing) {
    if (kind == SplitKind::outputs && slicing.segments.size() > 1) return;  // the layer that asked for these segments says it
    if (rule.divides > 0 && rule.divides % ranks_ != 0) fail(GraphRule::tensor_divides, leaf, rule.divides);
    for (Index pieces : rule.slicing.pieces)
      if (pieces > 0 && pieces % ranks_ != 0 && ranks_ % pieces != 0) fail(GraphRule::tensor_divides, leaf, pieces);
  }

  constexpr int leaf(int i, int input, int second) {
    const int number = old_op(i).leaf;
    LeafSite& site = out_.leaves[std::size_t(number)];
    const SplitKind kind = choose(i, input);
    const SplitRule rule = rule_of(number, kind);
    const bool pads = kind == SplitKind::outputs && is_model_output(i);
    const bool takes_slices = kind == SplitKind::inputs || kind == SplitKind::features;
    const Slicing taken = takes_slices ? tensors_[std::size_t(input)].slicing : Slicing{};
    Slicing given;
    if (kind == SplitKind::outputs) given = pads ? one_segment(site.out.channels) : slicing_of(i);
    if (kind == SplitKind::features) given = passed_on(site, rule, taken);
    if (kind != SplitKind::none && kind != SplitKind::rows && !pads) require_divisible(number, kind, rule, given);
    const bool differs = takes_slices && rule.slicing.segments.size() > 0 && !(rule.slicing == taken);
    const bool twice = kind == SplitKind::inputs && taken.has_copies(ranks_);  // a sum over ranks would count copies again
    if (differs || twice || (takes_slices && rule.kind == SplitKind::none)) fail(GraphRule::tensor_features, number, 0);
    const bool enters = kind == SplitKind::outputs && tensors_[std::size_t(input)].spread == Spread::whole && (frame_ > 0 || input > 0);
    input = as(input, spread_in(kind), kind == SplitKind::outputs);
    if (enters) input = communicate(OpKind::enter, input, Spread::whole);
    site.split = kind, site.rows_divided = kind == SplitKind::rows, site.slicing = taken;
    site.in = tensors_[std::size_t(input)].features;
    divide_facts(site, kind, rule, taken, given);
    if (kind == SplitKind::outputs || kind == SplitKind::features) site.out.channels = given.own(ranks_);
    const int output = add_tensor({spread_out(kind), site.out, given});
    // A residual: added by the first rank before the sum; where rows are divided, after it.
    const bool later = second >= 0 && spread_out(kind) == Spread::partial && sequence_;
    if (second >= 0 && !later) second = as(second, spread_out(kind) == Spread::rows ? Spread::rows : Spread::whole);
    site.op = int(out_.ops.size());
    out_.ops.push_back({.kind = OpKind::leaf, .leaf = number, .input = input, .second = later ? -1 : second, .output = output});
    if (later) return add(as(output, Spread::rows), second);
    return spread_out(kind) == Spread::partial ? as(output, at_rest()) : output;
  }

  // What a rank has of a layer's costs and parameters.
  constexpr void divide_facts(LeafSite& site, SplitKind kind, const SplitRule& rule, const Slicing& taken, const Slicing& given) {
    LayerFacts& facts = site.facts;
    if (kind == SplitKind::none) return;
    facts.forward_flops_per_row /= double(ranks_), facts.backward_flops_per_row /= double(ranks_);
    if (kind == SplitKind::features) {
      Index copies = 1;
      for (int s = 0; s < taken.segments.size(); ++s) copies = taken.copies(s, ranks_) > copies ? taken.copies(s, ranks_) : copies;
      facts.cache_elems_per_row = divide_up(facts.cache_elems_per_row, ranks_ / copies);  // keys and values
      facts.join_elems = divide_up(facts.join_elems, ranks_), facts.step_elems = divide_up(facts.step_elems, ranks_);
      for (int k = 0; k < facts.saved.size(); ++k) {
        facts.saved[k].elems_per_row = divide_up(facts.saved[k].elems_per_row, ranks_);
        facts.saved[k].fixed_elems = divide_up(facts.saved[k].fixed_elems, ranks_);
      }
    }
    for (int p = 0; p < facts.parameters.size(); ++p) {
      ParameterSite& parameter = out_.parameters[std::size_t(site.first_parameter + p)];
      parameter.split.summed = kind == SplitKind::rows;
      const int dimension = p < rule.dimension.size() ? rule.dimension[p] : -1;
      if (dimension < 0) continue;
      Index& extent = parameter.facts.extents[dimension];
      parameter.split.dimension = dimension;
      parameter.split.slicing = given.whole() == extent ? given : taken.whole() == extent ? taken : one_segment(extent);
      extent = parameter.split.slicing.own(ranks_);
      facts.parameters[p].extents[dimension] = extent;
    }
  }

  // As GraphBuilder does it: owners one after the other, frame by frame.
  constexpr void place_parameters() {
    out_.parameter_elems = out_.buffer_elems = 0;
    for (FrameSite& frame : out_.frames) {
      frame.parameter_elems = frame.buffer_elems = 0;
      frame.first_parameter_elem = out_.parameter_elems, frame.first_buffer_elem = out_.buffer_elems;
      for (int l = frame.first_leaf; l < frame.first_leaf + frame.num_leaves; ++l) {
        const LeafSite& leaf = out_.leaves[std::size_t(l)];
        for (int p = leaf.first_parameter; p < leaf.first_parameter + leaf.facts.parameters.size(); ++p) {
          ParameterSite& site = out_.parameters[std::size_t(p)];
          Index& end = site.facts.kind == ParameterKind::buffer ? frame.buffer_elems : frame.parameter_elems;
          site.offset = end;
          if (site.owner == p) end += round_up(site.facts.elems(), parameter_alignment_elems);
          if (site.owner != p && out_.parameters[std::size_t(site.owner)].facts.extents != site.facts.extents)
            fail(GraphRule::tensor_features, l, site.facts.elems());
        }
      }
      out_.parameter_elems += frame.count * frame.parameter_elems;
      out_.buffer_elems += frame.count * frame.buffer_elems;
    }
  }

  const GraphData& whole_;
  Index ranks_;
  bool sequence_, divides_output_;
  GraphData out_{};
  int frame_ = 0;
  FrameSite old_{};
  Tensor stream_{};
  std::vector<Tensor> tensors_{};
};

// divides_output: the loss takes slices of classes.
constexpr GraphData split_graph(const GraphData& whole, Index ranks, bool sequence, bool divides_output) {
  if (ranks <= 1 || whole.fault.rule != GraphRule::none) return whole;
  return GraphSplitter(whole, ranks, sequence, divides_output).run();
}

// Calls visit(first of the rank's elements, first of the whole's, count, how many ranks have the same) for every stretch of a parameter
// that a rank has and that is not padding.
template <class Visit>
constexpr void for_each_slice(const ParameterSite& site, Index ranks, Index rank, Visit&& visit) {
  const ParameterSplit& split = site.split;
  if (split.dimension < 0) return visit(Index(0), Index(0), site.facts.elems(), ranks);
  Index outer = 1, inner = 1;
  for (int d = 0; d < split.whole.size(); ++d) {
    if (d < split.dimension) outer *= split.whole[d];
    if (d > split.dimension) inner *= split.whole[d];
  }
  const Index whole_extent = split.whole[split.dimension], own_extent = site.facts.extents[split.dimension];
  for (Index o = 0; o < outer; ++o)
    split.slicing.for_each_slice(ranks, rank, [&](Index own, Index whole, Index count, Index copies) {
      visit((o * own_extent + own) * inner, (o * whole_extent + whole) * inner, count * inner, copies);
    });
}
// The same, as visit(first of the rank's elements, first of the whole's, count).
template <class Visit>
constexpr void for_each_stretch(const ParameterSite& site, Index ranks, Index rank, Visit&& visit) {
  for_each_slice(site, ranks, rank, [&](Index own, Index whole, Index count, Index) { visit(own, whole, count); });
}
// Only what no rank before has: over all ranks, every element of the parameter once.
template <class Visit>
constexpr void for_each_owned_stretch(const ParameterSite& site, Index ranks, Index rank, Visit&& visit) {
  for_each_slice(site, ranks, rank, [&](Index own, Index whole, Index count, Index copies) {
    if (rank % copies == 0) visit(own, whole, count);
  });
}

}  // namespace weft
