// SPDX-License-Identifier: Apache-2.0
// What a stage of a pipeline does, one thing after the other.
#pragma once

#include "weft/base/lean_vector.hpp"

namespace weft {

// backward = backward_input and backward_weight at once. Messages: send_forward{c} sends the output of chunk c to the stage of chunk c + 1,
// receive_forward{c} receives the input of chunk c; send_backward{c} sends the gradient of the input of chunk c to the stage of chunk c -
// 1, receive_backward{c} receives the gradient of the output of chunk c. gather, release, reduce_gradients: of a chunk's sharded
// parameters; tables that are read may have them, the plan derives its own.
enum class ActionKind : unsigned char {
  forward,
  backward,
  backward_input,
  backward_weight,
  send_forward,
  receive_forward,
  send_backward,
  receive_backward,
  gather,
  release,
  reduce_gradients
};

constexpr bool is_message(ActionKind kind) { return kind >= ActionKind::send_forward && kind <= ActionKind::receive_backward; }
constexpr bool is_send(ActionKind kind) { return kind == ActionKind::send_forward || kind == ActionKind::send_backward; }
constexpr bool is_receive(ActionKind kind) { return kind == ActionKind::receive_forward || kind == ActionKind::receive_backward; }
constexpr bool is_compute(ActionKind kind) { return kind <= ActionKind::backward_weight; }

struct Action {
  ActionKind kind = ActionKind::forward;
  int chunk = 0;   // in the model's order, over all stages
  int micro = -1;  // -1: of no micro-batch (gather, release, reduce_gradients)
  bool operator==(const Action&) const = default;
};

// What one stage does, in order.
using ActionRow = LeanVector<Action>;

}  // namespace weft
