// SPDX-License-Identifier: Apache-2.0
// Gives every value and gradient of a frame its place. See plan/frame_memory.hpp for the kinds of place.
#pragma once

#include "weft/plan/gradient_flow.hpp"

namespace weft {

// What is made again of a frame: blocks only, that is, what is repeated.
constexpr Recompute recompute_of(const FrameSite& frame, const MemoryFacts& facts) {
  return frame.count > 1 ? facts.recompute : Recompute::none;
}

// Slot, workspace and boundary places of values. `output_kept`: the next frame needs this frame's output in backward, or holds it over a
// join.
constexpr void place_values(const GraphData& graph, int frame_index, const MemoryFacts& facts, bool output_kept, FrameMemory& out) {
  const FrameSite& frame = graph.frames[std::size_t(frame_index)];
  FrameLifetimes life(graph, frame_index);
  const int n = frame.num_tensors;
  const Recompute recompute = recompute_of(frame, facts);
  if (output_kept) life.kept[std::size_t(frame.output)] = 1;
  TensorGroups groups(n);
  for (int i = 0; i < frame.num_ops; ++i) {
    const OpSite& op = life.op(i);
    const bool in_place = op.kind == OpKind::leaf ? life.leaf(i).facts.in_place : op.kind == OpKind::all_reduce || op.kind == OpKind::enter;
    if (!in_place || op.second >= 0) continue;
    const std::size_t in = std::size_t(op.input);
    if (op.input != 0 && !life.kept[in] && life.num_uses[in] == 1) groups.join(op.input, op.output);
  }
  std::vector<int> group_size = filled(n, 0);
  for (int t = 0; t < n; ++t) ++group_size[std::size_t(groups.of(t))];
  // Whether what a leaf makes and keeps is made again. Alone only where nothing is written over it.
  const auto is_live = [&](int leaf) {
    if (recompute != Recompute::selective) return recompute == Recompute::full;
    const LeafSite& site = graph.leaves[std::size_t(frame.first_leaf + leaf)];
    const int output = graph.ops[std::size_t(site.op)].output;
    return site.facts.recomputes_alone && output != frame.output && group_size[std::size_t(groups.of(output))] == 1;
  };
  struct Group {
    int from = 1 << 30, to = -1;
    Index bytes = 0;
    bool kept = false, output = false, live = true;
  };
  std::vector<Group> all = filled(n, Group{});
  for (int t = 1; t < n; ++t) {
    Group& group = all[std::size_t(groups.of(t))];
    const std::size_t at = std::size_t(t);
    group.from = life.producer[at] < group.from ? life.producer[at] : group.from;
    group.to = life.last_use[at] > group.to ? life.last_use[at] : group.to;
    group.bytes = life.bytes(t, facts) > group.bytes ? life.bytes(t, facts) : group.bytes;
    group.kept |= life.kept[at] != 0;
    group.output |= t == frame.output;
    const OpSite& maker = life.op(life.producer[at]);
    group.live &= recompute != Recompute::none &&
                  (maker.kind == OpKind::leaf ? is_live(maker.leaf - frame.first_leaf) : recompute == Recompute::full);
  }
  out.values = filled(n, Place{});
  IntervalPacker workspace;
  for (int t = 1; t < n; ++t) {
    if (groups.of(t) != t) continue;
    const Group& group = all[std::size_t(t)];
    if (group.kept && group.live && !(group.output && output_kept)) {
      out.values[std::size_t(t)] = {Storage::live, out.live_bytes};
      out.live_bytes += group.bytes;
    } else if (group.kept || (facts.wide && life.crosses_forward(group.from, group.to))) {
      out.values[std::size_t(t)] = {Storage::slot, out.slot_bytes};
      out.slot_bytes += group.bytes;
    } else if (group.output) {
      out.values[std::size_t(t)] = {Storage::boundary, 0};
      out.output_value_bytes = group.bytes;
    } else {
      out.values[std::size_t(t)] = {Storage::workspace, 0};
      workspace.add(t, group.from, group.to, group.bytes);
    }
  }
  out.forward_workspace_bytes = workspace.pack([&](int t, Index offset) { out.values[std::size_t(t)].offset = offset; });
  for (int t = 1; t < n; ++t) out.values[std::size_t(t)] = out.values[std::size_t(groups.of(t))];
  out.output_kept = out.values[std::size_t(frame.output)].storage == Storage::slot;
  out.output_value_offset = out.values[std::size_t(frame.output)].offset;
  for (int l = 0; l < frame.num_leaves; ++l) {
    const LayerFacts& leaf = graph.leaves[std::size_t(frame.first_leaf + l)].facts;
    for (int k = 0; k < 4; ++k) {
      Index& end = is_live(l) ? out.live_bytes : out.slot_bytes;
      out.saved.push_back({is_live(l) ? Storage::live : Storage::slot, end});
      if (k >= leaf.saved.size()) continue;
      const SavedFacts& saved = leaf.saved[k];
      const Index rows =
          graph.leaves[std::size_t(frame.first_leaf + l)].rows_divided ? divide_up(facts.rows, graph.tensor_ranks) : facts.rows;
      end += round_up((rows * saved.elems_per_row + saved.fixed_elems) * (saved.integer ? 4 : facts.real_bytes), alignment_bytes);
    }
  }
}

// Which forward ops run again before which backward op.
constexpr void plan_reruns(const GraphData& graph, int frame_index, const MemoryFacts& facts, FrameMemory& out) {
  const FrameSite& frame = graph.frames[std::size_t(frame_index)];
  const FrameLifetimes life(graph, frame_index);
  const Recompute recompute = recompute_of(frame, facts);
  const int last = frame.num_ops - 1;
  if (recompute == Recompute::full) {
    // The last op only if it leaves something besides the unit's output, which is kept.
    const bool all = life.op(last).kind == OpKind::leaf && (life.leaf(last).facts.saved.size() > 0 || life.leaf(last).facts.needs_output);
    if (all || last > 0) out.reruns.push_back({last, 0, all ? last : last - 1});
  }
  for (int i = last; recompute == Recompute::selective && i >= 0; --i)  // before the last op that reads what an op made, and itself
    for (int maker = last; maker >= 0; --maker) {
      if (life.op(maker).kind != OpKind::leaf || out.values[std::size_t(life.op(maker).output)].storage != Storage::live) continue;
      const int reader =
          life.last_use[std::size_t(life.op(maker).output)] < last ? life.last_use[std::size_t(life.op(maker).output)] : last;
      if ((reader > maker ? reader : maker) == i) out.reruns.push_back({i, maker, maker});
    }
}

// The same for gradients. `output_kept`: the gradient of this frame's output is held over a join, here or in the next frame.
constexpr void place_gradients(const GraphData& graph, int frame_index, const MemoryFacts& facts, const GradientFlow& flow,
                               bool output_kept, FrameMemory& out) {
  const FrameSite& frame = graph.frames[std::size_t(frame_index)];
  const FrameLifetimes life(graph, frame_index);
  const int n = frame.num_tensors, last = frame.num_ops;
  out.copies_second = flow.copies_second, out.first_input = flow.first_input, out.first_second = flow.first_second;
  out.flips = flow.groups.of(0) != flow.groups.of(frame.output);
  out.output_gradient_kept = output_kept;
  out.gradients = filled(n, Place{});
  out.gradient_parts = filled(last, Place{});
  IntervalPacker workspace;
  for (int t = 0; t < n; ++t) {
    if (flow.groups.of(t) != t) continue;
    const GradientFlow::Group& group = flow.all[std::size_t(t)];
    if (group.from < 0) continue;  // no gradient reaches it
    Place& place = out.gradients[std::size_t(t)];
    if (group.weighs && group.output) {
      place = {Storage::weight_slot, 0};  // behind all others
      out.output_gradient_kept = true, out.output_gradient_slot_bytes = group.bytes;
    } else if (group.weighs) {
      place = {Storage::weight_slot, out.weight_slot_bytes};
      out.weight_slot_bytes += group.bytes;
    } else if (group.output && output_kept) {
      place = {Storage::slot, out.slot_bytes};
      out.output_gradient_offset = out.slot_bytes;
      out.slot_bytes += group.bytes;
    } else if (group.output || group.input) {
      place = {group.output ? Storage::boundary : Storage::boundary_input, 0};
      bool alone = t == 0;  // the model's input, whose gradient nobody needs, unless a layer writes over its own output gradient
      for (int other = 1; other < n && alone; ++other) alone = flow.groups.of(other) != t;
      if (group.output)
        out.output_gradient_bytes = group.bytes;
      else
        out.input_gradient_bytes = group.bytes, out.input_gradient_alone = alone;
    } else if (facts.wide && group.crosses) {
      place = {Storage::slot, out.slot_bytes};
      out.slot_bytes += group.bytes;
    } else {
      place = {Storage::workspace, 0};
      workspace.add(t, last - group.from, last - group.to, group.bytes);
    }
  }
  if (out.output_gradient_slot_bytes > 0) {
    out.gradients[std::size_t(flow.groups.of(frame.output))].offset = out.output_gradient_offset = out.weight_slot_bytes;
    out.weight_slot_bytes += out.output_gradient_slot_bytes;
  }
  for (int i = 0; i < last; ++i)  // a layer that overwrites dx where something is already
    if ((is_communication(life.op(i).kind) || (life.op(i).kind == OpKind::leaf && !life.leaf(i).facts.adds_input_gradient)) &&
        !flow.first_input[std::size_t(i)]) {
      out.gradient_parts[std::size_t(i)] = {Storage::workspace, 0};
      workspace.add(n + i, last - i, last - i, life.bytes(life.op(i).input, facts));
    }
  out.backward_workspace_bytes = workspace.pack([&](int tag, Index offset) {
    (tag < n ? out.gradients[std::size_t(tag)] : out.gradient_parts[std::size_t(tag - n)]).offset = offset;
  });
  for (int t = 0; t < n; ++t) out.gradients[std::size_t(t)] = out.gradients[std::size_t(flow.groups.of(t))];
}

// Places for all frames. Boundaries concern two frames: what the second needs of the first's output decides where that lies.
struct ActivationMemory {
  MemoryFacts facts{};
  std::vector<FrameMemory> frames{};
  Index slot_bytes = 0;  // of one micro-batch: all frames, all repetitions
};

constexpr ActivationMemory place_activations(const GraphData& graph, const MemoryFacts& facts) {
  ActivationMemory out;
  out.facts = facts;
  const std::size_t n = graph.frames.size();
  std::vector<GradientFlow> flows;
  std::vector<char> input_kept = filled(Index(n), char(0)), input_crosses = input_kept, output_crosses = input_kept;
  for (std::size_t f = 0; f < n; ++f) {
    const FrameLifetimes life(graph, int(f));
    flows.push_back(gradient_flow(graph, int(f), facts));
    input_kept[f] = life.kept[0] || recompute_of(graph.frames[f], facts) == Recompute::full ||
                    (facts.wide && life.crosses_forward(-1, life.last_use[0]));
    input_crosses[f] = facts.wide && flows[f].all[std::size_t(flows[f].groups.of(0))].crosses;
    output_crosses[f] = facts.wide && flows[f].all[std::size_t(flows[f].groups.of(graph.frames[f].output))].crosses;
  }
  for (std::size_t f = 0; f < n; ++f) {
    const FrameSite& frame = graph.frames[f];
    FrameMemory memory;
    const bool next_keeps = f + 1 < n && input_kept[f + 1], next_crosses = f + 1 < n && input_crosses[f + 1];
    place_values(graph, int(f), facts, next_keeps || (frame.count > 1 && input_kept[f]), memory);
    place_gradients(graph, int(f), facts, flows[f], output_crosses[f] || next_crosses || (frame.count > 1 && input_crosses[f]), memory);
    plan_reruns(graph, int(f), facts, memory);
    out.slot_bytes += frame.count * memory.slot_bytes;
    out.frames.push_back(memory);
  }
  return out;
}

}  // namespace weft
