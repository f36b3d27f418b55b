// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <weft/comm/self/self_communicator.hpp>

TEST_CASE("self_communicator_message_without_its_other_end_is_refused") {
  weft::SelfCommunicator comm;
  float value = 1, other = 0;
  CHECK_THROWS_WITH_AS(comm.send(&value, 1, 0), doctest::Contains("weft[comm.deadlock]"), weft::Error);
  CHECK_THROWS_WITH_AS(comm.receive(&value, 1, 0), doctest::Contains("weft[comm.deadlock]"), weft::Error);
  const weft::Outgoing send = weft::outgoing(&value, 1, 0);
  const weft::Incoming twice = weft::incoming(&other, 2, 0), once = weft::incoming(&other, 1, 0);
  CHECK_THROWS_WITH_AS(comm.exchange({&send, 1}, {&twice, 1}), doctest::Contains("weft[comm.mismatch]"), weft::Error);
  comm.exchange({&send, 1}, {&once, 1});
  CHECK(other == 1);
}

TEST_CASE("self_communicator_abort_is_an_error") {
  weft::SelfCommunicator comm;
  CHECK_THROWS_WITH_AS(comm.abort("no more"), doctest::Contains("no more"), weft::Error);
}
