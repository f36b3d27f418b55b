// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <vector>

#include <weft/comm/recording/recording_communicator.hpp>
#include <weft/comm/recording/silent_communicator.hpp>
#include <weft/run/launch.hpp>

using weft::CallRecord, weft::ElementType, weft::Index, weft::Operation, weft::Reduction;
using Dry = weft::RecordingCommunicator<weft::SilentCommunicator>;

namespace {

// Something a strategy might do, over any communicator.
template <class C>
void some_step(C& comm, float* data) {
  auto request = comm.start_all_reduce(data, 8, Reduction::sum, 1);
  comm.progress();
  comm.wait(request);
  const weft::Outgoing send = weft::outgoing(data, 2, (comm.rank() + 1) % comm.size());
  const weft::Incoming receive = weft::incoming(data + 4, 2, (comm.rank() + comm.size() - 1) % comm.size());
  comm.exchange({&send, 1}, {&receive, 1});
  comm.broadcast(data, 4, 1);
  comm.reduce_scatter(data + comm.rank(), data, 1, Reduction::average);
  comm.barrier();
}

}  // namespace

TEST_CASE("recording_of_a_silent_communicator_lists_the_calls_and_moves_nothing") {
  Dry comm({2, 3, 9}, 16);
  std::vector<float> data(8, 1.5F);
  some_step(comm, data.data());
  CHECK(data == std::vector<float>(8, 1.5F));
  const CallRecord right[] = {
      {.operation = Operation::all_reduce, .type = ElementType::f32, .count = 8, .tag = 1, .communicator = 9},
      {.operation = Operation::send, .type = ElementType::f32, .peer = 0, .count = 2, .communicator = 9},
      {.operation = Operation::receive, .type = ElementType::f32, .peer = 1, .count = 2, .communicator = 9},
      {.operation = Operation::broadcast, .type = ElementType::f32, .peer = 1, .count = 4, .communicator = 9},
      {.operation = Operation::reduce_scatter, .type = ElementType::f32, .reduction = Reduction::average, .count = 1, .communicator = 9},
      {.operation = Operation::barrier, .communicator = 9},
  };
  REQUIRE(comm.records().size() == std::size(right));
  for (std::size_t i = 0; i < std::size(right); ++i) CHECK_MESSAGE(comm.records()[i] == right[i], to_text(comm.records()[i]));
}

TEST_CASE("recording_of_threads_equals_the_recording_of_nothing") {
  weft::launch(3, [](weft::ThreadCommunicator& inner) {
    weft::RecordingCommunicator<weft::ThreadCommunicator> live(inner, 16, 9);
    Dry dry({inner.rank(), inner.size(), 9}, 16);
    std::vector<float> data(8, 1.0F), unused(8, 1.0F);
    some_step(live, data.data());
    some_step(dry, unused.data());
    if (!std::equal(live.records().begin(), live.records().end(), dry.records().begin(), dry.records().end()))
      throw std::runtime_error("the calls that were made are not those that were foretold");
  });
}

TEST_CASE("recording_beyond_its_capacity_counts_without_allocating") {
  Dry comm({0, 1}, 3);
  const CallRecord* place = comm.records().data();
  for (int i = 0; i < 5; ++i) comm.barrier();
  CHECK(comm.records().size() == 3);
  CHECK(comm.num_calls() == 5);
  CHECK_FALSE(comm.is_complete());
  CHECK(comm.records().data() == place);
  comm.clear();
  CHECK(comm.num_calls() == 0);
  CHECK(comm.is_complete());
}

TEST_CASE("silent_communicator_refuses_what_it_cannot_know_and_what_is_wrong") {
  weft::SilentCommunicator comm(0, 2);
  float data = 0;
  CHECK_THROWS_WITH_AS(comm.split(3, 0), doctest::Contains("weft[comm.silent_split]"), weft::Error);
  CHECK_THROWS_WITH_AS(comm.broadcast(&data, 1, 2), doctest::Contains("weft[comm.peer]"), weft::Error);
  CHECK_THROWS_WITH_AS(weft::SilentCommunicator(2, 2), doctest::Contains("weft[comm.rank]"), weft::Error);
}
