// SPDX-License-Identifier: Apache-2.0
// One call of a layer, as pointers: what the engine fills in and the layer's context hands out. No type of the model is in it, so that the
// engine is compiled once for all models.
#pragma once

#include "weft/graph/graph_data.hpp"
#include "weft/kernel/scratch.hpp"

namespace weft {

template <class Real>
struct LeafCall {
  Leading leading{};
  Index first_row = 0;  // of the micro-batch in the global batch
  bool training = false;

  // In a tensor group. With rows divided, `leading` is the rank's rows as one column, and these say where they lie in the micro-batch.
  int tensor_rank = 0;
  bool adds_whole = true;  // whether this rank adds what is whole, such as a bias, to a result that is summed over the group
  bool rows_divided = false;
  Index row_offset = 0, sequence = 1;

  const void* input = nullptr;
  Real* output = nullptr;
  const Real* residual = nullptr;
  Real* parameters[8]{};  // of buffers too
  Real* gradients[8]{};
  std::byte* saved[4]{};

  const Real* output_gradient = nullptr;
  Real* input_gradient = nullptr;
  bool accumulates = false;

  double* join_sums = nullptr;
  double join_rows = 0;
  Real* step_state = nullptr;

  Real* cache = nullptr;
  Index cache_capacity = 0;

  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  int leaf = 0;
  Index repetition = 0;
  char* touched = nullptr;  // by parameter of the leaf
  const GraphData* graph = nullptr;
  kernel::Scratch scratch{};
};

// The code of a layer, as pointers that the engine calls through. Null where a layer has none.
template <class Real>
struct LeafFunctions {
  using Function = void (*)(LeafCall<Real>&);
  Function forward = nullptr, backward = nullptr;
  Function backward_input = nullptr, backward_weight = nullptr;  // of layers that split backward; else backward is the first part
  Function statistics = nullptr, joined = nullptr, backward_statistics = nullptr;
};

}  // namespace weft
