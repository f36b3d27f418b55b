// SPDX-License-Identifier: Apache-2.0
// The two buffers that hand values and gradients from one unit to the next, where they are not kept: which side each takes, and how large
// the sides are on a stage.
#pragma once

#include "weft/plan/plan_data.hpp"

namespace weft {

// Where the gradient of a unit's output lies: in the buffer of this side, unless the anchor says another place.
struct GradientSide {
  bool side = false;
  Index anchor = 0;  // the unit whose output gradient lies where this one's does
};

// By unit. Values take turns by the unit's number; gradients from the last unit to the first, but a unit whose input's gradient is its
// output's memory hands on where that lies.
constexpr std::vector<GradientSide> gradient_sides(const PlanData& plan) {
  const auto memory_of = [&](std::size_t u) -> const FrameMemory& { return plan.activations.frames[std::size_t(plan.units[u].frame)]; };
  std::vector<GradientSide> out = filled(Index(plan.units.size()), GradientSide{});
  bool side = !plan.activations.frames.back().output_kept && (out.size() - 1) % 2 == 1;  // over the prediction where that is not kept
  for (std::size_t u = out.size(); u-- > 0;) {
    out[u] = {side, Index(u)};
    const bool ends_chunk = Index(u) + 1 == plan.chunks[std::size_t(plan.units[u].chunk)].end_unit;
    if (!ends_chunk && !memory_of(u).output_gradient_kept && !memory_of(u + 1).flips) out[u].anchor = out[u + 1].anchor;
    side ^= memory_of(u).flips;
  }
  return out;
}

// Whether the gradient of a unit's output lies in a boundary buffer: not where the next chunk or the loss puts it, nor in a slot.
constexpr bool is_on_boundary(const PlanData& plan, const GradientSide& place) {
  const UnitData& anchor = plan.units[std::size_t(place.anchor)];
  const ChunkData& chunk = plan.chunks[std::size_t(anchor.chunk)];
  if (place.anchor + 1 == chunk.end_unit && chunk.gradient_bytes > 0) return false;
  return !plan.activations.frames[std::size_t(anchor.frame)].output_gradient_kept;
}

// Sizes of what the units of a stage share: boundary buffers, workspace, and the area for what is made again.
constexpr void place_shared(PlanData& plan, int stage_number) {
  StageData& stage = plan.stages[std::size_t(stage_number)];
  const std::vector<GradientSide> sides = gradient_sides(plan);
  const auto grow = [](Index& size, Index bytes) { size = bytes > size ? bytes : size; };
  const auto grow_gradient = [&](Index unit, Index bytes) {
    const GradientSide& place = sides[std::size_t(unit)];
    if (is_on_boundary(plan, place)) grow(stage.boundary_bytes[sides[std::size_t(place.anchor)].side], bytes);
  };
  for (int c : stage.chunks) {
    const ChunkData& chunk = plan.chunks[std::size_t(c)];
    for (Index u = chunk.first_unit; u < chunk.end_unit; ++u) {
      const FrameMemory& memory = plan.activations.frames[std::size_t(plan.units[std::size_t(u)].frame)];
      grow(stage.boundary_bytes[u % 2], memory.output_value_bytes);
      grow_gradient(u, memory.output_gradient_bytes);
      if (u > chunk.first_unit)
        grow_gradient(u - 1, memory.input_gradient_bytes);
      else if (u > 0 || !memory.input_gradient_alone)
        grow(stage.boundary_bytes[!sides[std::size_t(u)].side], memory.input_gradient_bytes);
      grow(stage.memory.workspace, memory.forward_workspace_bytes);
      grow(stage.memory.workspace, memory.backward_workspace_bytes);
      grow(stage.memory.live, memory.live_bytes);
    }
  }
  stage.memory.boundaries = stage.boundary_bytes[0] + stage.boundary_bytes[1];
}

}  // namespace weft
