// SPDX-License-Identifier: Apache-2.0
// Which gradients of a frame share memory, and in which order they are written: independent of where they lie.
#pragma once

#include "weft/plan/frame_memory.hpp"

namespace weft {

// Tensors that share memory, by the smallest of them.
class TensorGroups {
 public:
  constexpr explicit TensorGroups(int count) {
    for (int i = 0; i < count; ++i) parent_.push_back(i);
  }
  constexpr int of(int tensor) const {
    while (parent_[std::size_t(tensor)] != tensor) tensor = parent_[std::size_t(tensor)];
    return tensor;
  }
  constexpr void join(int a, int b) {
    a = of(a), b = of(b);
    if (a < b)
      parent_[std::size_t(b)] = a;
    else
      parent_[std::size_t(a)] = b;
  }

 private:
  std::vector<int> parent_{};
};

struct GradientFlow {
  struct Group {
    int from = -1, to = 1 << 30;  // first write and last read, as ops: backward runs from large to small
    Index bytes = 0;
    bool input = false, output = false, crosses = false, weighs = false;
  };

  TensorGroups groups{0};
  std::vector<int> first{};  // by tensor: the op that writes first; num_ops: given by the next frame; -1: no gradient reaches it
  std::vector<Group> all{};  // by the smallest tensor of a group
  std::vector<char> first_input{}, first_second{};  // by op: whether it is the first to write to the gradient of its input, of its second
  std::vector<char> copies_second{};                // by op: the output's gradient is copied or added to the second's, not shared
};

// Builds the flow of a frame. A gradient may take over the memory of the output's where it starts as the same numbers; that is allowed when
// nobody who shares the memory still has to read it when somebody adds to it.
class GradientFlowBuilder {
 public:
  constexpr GradientFlowBuilder(const GraphData& graph, int frame_index, const MemoryFacts& facts)
      : life_(graph, frame_index),
        facts_(facts),
        num_ops_(graph.frames[std::size_t(frame_index)].num_ops),
        num_tensors_(graph.frames[std::size_t(frame_index)].num_tensors),
        output_(graph.frames[std::size_t(frame_index)].output) {}

  constexpr GradientFlow build() {
    flow_.groups = TensorGroups(num_tensors_);
    flow_.first = filled(num_tensors_, -1);
    flow_.first[std::size_t(output_)] = num_ops_;
    flow_.first_input = filled(num_ops_, char(0)), flow_.first_second = filled(num_ops_, char(0));
    flow_.copies_second = filled(num_ops_, char(0));
    transforms_ = filled(num_ops_, char(0));
    for (int i = num_ops_; i-- > 0;) {
      const OpSite& op = life_.op(i);
      if (op.second >= 0) flow_.first_second[std::size_t(i)] = first_write(op.second, i);  // before the layer's own: it adds to it
      flow_.first_input[std::size_t(i)] = first_write(op.input, i);
    }
    for (int i = num_ops_; i-- > 0;) share(i);
    measure();
    return flow_;
  }

 private:
  constexpr char first_write(int tensor, int i) {
    int& first = flow_.first[std::size_t(tensor)];
    if (first >= 0) return 0;
    first = i;
    return 1;
  }

  constexpr void share(int i) {
    const OpSite& op = life_.op(i);
    const std::size_t at = std::size_t(i);
    if (op.kind == OpKind::add) {
      flow_.copies_second[at] = !(flow_.first_second[at] && try_join(op.second, op.output));
      if (flow_.first_input[at]) try_join(op.input, op.output);
    } else if (op.kind == OpKind::leaf && op.second >= 0) {
      flow_.copies_second[at] = !(flow_.first_second[at] && try_join(op.second, op.output));
    } else if (op.kind == OpKind::all_reduce && flow_.first_input[at]) {
      try_join(op.input, op.output);
    } else if ((op.kind == OpKind::enter || (op.kind == OpKind::leaf && life_.leaf(i).facts.in_place)) && flow_.first_input[at]) {
      transforms_[at] = 1;
      if (!try_join(op.input, op.output)) transforms_[at] = 0;
    }
  }

  constexpr bool try_join(int a, int b) {
    const TensorGroups before = flow_.groups;
    flow_.groups.join(a, b);
    // With several micro-batches in flight a frame's input and output gradients may have to lie apart.
    if ((facts_.wide && flow_.groups.of(0) == flow_.groups.of(output_)) || !valid(flow_.groups.of(a))) {
      flow_.groups = before;
      return false;
    }
    return true;
  }

  constexpr bool valid(int group) const {
    for (int i = 0; i < num_ops_; ++i) {
      const OpSite& op = life_.op(i);
      const bool adds_input = !flow_.first_input[std::size_t(i)], adds_second = op.second >= 0 && !flow_.first_second[std::size_t(i)];
      if (flow_.groups.of(op.input) == group && (adds_input || transforms_[std::size_t(i)]) && read_later(group, op.input, i)) return false;
      if (adds_second && flow_.groups.of(op.second) == group && read_later(group, op.second, i)) return false;
    }
    return true;
  }

  // Whether another tensor of the group is written by op i or before it (in backward's order), and read by op i or after it.
  constexpr bool read_later(int group, int modified, int i) const {
    for (int t = 0; t < num_tensors_; ++t) {
      if (t == modified || flow_.groups.of(t) != group || flow_.first[std::size_t(t)] < i) continue;
      if (facts_.split_backward && life_.weighs[std::size_t(t)]) return true;  // when all of this has passed
      if (life_.gradient_end[std::size_t(t)] > i) continue;
      if (transforms_[std::size_t(i)] && t == life_.op(i).output) continue;  // read element by element as it is overwritten
      return true;
    }
    return false;
  }

  constexpr void measure() {
    flow_.all = filled(num_tensors_, GradientFlow::Group{});
    for (int t = 0; t < num_tensors_; ++t) {
      if (flow_.first[std::size_t(t)] < 0) continue;
      GradientFlow::Group& group = flow_.all[std::size_t(flow_.groups.of(t))];
      const Index bytes = life_.bytes(t, facts_);
      group.from = flow_.first[std::size_t(t)] > group.from ? flow_.first[std::size_t(t)] : group.from;
      group.to = life_.gradient_end[std::size_t(t)] < group.to ? life_.gradient_end[std::size_t(t)] : group.to;
      group.bytes = bytes > group.bytes ? bytes : group.bytes;
      group.input |= t == 0, group.output |= t == output_;
      group.weighs |= facts_.split_backward && life_.weighs[std::size_t(t)];
    }
    for (GradientFlow::Group& group : flow_.all) group.crosses = group.from >= 0 && life_.crosses_backward(group.from, group.to);
  }

  FrameLifetimes life_;
  MemoryFacts facts_;
  int num_ops_, num_tensors_, output_;
  GradientFlow flow_{};
  std::vector<char> transforms_{};  // by op: dx is written over dy
};

constexpr GradientFlow gradient_flow(const GraphData& graph, int frame_index, const MemoryFacts& facts) {
  return GradientFlowBuilder(graph, frame_index, facts).build();
}

}  // namespace weft
