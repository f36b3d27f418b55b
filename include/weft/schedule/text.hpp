// SPDX-License-Identifier: Apache-2.0
// Actions and faults of schedules as text, in the spelling of PyTorch's pipelining: "2F0", "1RECV_B3".
#pragma once

#include "weft/base/text.hpp"
#include "weft/schedule/fault.hpp"

namespace weft {

constexpr const char* symbol_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward: return "F";
    case ActionKind::backward: return "B";
    case ActionKind::backward_input: return "I";
    case ActionKind::backward_weight: return "W";
    case ActionKind::send_forward: return "SEND_F";
    case ActionKind::receive_forward: return "RECV_F";
    case ActionKind::send_backward: return "SEND_B";
    case ActionKind::receive_backward: return "RECV_B";
    case ActionKind::gather: return "UNSHARD";
    case ActionKind::release: return "RESHARD";
    case ActionKind::reduce_gradients: return "REDUCE_GRAD";
  }
  return "?";
}

// Chunk, kind, micro-batch.
inline std::string action_text(const Action& action) {
  std::string text = text_of(action.chunk, symbol_of(action.kind));
  if (action.micro >= 0) append_text(text, action.micro);
  return text;
}

// "stage 1, position 3: 1F0 waits for 0F0"
inline std::string fault_text(const ScheduleFault& fault) {
  if (fault.rule == ScheduleRule::shape) return text_of("rows or stage ", fault.stage, ", chunks or chunk ", fault.position);
  std::string text = text_of("stage ", fault.stage, ", position ", fault.position, ": ", action_text(fault.action));
  if (!(fault.waiting_for == Action{})) text += " waits for " + action_text(fault.waiting_for);
  return text;
}

}  // namespace weft
