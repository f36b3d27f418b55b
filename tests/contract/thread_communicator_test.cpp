// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <weft/run/launch.hpp>

#include "contract/communicator_suite.hpp"

namespace {

struct ThreadRanks {
  using Communicator = weft::ThreadCommunicator;
  static constexpr int max_ranks = 8;
  static constexpr bool reports_faults = true;
  template <class Body>
  static void run(int ranks, Body body) {
    weft::launch(ranks, body, {.threads = {}, .allow_inside_mpi = true});
  }
};

}  // namespace

TEST_CASE("thread_communicator_conforms") { weft::contract::run_communicator_suite<ThreadRanks>(); }
