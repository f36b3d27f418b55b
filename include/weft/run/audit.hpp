// SPDX-License-Identifier: Apache-2.0
// Compares the calls that a step made with what the plan's ledger says. The ledger comes from descriptions, the calls from the run.
#pragma once

#include "weft/base/error.hpp"
#include "weft/run/groups.hpp"

namespace weft {

// rows(micro) is how many rows a micro-batch of this step had: what its messages carry. updates: so far, that of the step among them.
// Allocates nothing unless something differs. Errors: weft[audit.call], weft[audit.count]: rank, group, place in the step, both sides.
template <class Communicator, class Rows>
void audit(const PlanData& plan, int stage, Groups<Communicator>& groups, Rows&& rows, Index updates) {
  std::vector<std::size_t>& cursors = groups.cursors();
  for (std::size_t& cursor : cursors) cursor = 0;
  const int rank = groups.world().rank();
  for_each_call(
      plan, stage,
      [&](const LedgerEntry& entry) {
        const std::size_t number = groups.number_of(entry), place = cursors[number]++;
        const auto made = groups.all()[number].records();
        CallRecord expected = entry.call;
        if (entry.micro >= 0)
          expected.count =
              (entry.divided ? divide_up(Index(rows(entry.micro)), plan.graph.tensor_ranks) : rows(entry.micro)) * entry.elems_per_row;
        if (place < made.size() && agree(made[place], expected)) return;
        throw Error("audit.call",
                    text_of("a rank did not communicate as its plan says; this is a fault of the engine or of a policy (rank ", rank,
                            ", call ", place, " of the ", name_of(entry.group), " group: the ledger says ", to_text(expected),
                            ", made was ", place < made.size() ? to_text(made[place]) : "nothing", ")"));
      },
      updates);
  for (std::size_t number = 0; number < cursors.size(); ++number) {
    const Index made = groups.all()[number].num_calls();
    if (made > Index(cursors[number]))
      throw Error("audit.count",
                  text_of("a rank communicated more than its plan says; this is a fault of the engine or of a policy (rank ", rank,
                          ", communicator ", number, ": the ledger has ", cursors[number], " calls, made were ", made, ")"));
  }
}

}  // namespace weft
