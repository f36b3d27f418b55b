// SPDX-License-Identifier: Apache-2.0
// Where each tensor of a micro-batch lies in a rank's arenas: the plan's places, as addresses.
#pragma once

#include <algorithm>
#include <vector>

#include "weft/layout/call.hpp"
#include "weft/plan/boundaries.hpp"
#include "weft/run/arenas.hpp"

namespace weft {

// Between two points where micro-batches join: from behind join `first` to join `last`, as indices into PlanData::joins; -1 and the number
// of joins are the ends of the model.
struct Segment {
  int first = -1, last = 0;
};

// What the layers need to know of a micro-batch, and which chunk it goes through.
struct MicroBatch {
  Leading leading{};
  Index first_item = 0;     // its first sequence (or image) in the global batch: random streams count from there
  int chunk = 0;            //
  Index slot = 0;           // which of the held activations are its own,
  Index message_slot = 0;   // which of the inputs from the chunk before,
  Index gradient_slot = 0;  // which of the incoming gradients,
  Index weight_slot = 0;    // which of the gradients that the weight part of backward needs,
  Index input_slot = 0;     // and which of the model's inputs
  Index number = 0;         // of the step's micro-batches of this rank
  bool training = true;
};

template <class Real>
class TensorPlaces {
 public:
  // stage: of the pipeline; tensors of this stage's chunks only have a place.
  TensorPlaces(const PlanData& plan, int stage, Arenas& arenas) : plan_(plan), stage_(stage), arenas_(arenas) {
    const std::vector<GradientSide> sides = gradient_sides(plan);
    for (std::size_t u = 0; u < plan.units.size(); ++u) {
      const UnitData& data = plan.units[u];
      const ChunkData& chunk = plan.chunks[std::size_t(data.chunk)];
      const bool starts = Index(u) == chunk.first_unit;
      units_.push_back({data.frame, data.repetition, starts ? 0 : units_.back().slot_offset + slot_bytes_of(u - 1),
                        starts ? 0 : units_.back().weight_slot_offset + weight_slot_bytes_of(u - 1), sides[u].side, sides[u].anchor,
                        Index(u) + 1 == chunk.end_unit, starts});
    }
  }

  // ── what the engine reads and writes ──
  bool has_input() const { return plan_.chunks.front().stage == stage_; }
  bool has_loss() const { return plan_.chunks.back().stage == stage_; }
  // Stages between the ends read a micro-batch too, into a place that is overwritten by the next: they need to know its extents.
  std::byte* input(Index slot) const { return arenas_.inputs.data() + (has_input() ? slot : 0) * io_bytes(plan_.graph.input); }
  std::byte* targets(Index slot) const {
    const Index inputs = has_input() ? plan_.stages[std::size_t(stage_)].input_depth : 1;
    return arenas_.inputs.data() + inputs * io_bytes(plan_.graph.input) + (has_loss() ? slot : 0) * io_bytes(plan_.training.target);
  }
  const Real* prediction(const MicroBatch& micro) const { return output_value(last_unit(), micro); }
  Real* prediction_gradient(const MicroBatch& micro) const { return output_gradient(last_unit(), micro); }
  // What a chunk takes from the one before it and gives to the one behind, and the gradients on their way back.
  Real* chunk_input(const MicroBatch& micro) const {
    const ChunkData& chunk = chunk_of(micro);
    return reinterpret_cast<Real*>(arenas_.messages.data() + chunk.first_input_byte + micro.message_slot * chunk.input_bytes);
  }
  Real* chunk_gradient(const MicroBatch& micro) const {
    const ChunkData& chunk = chunk_of(micro);
    return reinterpret_cast<Real*>(arenas_.messages.data() + chunk.first_gradient_byte + micro.gradient_slot * chunk.gradient_bytes);
  }
  const Real* chunk_output(const MicroBatch& micro) const { return output_value(chunk_of(micro).end_unit - 1, micro); }
  const Real* chunk_input_gradient(const MicroBatch& micro) const { return gradient(chunk_of(micro).first_unit, 0, micro); }

 protected:
  struct Unit {
    int frame;
    Index repetition;
    Index slot_offset;         // within the slot of the chunk
    Index weight_slot_offset;  // within its weight slot
    bool gradient_side;
    Index gradient_anchor;  // the unit whose output gradient lies where this one's does
    bool ends_chunk, starts_chunk;
  };
  Index last_unit() const { return Index(units_.size()) - 1; }
  const FrameSite& frame_of(Index u) const { return plan_.graph.frames[std::size_t(units_[std::size_t(u)].frame)]; }
  const FrameMemory& memory_of(Index u) const { return plan_.activations.frames[std::size_t(units_[std::size_t(u)].frame)]; }
  Index io_bytes(Features features) const { return tensor_bytes(features, {.rows = plan_.rows, .real_bytes = Index(sizeof(Real))}); }
  // Rows of a tensor that this rank has of a micro-batch.
  bool rows_divided(Index u, int tensor) const { return plan_.graph.rows_divided[std::size_t(frame_of(u).first_tensor + tensor)] != 0; }
  Index rows_of(Index u, int tensor, const MicroBatch& micro) const {
    return rows_divided(u, tensor) ? own_rows(micro) : micro.leading.rows();
  }
  Index slice_rows(const MicroBatch& micro) const { return divide_up(micro.leading.rows(), plan_.graph.tensor_ranks); }
  Index first_own_row(const MicroBatch& micro) const { return std::min(tensor_rank_ * slice_rows(micro), micro.leading.rows()); }
  Index own_rows(const MicroBatch& micro) const { return std::min(slice_rows(micro), micro.leading.rows() - first_own_row(micro)); }

  const ChunkData& chunk_of(const MicroBatch& micro) const { return plan_.chunks[std::size_t(micro.chunk)]; }
  Index slot_bytes_of(std::size_t u) const { return plan_.activations.frames[std::size_t(plan_.units[u].frame)].slot_bytes; }
  std::byte* slot_data(Index u, const MicroBatch& micro) const {
    const ChunkData& chunk = chunk_of(micro);
    return arenas_.activations.data() + chunk.first_slot_byte + micro.slot * chunk.slot_bytes + units_[std::size_t(u)].slot_offset;
  }
  Index weight_slot_bytes_of(std::size_t u) const { return plan_.activations.frames[std::size_t(plan_.units[u].frame)].weight_slot_bytes; }
  std::byte* weight_slot_data(Index u, const MicroBatch& micro) const {
    const ChunkData& chunk = chunk_of(micro);
    return arenas_.activations.data() + chunk.first_weight_slot_byte + micro.weight_slot * chunk.weight_slot_bytes +
           units_[std::size_t(u)].weight_slot_offset;
  }
  std::byte* boundary(bool side) const {
    return arenas_.boundaries.data() + (side ? plan_.stages[std::size_t(stage_)].boundary_bytes[0] : 0);
  }

  Real* at(Index u, Place place, const MicroBatch& micro, Real* output_side, Real* input_side) const {
    switch (place.storage) {
      case Storage::slot: return reinterpret_cast<Real*>(slot_data(u, micro) + place.offset);
      case Storage::weight_slot: return reinterpret_cast<Real*>(weight_slot_data(u, micro) + place.offset);
      case Storage::live: return reinterpret_cast<Real*>(arenas_.live.data() + place.offset);
      case Storage::workspace: return reinterpret_cast<Real*>(arenas_.workspace.data() + place.offset);
      case Storage::boundary: return output_side;
      case Storage::boundary_input: return input_side;
      case Storage::none: break;
    }
    return nullptr;
  }
  Real* output_value(Index u, const MicroBatch& micro) const {
    const FrameMemory& memory = memory_of(u);
    return memory.output_kept ? reinterpret_cast<Real*>(slot_data(u, micro) + memory.output_value_offset)
                              : reinterpret_cast<Real*>(boundary(u % 2 == 1));
  }
  Real* output_gradient(Index u, const MicroBatch& micro) const {
    const Index anchor = units_[std::size_t(u)].gradient_anchor;
    const FrameMemory& memory = memory_of(anchor);
    if (units_[std::size_t(anchor)].ends_chunk && chunk_of(micro).gradient_bytes > 0) return chunk_gradient(micro);
    std::byte* kept = plan_.activations.facts.split_backward ? weight_slot_data(anchor, micro) : slot_data(anchor, micro);
    return memory.output_gradient_kept ? reinterpret_cast<Real*>(kept + memory.output_gradient_offset)
                                       : reinterpret_cast<Real*>(boundary(units_[std::size_t(anchor)].gradient_side));
  }
  // The value of a tensor of a unit; tensor 0 is what the unit before gave.
  Real* value(Index u, int tensor, const MicroBatch& micro) const {
    if (tensor == 0 && units_[std::size_t(u)].starts_chunk)
      return u == 0 ? reinterpret_cast<Real*>(input(micro.input_slot)) : chunk_input(micro);
    if (tensor == 0) return output_value(u - 1, micro);
    return at(u, memory_of(u).values[std::size_t(tensor)], micro, reinterpret_cast<Real*>(boundary(u % 2 == 1)), nullptr);
  }
  // Null for the gradient of the model's input, which nobody needs.
  Real* gradient(Index u, int tensor, const MicroBatch& micro) const {
    if (tensor == 0 && u == 0) return nullptr;
    const Unit& unit = units_[std::size_t(u)];
    Real* output_side = output_gradient(u, micro);
    Real* input_side = unit.starts_chunk ? reinterpret_cast<Real*>(boundary(!unit.gradient_side)) : output_gradient(u - 1, micro);
    if (tensor == 0) return unit.starts_chunk && !memory_of(u).flips ? output_side : input_side;
    const FrameMemory& memory = memory_of(u);
    const Place place = memory.gradients[std::size_t(tensor)];
    // What came from the next chunk lies where it was received, although the frame has a place of its own for it.
    if (unit.ends_chunk && memory.output_gradient_kept && place == memory.gradients[std::size_t(frame_of(u).output)]) return output_side;
    return at(u, place, micro, output_side, input_side);
  }
  Index elems(Index u, int tensor) const { return plan_.graph.tensors[std::size_t(frame_of(u).first_tensor + tensor)].elems(); }

  const PlanData& plan_;
  int stage_;
  Arenas& arenas_;
  std::vector<Unit> units_;
  Index tensor_rank_ = 0;
};

}  // namespace weft
