// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/strategy/pipeline.hpp"
#include "weft/strategy/tensor_parallel.hpp"

namespace weft {

// A model over several ranks, by layers and by features: one word for Pipeline and, closer together, TensorParallel. In a mesh it is these
// two axes; with an extent of 1, an axis divides nothing. Fields: those of the two.
template <class ScheduleType = schedule::OneForwardOneBackward>
struct ModelParallel {
  using Schedule = ScheduleType;

  Index pipeline = 1;          // stages
  Index tensor = 1;            // ranks that divide the features of a stage
  Index chunks = 1;            // of a stage, for schedules that interleave
  ChunkStarts chunk_starts{};  // empty: chosen so that the most expensive chunk is as cheap as can be
  bool sequence = false;       // of the tensor ranks

  constexpr auto axes() const {
    return mesh(Pipeline<ScheduleType>{.stages = pipeline, .chunks = chunks, .chunk_starts = chunk_starts},
                TensorParallel{.ranks = tensor, .sequence = sequence});
  }
  bool operator==(const ModelParallel&) const = default;
};

}  // namespace weft
