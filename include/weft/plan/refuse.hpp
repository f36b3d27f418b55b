// SPDX-License-Identifier: Apache-2.0
// What a plan is refused for, as text at start-up and as static_assert at compile time. Both lists have the same sentences, in the same
// order (tests/plan/refuse_test.cpp compares them): a static_assert takes a literal only.
#pragma once

#include "weft/base/error.hpp"
#include "weft/layout/fit_to_world.hpp"
#include "weft/plan/plan_data.hpp"
#include "weft/schedule/text.hpp"

namespace weft {

constexpr const char* rule_text(PlanRule rule) {
  switch (rule) {
    case PlanRule::none: return "";
    case PlanRule::shape_meets:
      return "weft[shape.meets]: a layer does not take what the one before it gives; change the features of one of them";
    case PlanRule::residual_matches:
      return "weft[shape.residual]: x + f(x) needs f to give the features of x; change the last layer inside Residual";
    case PlanRule::sum_matches: return "weft[shape.sum]: the branches of Sum must give the same features; change one of them";
    case PlanRule::concat_matches:
      return "weft[shape.concat]: the branches of Concat must give the same height and width; change one of them";
    case PlanRule::repeat_matches: return "weft[shape.repeat]: what is repeated must give the features it takes; change its last layer";
    case PlanRule::tie_owner:
      return "weft[graph.tie_owner]: Tied names no earlier parameter; give the full path, such as wte.table, of one that comes before";
    case PlanRule::tie_extents: return "weft[graph.tie_extents]: tied parameters must have the same extents; change one of the layers";
    case PlanRule::tie_repeat:
      return "weft[graph.tie_repeat]: a parameter inside Repeat can be tied within the same repetition only; move its owner out";
    case PlanRule::layer_options: return "weft[layer.options]: a layer refuses its own options; see its explain()";
    case PlanRule::not_a_layer:
      return "weft[graph.layer]: this is not a layer: it lacks name, version, output(Features) or facts(Features, Index); see layer/facts.hpp";
    case PlanRule::empty: return "weft[graph.empty]: the model has no layers; add one";
    case PlanRule::tensor_divides:
      return "weft[tensor.divides]: the tensor ranks divide the heads, groups or features of every layer that they share, and are a divisor or a multiple of its key/value heads; change TensorParallel::ranks or the layer";
    case PlanRule::tensor_features:
      return "weft[tensor.features]: slices of features reach a layer that needs them whole, or a tie whose sides are sliced differently; use fewer tensor ranks or give the layer a SplitRule";
    case PlanRule::tensor_rows:
      return "weft[tensor.rows]: a Repeat gives its rows divided otherwise than it takes them; put a layer before it, or use TensorParallel without sequence";
    case PlanRule::tensor_rule:
      return "weft[tensor.rule]: a SplitRule does not fit its layer: a dimension that the parameter does not have, segments that are not the input's channels, or a kind that the layer's facts rule out; fix splits()";
    case PlanRule::tensor_part:
      return "weft[tensor.part]: one rank's part of a layer takes, gives or keeps something else than the SplitRule leaves it; fix Part or the rule";
    case PlanRule::mesh_open:
      return "weft[mesh.open]: an axis is left open, so the plan needs the number of ranks; use fit_to_world(mesh, ranks)";
    case PlanRule::open_twice: return "weft[mesh.open_twice]: one axis gets the rest of the world; give the others an extent";
    case PlanRule::open_tensor:
      return "weft[mesh.open_tensor]: tensor ranks share layers of types that the compiler must know; leave another axis open, or use plan_at_start";
    case PlanRule::ranks_positive: return "weft[mesh.ranks]: a mesh has at least one rank; change DataParallel::ranks";
    case PlanRule::bucket_positive: return "weft[data.bucket_bytes]: a bucket holds at least one byte; change DataParallel::bucket_bytes";
    case PlanRule::shard_divides:
      return "weft[data.shard_ranks]: shard_ranks divides the data ranks; change DataParallel::ranks or shard_ranks";
    case PlanRule::shard_joins:
      return "weft[batch_norm.shard]: a layer joins micro-batches, which works with Shard::none and Shard::optimizer; change DataParallel::shard";
    case PlanRule::sync_every: return "weft[sync.every]: a policy's number is at least 1; change Replicas::every";
    case PlanRule::sync_data:
      return "weft[sync.data]: replicas that a policy lets train alone divide nothing with other data ranks; let Replicas be the only data axis";
    case PlanRule::sync_joins:
      return "weft[batch_norm.sync]: a layer joins the micro-batches of all replicas, which the policy lets train alone; use DataParallel";
    case PlanRule::reproducible_tensor:
      return "weft[reproducible.tensor]: the reproducible mode does not cover tensor ranks yet, whose sums would need fixed parts; use TensorParallel{.ranks = 1}, or leave Reproducible out";
    case PlanRule::reproducible_joins:
      return "weft[batch_norm.reproducible]: a layer joins micro-batches, whose sums are not folded in a fixed order yet; leave Reproducible out";
    case PlanRule::reproducible_sync:
      return "weft[reproducible.sync]: replicas that update alone depend on how many there are; use DataParallel, or leave Reproducible out";
    case PlanRule::reproducible_ties:
      return "weft[reproducible.ties]: a parameter is tied by more than one use in other blocks, which have no fixed order of summing; tie it once, or leave Reproducible out";
    case PlanRule::reproducible_order:
      return "weft[reproducible.order]: the schedule takes micro-batches backward in another order than their own; change the schedule, or leave Reproducible out";
    case PlanRule::stages_fit:
      return "weft[pipeline.stages]: a pipeline needs a unit (a top-level node, or a repetition of a Repeat) for every chunk; use fewer stages or chunks";
    case PlanRule::stages_fixed:
      return "weft[pipeline.chunk_starts]: chunk_starts holds the first unit of every chunk, from 0 on, ascending, within the model; fix the list";
    case PlanRule::chunks_taken:
      return "weft[pipeline.chunks]: the schedule has another number of chunks a stage; leave Pipeline::chunks out, or use a schedule that interleaves";
    case PlanRule::pipeline_joins:
      return "weft[batch_norm.schedule]: a layer joins all micro-batches of a step, so they cannot follow each other through a pipeline; use one stage";
    case PlanRule::schedule_refuses:
      return "weft[schedule.shape_refused]: the schedule has no table for these stages, micro-batches and chunks; change one of them";
    case PlanRule::schedule_table:
      return "weft[schedule.table]: the table of a schedule is for another number of micro-batches than a rank has; change Batch or the table";
    case PlanRule::schedule_too_large:
      return "weft[schedule.too_large]: compilers cannot go through so many stages and micro-batches; use plan_at_start, which proves all of them";
    case PlanRule::schedule_window:
      return "weft[schedule.window]: the whole schedule needs other memory than the window of micro-batches that the compiler has seen; use plan_at_start";
    case PlanRule::schedule_shape:
    case PlanRule::schedule_action:
    case PlanRule::schedule_stage:
    case PlanRule::schedule_twice:
    case PlanRule::schedule_missing:
    case PlanRule::schedule_message:
    case PlanRule::schedule_order:
    case PlanRule::schedule_deadlock: return rule_text(ScheduleRule(int(rule) - int(PlanRule::schedule_shape) + int(ScheduleRule::shape)));
    case PlanRule::recompute_joins:
      return "weft[batch_norm.recompute]: a layer joins micro-batches, so nothing of its block can be made again on its own; use Recompute::none";
    case PlanRule::recompute_splits:
      return "weft[recompute.schedule]: the schedule splits backward, whose weight part needs what was kept; use Recompute::none, or 1F1B or GPipe";
    case PlanRule::batch_positive: return "weft[batch.positive]: Batch::global, ::micro and ::sequence are at least 1; change them";
    case PlanRule::batch_divides:
      return "weft[batch.divides]: data ranks x Batch::micro must divide Batch::global; change one of the three";
    case PlanRule::sequence_fits:
      return "weft[batch.sequence]: Batch::sequence is longer than the model has positions; shorten it or enlarge PositionEmbedding";
    case PlanRule::loss_fits: return "weft[loss.fits]: the loss does not take what the model gives; add a Flatten or use another loss";
    case PlanRule::over_budget:
      return "weft[memory.budget]: the plan needs more bytes a rank than the budget; lower Batch::micro, use more ranks, or raise Budget::bytes_per_rank";
  }
  return "";
}

// Micro-batches near those of a shape for which a schedule has a table.
inline std::string nearest_micros_text(const PlanData& plan) {
  if (plan.strategy.schedule == nullptr) return "none";
  const Index stages = plan.fault.found, micros = plan.fault.wanted;
  Index nearest[2] = {0, 0};
  for (int way : {0, 1})
    for (Index step = 1; step <= stages && nearest[way] == 0; ++step)
      if (const Index m = way == 0 ? micros - step : micros + step;
          m >= 1 && !plan.strategy.schedule({int(stages), int(plan.fault.other), int(m)}).rows.empty())
        nearest[way] = m;
  return either_text(nearest[0], nearest[1]);
}

// "weft[batch.divides]: … (batch 10, ranks 3, micro 2)"
inline std::string fault_text(const PlanData& plan) {
  const PlanFault& fault = plan.fault;
  std::string text = rule_text(fault.rule);
  const auto number = [](Index value) { return std::to_string(value); };
  if (fault.rule >= PlanRule::shape_meets && fault.rule <= PlanRule::tie_repeat && fault.leaf < int(plan.graph.leaves.size())) {
    text += " (layer " + number(fault.leaf) + ", " + path_of_leaf(plan.graph, fault.leaf, 0);
    if (fault.rule <= PlanRule::repeat_matches || fault.rule == PlanRule::tie_extents)
      text += ": given " + number(fault.found) + ", wanted " + (fault.wanted > 0 ? number(fault.wanted) : std::string("something else"));
    return text + ")";
  }
  switch (fault.rule) {
    case PlanRule::tensor_divides:
      return text + " (layer " + path_of_leaf(plan.graph, fault.leaf, 0) + ": " + number(fault.found) + ", tensor ranks " +
             number(fault.wanted) + ", nearest: " + either_text(fault.below, fault.above) + ")";
    case PlanRule::tensor_features:
    case PlanRule::tensor_rows:
      return text + " (layer " + path_of_leaf(plan.graph, fault.leaf, 0) + ", tensor ranks " + number(fault.wanted) + ")";
    case PlanRule::tensor_rule: return text + " (layer " + path_of_leaf(plan.graph, fault.leaf, 0) + ", rule " + number(fault.found) + ")";
    case PlanRule::tensor_part:
      return text + " (layer " + path_of_leaf(plan.graph, fault.leaf, 0) + ": " + number(fault.found) + ", the rule leaves " +
             number(fault.wanted) + ")";
    case PlanRule::mesh_open:
    case PlanRule::open_twice:
    case PlanRule::open_tensor: return text + " (" + layout_text(plan.strategy.axes) + ")";
    case PlanRule::ranks_positive: return text + " (ranks " + number(fault.found) + ")";
    case PlanRule::bucket_positive: return text + " (bucket_bytes " + number(fault.found) + ")";
    case PlanRule::shard_divides:
      return text + " (shard_ranks " + number(fault.found) + ", data ranks " + number(fault.wanted) +
             ", nearest: " + either_text(fault.below, fault.above) + ")";
    case PlanRule::shard_joins: return text + " (data ranks " + number(fault.found) + ")";
    case PlanRule::sync_every: return text + " (every " + number(fault.found) + ")";
    case PlanRule::sync_joins: return text + " (replicas " + number(fault.found) + ")";
    case PlanRule::sync_data: return text + " (data ranks " + number(fault.found) + ", shards " + number(fault.wanted) + ")";
    case PlanRule::reproducible_tensor: return text + " (tensor ranks " + number(fault.found) + ")";
    case PlanRule::reproducible_sync: return text + " (replicas " + number(fault.found) + ")";
    case PlanRule::reproducible_ties: return text + " (uses " + number(fault.found) + ")";
    case PlanRule::reproducible_order: return text + " (stage " + number(fault.found) + ", micro-batch " + number(fault.wanted) + ")";
    case PlanRule::stages_fit:
      return text + " (stages " + number(fault.found) + ", chunks a stage " + number(fault.other) + ", units " + number(fault.wanted) +
             (fault.below > 0 ? ", nearest: " + number(fault.below) + " stages)" : std::string("; all are at least 1)"));
    case PlanRule::stages_fixed:
      return text + " (entries " + number(fault.found) + ", chunks " + number(fault.wanted) + ", units " + number(fault.other) + ")";
    case PlanRule::chunks_taken: return text + " (chunks " + number(fault.found) + ", the schedule's " + number(fault.wanted) + ")";
    case PlanRule::pipeline_joins: return text + " (stages " + number(fault.found) + ")";
    case PlanRule::schedule_refuses:
      return text + " (stages " + number(fault.found) + ", micro-batches " + number(fault.wanted) + ", chunks a stage " +
             number(fault.other) + ", nearest micro-batches: " + nearest_micros_text(plan) + ")";
    case PlanRule::schedule_table: return text + " (table " + number(fault.found) + ", rank " + number(fault.wanted) + ")";
    case PlanRule::schedule_too_large:
      return text + " (stages " + number(fault.found) + ", micro-batches " + number(fault.wanted) + ", chunks a stage " +
             number(fault.other) + ")";
    case PlanRule::schedule_window: return text + " (needs " + number(fault.found) + " bytes, seen " + number(fault.wanted) + ")";
    case PlanRule::schedule_shape:
      return text + " (rows or stage " + number(fault.found) + ", chunks or chunk " + number(fault.wanted) + ")";
    case PlanRule::schedule_action:
    case PlanRule::schedule_stage:
    case PlanRule::schedule_twice:
    case PlanRule::schedule_missing:
    case PlanRule::schedule_message:
    case PlanRule::schedule_order:
    case PlanRule::schedule_deadlock:
      return text + " (" +
             fault_text(ScheduleFault{ScheduleRule::order, int(fault.found), int(fault.wanted), fault.action, fault.waiting_for}) +
             ", of " + number(fault.other) + " micro-batches)";
    case PlanRule::batch_positive:
      return text + " (global " + number(fault.found) + ", micro " + number(fault.wanted) + ", sequence " + number(fault.other) + ")";
    case PlanRule::batch_divides:
      return text + " (global " + number(fault.found) + ", ranks " + number(fault.wanted) + ", micro " + number(fault.other) +
             ", nearest global: " + either_text(fault.below, fault.above) + ")";
    case PlanRule::sequence_fits: return text + " (sequence " + number(fault.found) + ", positions " + number(fault.wanted) + ")";
    case PlanRule::over_budget:
      return text + " (needs " + number(fault.found) + " bytes, budget " + number(fault.wanted) + ", over by " + number(fault.other) + ")";
    default: return text;
  }
}

// Throws what a plan is refused for, if anything.
inline void require_valid(const PlanData& plan) {
  if (plan.fault.rule == PlanRule::none) return;
  const std::string text = fault_text(plan);  // "weft[id]: message"
  const std::size_t end = text.find("]: ");
  throw Error(text.substr(5, end - 5), text.substr(end + 3));
}

// ── the same for the compiler ──
// A failing static_assert in the body of a constexpr function leaves every class valid, so one error is all. The numbers are arguments of
// the template that fails, so that every compiler prints them; `Layer` is the type of the layer at fault.
namespace numbers {
template <Index>
struct ranks;
template <Index>
struct open_axes;
template <Index below, Index above>
struct nearest;
template <Index>
struct global;
template <Index>
struct micro;
template <Index>
struct sequence;
template <Index>
struct positions;
template <Index>
struct given;
template <Index>
struct wanted;
template <Index>
struct bytes;
template <Index>
struct budget;
template <Index>
struct shard_ranks;
template <Index>
struct stages;
template <Index>
struct chunks_a_stage;
template <Index>
struct chunks_of_schedule;
template <Index>
struct units;
template <Index>
struct chunk_starts_given;
template <Index>
struct chunks;
template <Index>
struct micros;
template <Index>
struct stage;
template <Index>
struct position;
template <Index>
struct micros_of_table;
template <Index>
struct bytes_seen;
template <Index>
struct rows_or_stage;
template <Index>
struct chunks_or_chunk;
template <ActionKind, int of_chunk, int of_micro_batch>
struct action;
template <ActionKind, int of_chunk, int of_micro_batch>
struct waits_for;
template <Index>
struct divisible;
template <Index>
struct tensor_ranks;
template <Index>
struct rule_number;
template <Index>
struct part_has;
template <Index>
struct rule_leaves;
template <int>
struct layer_number;
}  // namespace numbers

template <class...>
inline constexpr bool acceptable = false;

// clang-format off
template <PlanFault f, class Layer>
constexpr bool explain() {
  using enum PlanRule;
  using namespace numbers;
  if constexpr (f.rule == shape_meets) static_assert(acceptable<Layer, layer_number<f.leaf>, given<f.found>, wanted<f.wanted>>, "weft[shape.meets]: a layer does not take what the one before it gives; change the features of one of them");
  if constexpr (f.rule == residual_matches) static_assert(acceptable<Layer, layer_number<f.leaf>, given<f.found>, wanted<f.wanted>>, "weft[shape.residual]: x + f(x) needs f to give the features of x; change the last layer inside Residual");
  if constexpr (f.rule == sum_matches) static_assert(acceptable<Layer, layer_number<f.leaf>, given<f.found>, wanted<f.wanted>>, "weft[shape.sum]: the branches of Sum must give the same features; change one of them");
  if constexpr (f.rule == concat_matches) static_assert(acceptable<Layer, layer_number<f.leaf>, given<f.found>, wanted<f.wanted>>, "weft[shape.concat]: the branches of Concat must give the same height and width; change one of them");
  if constexpr (f.rule == repeat_matches) static_assert(acceptable<Layer, layer_number<f.leaf>, given<f.found>, wanted<f.wanted>>, "weft[shape.repeat]: what is repeated must give the features it takes; change its last layer");
  if constexpr (f.rule == tie_owner) static_assert(acceptable<Layer, layer_number<f.leaf>>, "weft[graph.tie_owner]: Tied names no earlier parameter; give the full path, such as wte.table, of one that comes before");
  if constexpr (f.rule == tie_extents) static_assert(acceptable<Layer, layer_number<f.leaf>, given<f.found>, wanted<f.wanted>>, "weft[graph.tie_extents]: tied parameters must have the same extents; change one of the layers");
  if constexpr (f.rule == tie_repeat) static_assert(acceptable<Layer, layer_number<f.leaf>>, "weft[graph.tie_repeat]: a parameter inside Repeat can be tied within the same repetition only; move its owner out");
  if constexpr (f.rule == layer_options) static_assert(acceptable<Layer>, "weft[layer.options]: a layer refuses its own options; see its explain()");
  if constexpr (f.rule == not_a_layer) static_assert(acceptable<Layer>, "weft[graph.layer]: this is not a layer: it lacks name, version, output(Features) or facts(Features, Index); see layer/facts.hpp");
  if constexpr (f.rule == empty) static_assert(acceptable<Layer>, "weft[graph.empty]: the model has no layers; add one");
  if constexpr (f.rule == tensor_divides) static_assert(acceptable<Layer, layer_number<f.leaf>, divisible<f.found>, tensor_ranks<f.wanted>, nearest<f.below, f.above>>, "weft[tensor.divides]: the tensor ranks divide the heads, groups or features of every layer that they share, and are a divisor or a multiple of its key/value heads; change TensorParallel::ranks or the layer");
  if constexpr (f.rule == tensor_features) static_assert(acceptable<Layer, layer_number<f.leaf>, tensor_ranks<f.wanted>>, "weft[tensor.features]: slices of features reach a layer that needs them whole, or a tie whose sides are sliced differently; use fewer tensor ranks or give the layer a SplitRule");
  if constexpr (f.rule == tensor_rows) static_assert(acceptable<Layer, layer_number<f.leaf>, tensor_ranks<f.wanted>>, "weft[tensor.rows]: a Repeat gives its rows divided otherwise than it takes them; put a layer before it, or use TensorParallel without sequence");
  if constexpr (f.rule == tensor_rule) static_assert(acceptable<Layer, layer_number<f.leaf>, rule_number<f.found>>, "weft[tensor.rule]: a SplitRule does not fit its layer: a dimension that the parameter does not have, segments that are not the input's channels, or a kind that the layer's facts rule out; fix splits()");
  if constexpr (f.rule == tensor_part) static_assert(acceptable<Layer, layer_number<f.leaf>, part_has<f.found>, rule_leaves<f.wanted>>, "weft[tensor.part]: one rank's part of a layer takes, gives or keeps something else than the SplitRule leaves it; fix Part or the rule");
  if constexpr (f.rule == mesh_open) static_assert(acceptable<open_axes<f.found>>, "weft[mesh.open]: an axis is left open, so the plan needs the number of ranks; use fit_to_world(mesh, ranks)");
  if constexpr (f.rule == open_twice) static_assert(acceptable<open_axes<f.found>>, "weft[mesh.open_twice]: one axis gets the rest of the world; give the others an extent");
  if constexpr (f.rule == open_tensor) static_assert(acceptable<open_axes<f.found>>, "weft[mesh.open_tensor]: tensor ranks share layers of types that the compiler must know; leave another axis open, or use plan_at_start");
  if constexpr (f.rule == ranks_positive) static_assert(acceptable<ranks<f.found>>, "weft[mesh.ranks]: a mesh has at least one rank; change DataParallel::ranks");
  if constexpr (f.rule == bucket_positive) static_assert(acceptable<bytes<f.found>>, "weft[data.bucket_bytes]: a bucket holds at least one byte; change DataParallel::bucket_bytes");
  if constexpr (f.rule == shard_divides) static_assert(acceptable<ranks<f.wanted>, shard_ranks<f.found>, nearest<f.below, f.above>>, "weft[data.shard_ranks]: shard_ranks divides the data ranks; change DataParallel::ranks or shard_ranks");
  if constexpr (f.rule == shard_joins) static_assert(acceptable<ranks<f.found>>, "weft[batch_norm.shard]: a layer joins micro-batches, which works with Shard::none and Shard::optimizer; change DataParallel::shard");
  if constexpr (f.rule == sync_every) static_assert(acceptable<given<f.found>>, "weft[sync.every]: a policy's number is at least 1; change Replicas::every");
  if constexpr (f.rule == sync_joins) static_assert(acceptable<ranks<f.found>>, "weft[batch_norm.sync]: a layer joins the micro-batches of all replicas, which the policy lets train alone; use DataParallel");
  if constexpr (f.rule == sync_data) static_assert(acceptable<ranks<f.found>, divisible<f.wanted>>, "weft[sync.data]: replicas that a policy lets train alone divide nothing with other data ranks; let Replicas be the only data axis");
  if constexpr (f.rule == reproducible_tensor) static_assert(acceptable<ranks<f.found>>, "weft[reproducible.tensor]: the reproducible mode does not cover tensor ranks yet, whose sums would need fixed parts; use TensorParallel{.ranks = 1}, or leave Reproducible out");
  if constexpr (f.rule == reproducible_joins) static_assert(acceptable<Layer>, "weft[batch_norm.reproducible]: a layer joins micro-batches, whose sums are not folded in a fixed order yet; leave Reproducible out");
  if constexpr (f.rule == reproducible_sync) static_assert(acceptable<ranks<f.found>>, "weft[reproducible.sync]: replicas that update alone depend on how many there are; use DataParallel, or leave Reproducible out");
  if constexpr (f.rule == reproducible_ties) static_assert(acceptable<given<f.found>>, "weft[reproducible.ties]: a parameter is tied by more than one use in other blocks, which have no fixed order of summing; tie it once, or leave Reproducible out");
  if constexpr (f.rule == reproducible_order) static_assert(acceptable<stage<f.found>, micros<f.wanted>>, "weft[reproducible.order]: the schedule takes micro-batches backward in another order than their own; change the schedule, or leave Reproducible out");
  if constexpr (f.rule == stages_fit) static_assert(acceptable<stages<f.found>, chunks_a_stage<f.other>, units<f.wanted>, nearest<f.below, f.above>>, "weft[pipeline.stages]: a pipeline needs a unit (a top-level node, or a repetition of a Repeat) for every chunk; use fewer stages or chunks");
  if constexpr (f.rule == stages_fixed) static_assert(acceptable<chunk_starts_given<f.found>, chunks<f.wanted>, units<f.other>>, "weft[pipeline.chunk_starts]: chunk_starts holds the first unit of every chunk, from 0 on, ascending, within the model; fix the list");
  if constexpr (f.rule == chunks_taken) static_assert(acceptable<stages<f.other>, chunks_a_stage<f.found>, chunks_of_schedule<f.wanted>>, "weft[pipeline.chunks]: the schedule has another number of chunks a stage; leave Pipeline::chunks out, or use a schedule that interleaves");
  if constexpr (f.rule == pipeline_joins) static_assert(acceptable<stages<f.found>>, "weft[batch_norm.schedule]: a layer joins all micro-batches of a step, so they cannot follow each other through a pipeline; use one stage");
  if constexpr (f.rule == schedule_refuses) static_assert(acceptable<stages<f.found>, micros<f.wanted>, chunks_a_stage<f.other>>, "weft[schedule.shape_refused]: the schedule has no table for these stages, micro-batches and chunks; change one of them");
  if constexpr (f.rule == schedule_table) static_assert(acceptable<micros<f.wanted>, micros_of_table<f.found>>, "weft[schedule.table]: the table of a schedule is for another number of micro-batches than a rank has; change Batch or the table");
  if constexpr (f.rule == schedule_too_large) static_assert(acceptable<stages<f.found>, micros<f.wanted>, chunks_a_stage<f.other>>, "weft[schedule.too_large]: compilers cannot go through so many stages and micro-batches; use plan_at_start, which proves all of them");
  if constexpr (f.rule == schedule_window) static_assert(acceptable<bytes<f.found>, bytes_seen<f.wanted>>, "weft[schedule.window]: the whole schedule needs other memory than the window of micro-batches that the compiler has seen; use plan_at_start");
  if constexpr (f.rule == schedule_shape) static_assert(acceptable<rows_or_stage<f.found>, chunks_or_chunk<f.wanted>>, "weft[schedule.shape]: a schedule has one row a stage and says the stage of every chunk; fix its table");
  if constexpr (f.rule == schedule_action) static_assert(acceptable<stage<f.found>, position<f.wanted>, action<f.action.kind, f.action.chunk, f.action.micro>, micros<f.other>>, "weft[schedule.action]: an action names a chunk and a micro-batch of the shape; fix the entry");
  if constexpr (f.rule == schedule_stage) static_assert(acceptable<stage<f.found>, position<f.wanted>, action<f.action.kind, f.action.chunk, f.action.micro>, micros<f.other>>, "weft[schedule.stage]: an action stands in the row of the stage that holds its chunk; move it");
  if constexpr (f.rule == schedule_twice) static_assert(acceptable<stage<f.found>, position<f.wanted>, action<f.action.kind, f.action.chunk, f.action.micro>, micros<f.other>>, "weft[schedule.twice]: every action stands in a schedule once; remove the second");
  if constexpr (f.rule == schedule_missing) static_assert(acceptable<stage<f.found>, position<f.wanted>, action<f.action.kind, f.action.chunk, f.action.micro>, micros<f.other>>, "weft[schedule.missing]: every micro-batch goes forward and backward through every chunk; add what is missing");
  if constexpr (f.rule == schedule_message) static_assert(acceptable<stage<f.found>, position<f.wanted>, action<f.action.kind, f.action.chunk, f.action.micro>, waits_for<f.waiting_for.kind, f.waiting_for.chunk, f.waiting_for.micro>, micros<f.other>>, "weft[schedule.message]: what goes from stage to stage is sent by one and received by the other; add the end that is missing");
  if constexpr (f.rule == schedule_order) static_assert(acceptable<stage<f.found>, position<f.wanted>, action<f.action.kind, f.action.chunk, f.action.micro>, waits_for<f.waiting_for.kind, f.waiting_for.chunk, f.waiting_for.micro>, micros<f.other>>, "weft[schedule.order]: an action comes after what it needs on its own stage; swap them");
  if constexpr (f.rule == schedule_deadlock) static_assert(acceptable<stage<f.found>, position<f.wanted>, action<f.action.kind, f.action.chunk, f.action.micro>, waits_for<f.waiting_for.kind, f.waiting_for.chunk, f.waiting_for.micro>, micros<f.other>>, "weft[schedule.deadlock]: stages wait for each other for ever; move the action before which the stage waits, or what it waits for");
  if constexpr (f.rule == recompute_joins) static_assert(acceptable<Layer>, "weft[batch_norm.recompute]: a layer joins micro-batches, so nothing of its block can be made again on its own; use Recompute::none");
  if constexpr (f.rule == recompute_splits) static_assert(acceptable<stages<f.found>>, "weft[recompute.schedule]: the schedule splits backward, whose weight part needs what was kept; use Recompute::none, or 1F1B or GPipe");
  if constexpr (f.rule == batch_positive) static_assert(acceptable<global<f.found>, micro<f.wanted>, sequence<f.other>>, "weft[batch.positive]: Batch::global, ::micro and ::sequence are at least 1; change them");
  if constexpr (f.rule == batch_divides) static_assert(acceptable<global<f.found>, ranks<f.wanted>, micro<f.other>, nearest<f.below, f.above>>, "weft[batch.divides]: data ranks x Batch::micro must divide Batch::global; change one of the three");
  if constexpr (f.rule == sequence_fits) static_assert(acceptable<sequence<f.found>, positions<f.wanted>>, "weft[batch.sequence]: Batch::sequence is longer than the model has positions; shorten it or enlarge PositionEmbedding");
  if constexpr (f.rule == loss_fits) static_assert(acceptable<Layer, given<f.found>>, "weft[loss.fits]: the loss does not take what the model gives; add a Flatten or use another loss");
  if constexpr (f.rule == over_budget) static_assert(acceptable<bytes<f.found>, budget<f.wanted>>, "weft[memory.budget]: the plan needs more bytes a rank than the budget; lower Batch::micro, use more ranks, or raise Budget::bytes_per_rank");
  return true;
}
// clang-format on

}  // namespace weft
