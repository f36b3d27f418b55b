// SPDX-License-Identifier: Apache-2.0
// The memory of one rank, allocated once from the plan's numbers.
#pragma once

#include "weft/base/error.hpp"
#include "weft/plan/plan_data.hpp"
#include "weft/tensor/buffer.hpp"

namespace weft {

struct Arenas {
  Buffer parameters, buffers, gradients, optimizer;                                                        // kept from step to step
  Buffer gathered;                                                                                         // whole units of what is sharded
  Buffer activations, live, boundaries, workspace, messages, inputs, joins, loss, fold, control, scratch;  // used within a step

  // for_training: false leaves out what only training needs.
  static Arenas allocate(const Memory& memory, bool for_training) {
    const auto training = [&](Index bytes) { return Buffer(for_training ? bytes : 0); };
    return {Buffer(memory.parameters), Buffer(memory.buffers),     training(memory.gradients), training(memory.optimizer),
            Buffer(memory.gathered),   Buffer(memory.activations), Buffer(memory.live),        Buffer(memory.boundaries),
            Buffer(memory.workspace),  Buffer(memory.messages),    Buffer(memory.inputs),      training(memory.joins),
            Buffer(memory.loss),       training(memory.fold),      Buffer(memory.control),     Buffer(memory.scratch)};
  }

  Index bytes() const {
    return parameters.bytes() + buffers.bytes() + gradients.bytes() + optimizer.bytes() + gathered.bytes() + activations.bytes() +
           live.bytes() + boundaries.bytes() + workspace.bytes() + messages.bytes() + inputs.bytes() + joins.bytes() + loss.bytes() +
           fold.bytes() + control.bytes() + scratch.bytes();
  }
};

}  // namespace weft
