// SPDX-License-Identifier: Apache-2.0
// Compares the calls that a step made with what the plan's ledger says. The ledger comes from descriptions, the calls from the run.
#pragma once

#include <span>

#include "weft/base/error.hpp"
#include "weft/plan/plan_data.hpp"

namespace weft {

// Errors: weft[audit.call], weft[audit.count]: rank, place in the step, both sides.
inline void audit(const PlanData& plan, int rank, std::span<const CallRecord> made, Index num_made) {
  const auto where = [&](std::size_t i) { return "rank " + std::to_string(rank) + ", call " + std::to_string(i) + " of the step"; };
  for (std::size_t i = 0; i < plan.ledger.size(); ++i) {
    const bool there = i < made.size();
    if (there && agree(made[i], plan.ledger[i].call)) continue;
    throw Error("audit.call", "a rank did not communicate as its plan says; this is a fault of the engine or of a policy (" + where(i) +
                                  ": the ledger says " + to_text(plan.ledger[i].call) + ", made was " +
                                  (there ? to_text(made[i]) : "nothing") + ")");
  }
  if (num_made > Index(plan.ledger.size()))
    throw Error("audit.count", "a rank communicated more than its plan says; this is a fault of the engine or of a policy (rank " +
                                   std::to_string(rank) + ": the ledger has " + std::to_string(plan.ledger.size()) + " calls, made were " +
                                   std::to_string(num_made) + ")");
}

}  // namespace weft
