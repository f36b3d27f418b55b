// SPDX-License-Identifier: Apache-2.0
// A plan as plain data: all that the engine, the reports and the audit know of model and strategy.
#pragma once

#include "weft/layout/call.hpp"
#include "weft/plan/place_tensors.hpp"
#include "weft/plan/settings.hpp"

namespace weft {

// A range of the gradient arena that is summed over the ranks in one call.
struct Bucket {
  Index first = 0, elems = 0;
};

// Where micro-batches meet: an op of a unit, forward in this order, backward in the reverse.
struct JoinSite {
  Index unit = 0, repetition = 0;
  int frame = 0, op = 0, leaf = 0;
};

enum class LedgerPhase : char { join_forward, bucket, join_backward, control };

struct LedgerEntry {
  LedgerPhase phase = LedgerPhase::bucket;
  Index number = 0;  // of the join or the bucket
  CallRecord call{};
};

// Bytes of one rank. What is listed here is exact: the engine allocates just this.
struct Memory {
  Index parameters = 0, buffers = 0, gradients = 0, optimizer = 0;
  Index activations = 0, boundaries = 0, workspace = 0;
  Index inputs = 0, joins = 0, control = 0, scratch = 0;

  constexpr Index total() const {
    return parameters + buffers + gradients + optimizer + activations + boundaries + workspace + inputs + joins + control + scratch;
  }
};

enum class PlanRule : char {
  none,
  shape_meets,
  residual_matches,
  sum_matches,
  concat_matches,
  repeat_matches,
  tie_owner,
  tie_extents,
  tie_repeat,
  layer_options,
  not_a_layer,
  empty,
  ranks_positive,
  bucket_positive,
  batch_positive,
  batch_divides,
  sequence_fits,
  loss_fits,
  over_budget
};

// The first rule that a plan breaks, and the numbers that go with it.
struct PlanFault {
  PlanRule rule = PlanRule::none;
  int leaf = 0;
  Index found = 0, wanted = 0, other = 0;
};

struct PlanData {
  GraphData graph{};
  StrategyData strategy{};
  Batch batch{};
  TrainingData training{};

  Index rows = 0;    // capacity of a micro-batch: tokens or images
  Index micros = 0;  // micro-batches a rank and step, when ranks get equal shares
  Index depth = 1;   // micro-batches whose activations are held at once
  Index control_elems = 0;
  double nominal = 1;  // a power of two >= the targets of a step: gradients are sums / nominal until the optimizer sees them
  ActivationMemory activations{};
  std::vector<JoinSite> joins{};
  std::vector<Bucket> buckets{};    // in the order in which backward completes them
  std::vector<Index> watermarks{};  // by op: where in its unit's parameters the gradients start that are complete after its backward
  std::vector<LedgerEntry> ledger{};
  Memory memory{};
  PlanFault fault{};

  constexpr double forward_flops_per_row() const {
    double total = 0;
    for (const LeafSite& leaf : graph.leaves)
      total += leaf.facts.forward_flops_per_row * double(graph.frames[std::size_t(leaf.frame)].count);
    return total;
  }
  constexpr double training_flops_per_row() const {
    double total = forward_flops_per_row();
    for (const LeafSite& leaf : graph.leaves)
      total += leaf.facts.backward_flops_per_row * double(graph.frames[std::size_t(leaf.frame)].count);
    return total;
  }
};

// Bytes that a layer moves through memory at least, for one micro-batch of `rows`: forward its input, residual, output, saved tensors and
// parameters once; backward what it kept, both gradients, and parameters and their gradients (which are added to: read and written).
struct LeafTraffic {
  Index forward_bytes = 0, backward_bytes = 0;
};

constexpr LeafTraffic traffic_of(const PlanData& plan, int leaf, Index rows) {
  const LeafSite& site = plan.graph.leaves[std::size_t(leaf)];
  const FrameSite& frame = plan.graph.frames[std::size_t(site.frame)];
  const OpSite& op = plan.graph.ops[std::size_t(site.op)];
  const Index real = bytes_of(plan.training.type), in_elem = site.in.element == Element::token ? 4 : real;
  Index parameters = 0, saved = 0;
  for (const ParameterFacts& facts : site.facts.parameters) parameters += facts.elems() * real;
  for (const SavedFacts& facts : site.facts.saved) saved += (rows * facts.elems_per_row + facts.fixed_elems) * (facts.integer ? 4 : real);
  const Index input = rows * site.in.elems() * in_elem, output = rows * site.out.elems() * real;
  const bool passes_on = !(site.frame == 0 && frame.first_unit == 0 && op.input == 0);  // the model's input needs no gradient
  LeafTraffic out;
  if (site.facts.passes) return out;
  out.forward_bytes = input + (op.second >= 0 ? output : 0) + output + saved + parameters;
  out.backward_bytes = (site.facts.needs_input ? input : 0) + (site.facts.needs_output ? output : 0) + saved + output +
                       (passes_on ? rows * site.in.elems() * real : 0) + 3 * parameters;
  return out;
}

// What a rank says to others in a step: totals of the ledger. Bytes are payload: each element once a call, whatever the algorithm sends.
struct LedgerTotals {
  Index calls = 0, bytes = 0, control_calls = 0, control_bytes = 0;

  constexpr Index calls_per_step() const { return calls; }
  constexpr Index bytes_per_step() const { return bytes; }
};

constexpr LedgerTotals totals(const std::vector<LedgerEntry>& ledger) {
  LedgerTotals out;
  for (const LedgerEntry& entry : ledger) {
    const Index bytes = entry.call.count * bytes_of(entry.call.type);
    if (entry.phase == LedgerPhase::control)
      ++out.control_calls, out.control_bytes += bytes;
    else
      ++out.calls, out.bytes += bytes;
  }
  return out;
}

}  // namespace weft
