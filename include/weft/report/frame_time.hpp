// SPDX-License-Identifier: Apache-2.0
// How long a device works on a unit of a plan: from the shapes of its layers' kernels, and the calls of its tensor group.
#pragma once

#include "weft/plan/ledger.hpp"
#include "weft/report/convention.hpp"
#include "weft/report/group_route.hpp"

namespace weft {

struct KernelSeconds {
  double forward = 0, backward_input = 0, backward_weight = 0;
};

// The product of a layer that has one: (m, k)·(n, k)ᵀ a micro-batch, read off its weight and its flops (so a convolution's m has its
// plane in it). m = 0: it has none.
struct ProductShape {
  Index m = 0, n = 0, k = 0;
};
constexpr ProductShape product_of(const PlanData& plan, const LeafSite& leaf) {
  for (const ParameterFacts& facts : leaf.facts.parameters) {
    if (facts.kind != ParameterKind::weight || facts.extents.size() < 2) continue;
    const Index n = facts.extents[0], k = facts.elems() / n;
    const double m = double(plan.rows) * leaf.facts.forward_flops_per_row / (2 * double(n) * double(k));
    return {Index(m + 0.5), n, k};
  }
  return {};
}

// softmax(q kᵀ) v with stored scores: as separate kernels do it, over the whole square.
constexpr KernelSeconds stored_attention_seconds(const PlanData& plan, const LeafSite& leaf, const Cluster& cluster,
                                                 const Convention& convention) {
  const Index s = plan.batch.sequence, heads = heads_of(leaf), d = leaf.out.channels / heads;
  const double count = double(plan.batch.micro * heads), act = convention.activation_bytes, scores = count * double(s) * double(s);
  const double sides = act * (2 * count * double(s) * double(d) + scores), mask = convention.mask_bytes;
  const auto product = [&](Index n, Index k) { return product_seconds(cluster, convention.product_type, count, s, n, k, sides); };
  KernelSeconds out;
  out.forward = product(s, d) + streaming_seconds(cluster, 2 * act * scores) + product(d, s);
  out.backward_input = product(s, d) + 3 * product(d, s) + streaming_seconds(cluster, 3 * act * scores);
  if (mask > 0) {  // dropout of the scores
    out.forward += streaming_seconds(cluster, (2 * act + mask) * scores);
    out.backward_input += streaming_seconds(cluster, (2 * act + mask) * scores);
  }
  return out;
}

// Layers without products are as fast as memory. Two things that traffic_of does not know: an input's gradient that is added to is read,
// and gains and shifts are sums over rows, which a device takes in a second kernel that reads the input and the output's gradient again.
constexpr KernelSeconds streaming_leaf_seconds(const PlanData& plan, int number, const Cluster& cluster, const Convention& convention) {
  const LeafSite& leaf = plan.graph.leaves[std::size_t(number)];
  const FrameSite& frame = plan.graph.frames[std::size_t(leaf.frame)];
  const Index rows = leaf.rows_divided ? divide_up(plan.rows, plan.graph.tensor_ranks) : plan.rows;
  const LeafTraffic traffic = traffic_of(plan, number, rows);
  const double scale = convention.activation_bytes / double(bytes_of(plan.training.type)), elems = double(rows * leaf.out.elems());
  const double mask = is_called(leaf, "dropout") ? convention.mask_bytes * elems : 0;
  const bool adds = !plan.activations.frames[std::size_t(leaf.frame)].first_input[std::size_t(leaf.op - frame.first_op)];
  double again = adds ? convention.activation_bytes * double(rows * leaf.in.elems()) : 0;
  for (const ParameterFacts& facts : leaf.facts.parameters)
    if (facts.kind == ParameterKind::norm) {
      again += convention.activation_bytes * double(rows * (leaf.in.elems() + leaf.out.elems()));
      break;
    }
  return {streaming_seconds(cluster, scale * double(traffic.forward_bytes) + mask),
          streaming_seconds(cluster, scale * double(traffic.backward_bytes) + mask + again), 0};
}

constexpr KernelSeconds leaf_seconds(const PlanData& plan, int number, const Cluster& cluster, const Convention& convention) {
  const LeafSite& leaf = plan.graph.leaves[std::size_t(number)];
  if (leaf.facts.passes) return {};
  if (is_attention(leaf)) {
    if (convention.stores_scores) return stored_attention_seconds(plan, leaf, cluster, convention);
    const double rows = double(plan.rows), speed = cluster.flops(convention.product_type) * cluster.kernels.attention_fraction;
    const double launch = cluster.kernels.launch_seconds;
    return {launch + rows * leaf.facts.forward_flops_per_row / speed, launch + rows * leaf.facts.backward_flops_per_row / speed, 0};
  }
  const FrameSite& frame = plan.graph.frames[std::size_t(leaf.frame)];
  const OpSite& op = plan.graph.ops[std::size_t(leaf.op)];
  const bool passes_on = !(leaf.frame == 0 && frame.count == 1 && op.input == 0);  // the model's input needs no gradient
  if (const ProductShape shape = product_of(plan, leaf); shape.m > 0) {
    const double act = convention.activation_bytes, m = double(shape.m), n = double(shape.n), k = double(shape.k);
    const ElementType type = convention.product_type;
    const double sides = act * m * (n + k), weight = convention.weight_bytes * n * k;
    return {product_seconds(cluster, type, 1, shape.m, shape.n, shape.k, sides + weight + (op.second >= 0 ? act * m * n : 0)),
            passes_on ? product_seconds(cluster, type, 1, shape.m, shape.k, shape.n, sides + weight) : 0,
            product_seconds(cluster, type, 1, shape.n, shape.k, shape.m, sides + 2 * convention.gradient_bytes * n * k)};
  }
  return streaming_leaf_seconds(plan, number, cluster, convention);
}

// One unit of a frame and one micro-batch: computing, and what its tensor group says. Where backward is whole, its parts add up.
struct FrameSeconds {
  double forward = 0, backward_input = 0, backward_weight = 0;  // with what is made again in backward_input, without communication
  double recomputed = 0;                                        // within backward_input
  double forward_exposed = 0, backward_exposed = 0;             // communication that nothing hides
  double communication = 0;                                     // all of it
};

class FrameClock {
 public:
  constexpr FrameClock(const PlanData& plan, int frame, const Cluster& cluster, const Convention& convention, const Route& tensor)
      : plan_(plan), frame_(plan.graph.frames[std::size_t(frame)]), cluster_(cluster), convention_(convention), tensor_(tensor) {
    const FrameMemory& memory = plan.activations.frames[std::size_t(frame)];
    for (int i = 0; i < frame_.num_ops; ++i) kernels_.push_back(kernel(i, memory));
    for (int i = 0; i < frame_.num_ops; ++i) {
      const KernelSeconds& own = kernels_[std::size_t(i)];
      out_.forward += own.forward, out_.backward_input += own.backward_input, out_.backward_weight += own.backward_weight;
      say(i, false, out_.forward_exposed);
      say(i, true, out_.backward_exposed);
    }
    for (const Rerun& rerun : memory.reruns)
      for (int i = rerun.first; i <= rerun.last; ++i) {
        out_.recomputed += kernels_[std::size_t(i)].forward;
        say(i, false, out_.backward_exposed);
      }
    out_.backward_input += out_.recomputed;
  }
  constexpr const FrameSeconds& seconds() const { return out_; }

 private:
  constexpr const OpSite& op(int i) const { return plan_.graph.ops[std::size_t(frame_.first_op + i)]; }
  constexpr double bytes(int tensor) const {
    const std::size_t at = std::size_t(frame_.first_tensor + tensor);
    const double rows = double(plan_.graph.rows_divided[at] ? divide_up(plan_.rows, plan_.graph.tensor_ranks) : plan_.rows);
    return rows * double(plan_.graph.tensors[at].elems()) * convention_.activation_bytes;
  }
  constexpr KernelSeconds kernel(int i, const FrameMemory& memory) const {
    const OpSite& site = op(i);
    if (site.kind == OpKind::leaf) return leaf_seconds(plan_, site.leaf, cluster_, convention_);
    const double size = bytes(site.output);
    if (site.kind == OpKind::add) {
      const bool copies = memory.copies_second[std::size_t(i)] != 0;  // or both share a gradient
      return {is_fused(i) ? size / moved_per_second() : streaming_seconds(cluster_, 3 * size),
              copies ? streaming_seconds(cluster_, 2.5 * size) : 0, 0};
    }
    const double copy = site.kind == OpKind::place ? streaming_seconds(cluster_, 2 * bytes(site.input)) : 0;
    return {copy, copy, 0};
  }
  constexpr double moved_per_second() const { return cluster_.memory_bytes_per_second * cluster_.kernels.memory_fraction; }
  // Whether an add is part of the dropout before it: then only the residual is read besides.
  constexpr bool is_fused(int i) const {
    if (!convention_.fuses_dropout || i == 0 || op(i - 1).kind != OpKind::leaf) return false;
    return is_called(plan_.graph.leaves[std::size_t(op(i - 1).leaf)], "dropout") &&
           (op(i - 1).output == op(i).input || op(i - 1).output == op(i).second);
  }
  constexpr void say(int i, bool backward, double& exposed) {
    const OpSite& site = op(i);
    if (!is_communication(site.kind)) return;
    const Operation operation = communication_of(site.kind, backward);
    if (operation == Operation::barrier) return;
    const double whole = double(plan_.rows) * double(plan_.graph.tensors[std::size_t(frame_.first_tensor + site.input)].elems());
    const double seconds = collective_seconds(operation, whole * convention_.activation_bytes, tensor_);
    out_.communication += seconds;
    double hidden = 0;
    if (backward && convention_.overlaps_layers && (site.kind == OpKind::enter || site.kind == OpKind::gather_rows))
      for (int reader = i + 1; reader < frame_.num_ops; ++reader)
        if (op(reader).input == site.output) hidden = kernels_[std::size_t(reader)].backward_weight;
    // What runs beside it slows it down.
    exposed += seconds - (seconds < hidden ? seconds : hidden) * (1 - cluster_.kernels.collective_fraction);
  }

  const PlanData& plan_;
  const FrameSite& frame_;
  const Cluster& cluster_;
  const Convention& convention_;
  Route tensor_;
  std::vector<KernelSeconds> kernels_{};
  FrameSeconds out_{};
};

// The loss reads the prediction twice and writes its gradient over it, in 32 bits at least.
constexpr double loss_seconds(const PlanData& plan, const Cluster& cluster, const Route& tensor) {
  const double real = bytes_of(plan.training.type) > 4 ? 8 : 4;
  double seconds = streaming_seconds(cluster, 4 * real * double(plan.rows) * double(plan.graph.output.elems()));
  if (plan.divides_classes())
    seconds += collective_seconds(Operation::all_reduce, 8.0 * double(plan.rows), tensor) +
               collective_seconds(Operation::all_reduce, 24.0 * double(plan.rows), tensor);
  return seconds;
}

}  // namespace weft
