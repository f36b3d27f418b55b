// SPDX-License-Identifier: Apache-2.0
// How numbers are stored and kernels written where that is not what this library does: papers report memory and time of programs that keep
// 16-bit weights beside 32-bit masters, that store attention's scores, that send slices of messages. Each is a named option here, so
// that a plan can be asked what it would take under another program's habits.
#pragma once

#include "weft/plan/plan_data.hpp"

namespace weft {

struct Convention {
  const char* name = "";
  // Bytes of a parameter, of its gradient, of what the optimizer keeps for it besides; of an element of an activation; of an element of a
  // dropout mask (0: the mask is drawn again in backward and never stored).
  double weight_bytes = 4, gradient_bytes = 4, optimizer_bytes = 8, activation_bytes = 4, mask_bytes = 0;
  ElementType product_type = ElementType::f32;  // what matrix products run in
  bool stores_scores = false;       // attention as two products around a softmax over stored (S, S) scores; else tiled, causal half only
  bool gathers_rows_again = false;  // sequence parallel: products keep their slice of rows and gather it again in backward
  bool keeps_attention_output = false;  // selective recompute keeps what attention gives, and makes only its inside again
  bool keeps_row_numbers = true;        // means, deviations, log-sum-exps: one number a row
  bool divides_messages = false;        // tensor ranks send a slice of a stage's output each, and gather it on the other side
  bool fuses_dropout = false;           // dropout and the sum with a residual behind it are one kernel
  bool overlaps_layers = true;          // a tensor group's sums in backward run beside the weight gradients that do not need them
  Index scatter_buffers = 1;            // whole gradients of sharded units: with one, backward waits until it is scattered
};

// What the plan says and the engine does.
constexpr Convention as_planned(const PlanData& plan) {
  const double real = double(bytes_of(plan.training.type));
  return {.name = "as planned",
          .weight_bytes = real,
          .gradient_bytes = real,
          .optimizer_bytes = real * double(plan.training.optimizer_states),
          .activation_bytes = real,
          .product_type = plan.training.type};
}

namespace conventions {

// Mixed-precision Adam (Rajbhandari et al., arXiv 1910.02054, section 3.1): 16-bit weights and gradients, 12 bytes of 32-bit weights and
// moments.
inline constexpr Convention mixed_precision{.name = "mixed precision",
                                            .weight_bytes = 2,
                                            .gradient_bytes = 2,
                                            .optimizer_bytes = 12,
                                            .activation_bytes = 2,
                                            .product_type = ElementType::f16};

// The activations that Korthikanti et al. count (arXiv 2205.05198, section 4), and how their program runs.
inline constexpr Convention megatron{.name = "Megatron-LM",
                                     .weight_bytes = 2,
                                     .gradient_bytes = 2,
                                     .optimizer_bytes = 12,
                                     .activation_bytes = 2,
                                     .mask_bytes = 1,
                                     .product_type = ElementType::f16,
                                     .stores_scores = true,
                                     .gathers_rows_again = true,
                                     .keeps_attention_output = true,
                                     .keeps_row_numbers = false,
                                     .divides_messages = true,
                                     .fuses_dropout = true};

}  // namespace conventions

// Layers that the conventions treat in their own way.
constexpr bool is_called(const LeafSite& leaf, const char* name) {
  const char* own = leaf.name;
  while (*own && *own == *name) ++own, ++name;
  return *own == *name;
}
constexpr bool is_attention(const LeafSite& leaf) { return leaf.facts.recomputes_alone && leaf.facts.saved.size() > 0; }
// Heads of one rank: attention keeps one number a row and head.
constexpr Index heads_of(const LeafSite& leaf) { return leaf.facts.saved[0].elems_per_row; }

// What the stages of a plan do. A plan of what the compiler has proved (Plan::facts) has no actions: its schedule is asked again.
constexpr ScheduleTable schedule_of(const PlanData& plan) {
  const ScheduleShape shape{int(plan.strategy.stages()), int(plan.strategy.chunks_per_stage), int(plan.micros)};
  if (plan.stages[0].actions.empty() && plan.strategy.schedule) return plan.strategy.schedule(shape);
  ScheduleTable table{shape, {}, {}};
  for (const ChunkData& chunk : plan.chunks) table.stage_of_chunk.push_back(chunk.stage);
  for (const StageData& stage : plan.stages) table.rows.push_back(stage.actions);
  return table;
}

// Bytes of an element that a call carries.
constexpr double element_bytes(const LedgerEntry& entry, const Convention& convention) {
  switch (entry.phase) {
    case LedgerPhase::message:
    case LedgerPhase::layer_forward:
    case LedgerPhase::layer_backward: return convention.activation_bytes;
    case LedgerPhase::gather:
    case LedgerPhase::synchronise:
    case LedgerPhase::publish: return convention.weight_bytes;
    case LedgerPhase::scatter:
    case LedgerPhase::summed:
    case LedgerPhase::bucket:
    case LedgerPhase::tie: return convention.gradient_bytes;
    default: return double(bytes_of(entry.call.type));
  }
}

}  // namespace weft
