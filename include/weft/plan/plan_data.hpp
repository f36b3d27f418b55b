// SPDX-License-Identifier: Apache-2.0
// A plan as plain data: all that the engine, the reports and the audit know of model and strategy.
#pragma once

#include "weft/layout/call.hpp"
#include "weft/plan/fold_tree.hpp"
#include "weft/plan/place_tensors.hpp"
#include "weft/plan/settings.hpp"
#include "weft/schedule/table.hpp"

namespace weft {

// Which ranks meet in a call: all; those that hold the same part of the model; the stages of one pipeline; the ranks of one tensor group;
// data ranks that hold one copy of what is sharded; data ranks that hold the same shard; stages that share a tied parameter; neighbours
// within a tensor group that have the same slice of a parameter (see Slicing).
enum class GroupKind : char { world, data, pipe, tensor, shard, replica, tie, copies };

// One repetition of a frame, and where its parameters start in the arena of the stage that holds it.
struct UnitData {
  int frame = 0;
  Index repetition = 0;
  int chunk = 0;
  Index first_parameter_elem = 0, first_buffer_elem = 0;
  Index parameter_elems = 0;  // with alignment, and so that shards are equal
};

// Neighbouring units that a stage runs as one. Activations of `depth` micro-batches, inputs of
// `input_depth` and gradients of `gradient_depth` are held at once.
struct ChunkData {
  int stage = 0;
  Index first_unit = 0, end_unit = 0;
  Index depth = 1, input_depth = 1, gradient_depth = 1, weight_depth = 1;
  Index whole_backwards = 0;                                // micro-batches whose backward is not split
  int completed = 0;                                        // how many chunks of the stage have their last backward before this one
  bool loss_in_place = true;                                // the loss may write over the prediction: its backward comes next
  Index slot_bytes = 0, first_slot_byte = 0;                // activations of one micro-batch; where the chunk's begin in the stage's arena
  Index weight_slot_bytes = 0, first_weight_slot_byte = 0;  // gradients from the input part of backward to the weight part
  Index input_bytes = 0, first_input_byte = 0;              // what the chunk before gives, of one micro-batch; in the stage's message arena
  Index gradient_bytes = 0, first_gradient_byte = 0;        // the gradient that the chunk behind, or the loss, gives
};

// A parameter that another stage owns: this stage uses it too, and keeps it equal. Laid out as the owner's unit, so that shards match.
struct GuestData {
  int parameter = 0;  // the owner, in GraphData::parameters
  Index unit = 0;     // the owner's
  Index first_elem = 0, elems = 0;
};

// A tied parameter that several stages use: the owner's and those that have it as a guest sum its gradients.
struct TieData {
  int parameter = 0;
  Index unit = 0;
  std::vector<int> stages{};  // the owner's first

  constexpr bool contains(int stage) const {
    for (int each : stages)
      if (each == stage) return true;
    return false;
  }
};

// A range of the gradient arena that is summed over the data ranks in one call.
struct Bucket {
  Index first = 0, elems = 0;
  int chunk = 0;  // -1: of guests
};

// Where micro-batches meet: an op of a unit, forward in this order, backward in the reverse.
struct JoinSite {
  Index unit = 0, repetition = 0;
  int frame = 0, op = 0, leaf = 0;
};

enum class LedgerPhase : char {
  join_forward,
  message,
  gather,
  scatter,
  layer_forward,
  layer_backward,
  loss,
  summed,
  bucket,
  tie,
  join_backward,
  fold,
  control,
  publish,
  synchronise
};

// A call that a rank makes in a step. Where it grows with the rows of `micro`, `call.count` is that at capacity: elems_per_row for every
// row, or for a slice of the rows (`divided`).
struct LedgerEntry {
  LedgerPhase phase = LedgerPhase::bucket;
  Index number = 0;  // of the join, the bucket, the unit
  CallRecord call{};
  GroupKind group = GroupKind::data;
  int micro = -1;
  Index elems_per_row = 0;
  bool divided = false;
  Index copies = 0;  // of GroupKind::copies: how many ranks
};

// Elements of a unit's parameters, in every repetition of a frame; their gradients are summands of so many neighbouring tensor ranks.
struct Stretch {
  int frame = 0;
  Index first = 0, elems = 0, ranks = 0;
};

// Bytes of one rank. What is listed here is exact: the engine allocates just this.
struct Memory {
  Index parameters = 0, buffers = 0, gradients = 0, optimizer = 0;
  Index gathered = 0;  // whole units of parameters and gradients that are sharded
  Index activations = 0, live = 0, boundaries = 0, workspace = 0, messages = 0;
  Index inputs = 0, joins = 0, loss = 0, fold = 0, control = 0, scratch = 0;  // fold: of the reproducible mode

  constexpr Index total() const {
    return parameters + buffers + gradients + optimizer + gathered + activations + live + boundaries + workspace + messages + inputs +
           joins + loss + fold + control + scratch;
  }
};

// What the ranks of one stage hold and do. Without a pipeline there is one stage, and it has no actions: each micro-batch goes forward and
// backward before the next.
struct StageData {
  std::vector<int> chunks{};
  ActionRow actions{};
  Index parameter_elems = 0, buffer_elems = 0;       // of the arenas
  Index largest_unit_elems = 0, resident_elems = 0;  // of the sharded: a unit; units whose parameters others use too
  Index input_depth = 1;                             // micro-batches whose inputs and targets are held
  Index boundary_bytes[2]{};                         // of the two boundary buffers
  std::vector<GuestData> guests{};
  std::vector<Bucket> buckets{};  // in the order in which backward completes them
  Memory memory{};
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
  tensor_divides,
  tensor_features,
  tensor_rows,
  tensor_rule,
  tensor_part,
  mesh_open,
  open_twice,
  open_tensor,
  ranks_positive,
  bucket_positive,
  shard_divides,
  shard_joins,
  sync_every,
  sync_joins,
  sync_data,
  reproducible_tensor,
  reproducible_joins,
  reproducible_sync,
  reproducible_ties,
  reproducible_order,
  stages_fit,
  stages_fixed,
  chunks_taken,
  pipeline_joins,
  schedule_refuses,
  schedule_table,
  schedule_too_large,
  schedule_window,
  schedule_shape,
  schedule_action,
  schedule_stage,
  schedule_twice,
  schedule_missing,
  schedule_message,
  schedule_order,
  schedule_deadlock,
  recompute_joins,
  recompute_splits,
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
  Index below = 0, above = 0;      // the nearest numbers that would do instead of the one at fault; 0: none
  Action action{}, waiting_for{};  // of a schedule
};

struct PlanData {
  GraphData graph{};
  StrategyData strategy{};
  Batch batch{};
  TrainingData training{};

  Index rows = 0;    // capacity of a micro-batch: tokens or images
  Index micros = 0;  // micro-batches a rank and step, when ranks get equal shares
  FoldSize fold{};   // of the reproducible mode: partial gradients of a rank; else none
  Index depth = 1;   // micro-batches whose activations are held at once by a stage without a schedule
  Index control_elems = 0;
  double nominal = 1;  // a power of two >= the targets of a step: gradients are sums / nominal until the optimizer sees them
  ActivationMemory activations{};
  std::vector<JoinSite> joins{};
  std::vector<Index> watermarks{};  // by op: where in its unit's parameters the gradients start that are complete after its backward
  std::vector<UnitData> units{};
  std::vector<ChunkData> chunks{};
  std::vector<StageData> stages{};
  std::vector<TieData> ties{};
  std::vector<Stretch> summed{};  // by the tensor group, or by neighbours in it, once a step
  Memory memory{};                // of the stage that needs most
  PlanFault fault{};

  // Whether each rank of a tensor group has a slice of the classes.
  constexpr bool divides_classes() const { return graph.tensor_ranks > 1 && !(graph.output == graph.whole_output); }
  constexpr bool streams() const { return stages.size() > 1; }
  constexpr int stage_of_unit(Index unit) const { return chunks[std::size_t(units[std::size_t(unit)].chunk)].stage; }
  // The unit that owns a parameter, seen from a repetition of its user.
  constexpr Index owner_unit(int parameter, Index repetition) const {
    const FrameSite& frame = graph.frame_of(graph.parameters[std::size_t(graph.parameters[std::size_t(parameter)].owner)]);
    return frame.first_unit + (frame.count == 1 ? 0 : repetition);
  }
  // Whether another unit of the same stage uses a parameter of this unit. (Parameters of repeated units are used within them only.)
  constexpr bool is_shared(Index unit) const {
    for (const ParameterSite& site : graph.parameters) {
      if (&site - graph.parameters.data() == site.owner || owner_unit(site.owner, 0) != unit) continue;
      const FrameSite& user = graph.frames[std::size_t(graph.leaves[std::size_t(site.leaf)].frame)];
      if (user.first_unit == graph.frames[std::size_t(units[std::size_t(unit)].frame)].first_unit) continue;
      for (Index repetition = 0; repetition < user.count; ++repetition)
        if (stage_of_unit(user.first_unit + repetition) == stage_of_unit(unit)) return true;
    }
    return false;
  }
  // Where a parameter lies in the arena (of parameters, or of buffers) of a stage that owns it or has it as a guest; -1: nowhere.
  constexpr Index first_elem(int stage, int parameter, Index repetition) const {
    const int owner = graph.parameters[std::size_t(parameter)].owner;
    const ParameterSite& site = graph.parameters[std::size_t(owner)];
    const Index unit = owner_unit(parameter, repetition);
    const UnitData& data = units[std::size_t(unit)];
    if (stage_of_unit(unit) == stage)
      return site.offset + (site.facts.kind == ParameterKind::buffer ? data.first_buffer_elem : data.first_parameter_elem);
    for (const GuestData& guest : stages[std::size_t(stage)].guests)
      if (guest.parameter == owner) return guest.first_elem + site.offset;
    return -1;
  }

  constexpr double forward_flops_per_row() const {
    double total = 0;
    for (const LeafSite& leaf : graph.leaves)
      total += leaf.facts.forward_flops_per_row * double(graph.frames[std::size_t(leaf.frame)].count);
    return total;
  }
  // Of the model: what is made again does not count.
  constexpr double training_flops_per_row() const {
    double total = forward_flops_per_row();
    for (const LeafSite& leaf : graph.leaves)
      total += leaf.facts.backward_flops_per_row * double(graph.frames[std::size_t(leaf.frame)].count);
    return total;
  }
  // Of what is made again.
  constexpr double recomputed_flops_per_row() const {
    double total = 0;
    for (std::size_t f = 0; f < graph.frames.size(); ++f)
      for (const Rerun& rerun : activations.frames[f].reruns)
        for (int i = rerun.first; i <= rerun.last; ++i) {
          const OpSite& op = graph.ops[std::size_t(graph.frames[f].first_op + i)];
          if (op.kind == OpKind::leaf)
            total += graph.leaves[std::size_t(op.leaf)].facts.forward_flops_per_row * double(graph.frames[f].count);
        }
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

}  // namespace weft
