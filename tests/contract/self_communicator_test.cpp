// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <weft/comm/self/self_communicator.hpp>

#include "contract/communicator_suite.hpp"

namespace {

struct SelfRanks {
  using Communicator = weft::SelfCommunicator;
  static constexpr int max_ranks = 1;
  static constexpr bool reports_faults = true;
  template <class Body>
  static void run(int, Body body) {
    Communicator comm;
    body(comm);
  }
};

}  // namespace

TEST_CASE("self_communicator_conforms") { weft::contract::run_communicator_suite<SelfRanks>(); }
