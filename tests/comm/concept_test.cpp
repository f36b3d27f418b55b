// SPDX-License-Identifier: Apache-2.0
// The concepts from both sides: the least that models each, and what comes near and does not.
#include <doctest/doctest.h>

#include <weft/comm/concept.hpp>
#include <weft/comm/recording/recording_communicator.hpp>
#include <weft/comm/recording/silent_communicator.hpp>
#include <weft/comm/self/self_communicator.hpp>
#include <weft/comm/thread/thread_communicator.hpp>

#include "contract/communicator_suite.hpp"

namespace {

using weft::Index, weft::Reduction;

template <class C>
constexpr bool can_everything = weft::CanStartAllReduce<C>&& weft::CanReduce<C>&& weft::CanReduceScatter<C>&& weft::CanAllGather<C>&&
    weft::CanBroadcast<C>&& weft::CanAllToAll<C>&& weft::CanSendReceive<C>;
static_assert(can_everything<weft::ThreadCommunicator>, "threads have every capability");
static_assert(can_everything<weft::SelfCommunicator>, "a world of one has every capability");
static_assert(can_everything<weft::SilentCommunicator>, "the silent communicator has every capability");
static_assert(can_everything<weft::RecordingCommunicator<weft::ThreadCommunicator>>, "recording keeps every capability");
static_assert(weft::CanAllReduce<weft::ThreadCommunicator, weft::bfloat16>, "capabilities hold for 16-bit elements");

// The least that is a communicator.
struct Archetype {
  using communicator_tag = void;
  int rank() const { return 0; }
  int size() const { return 1; }
  int id() const { return 0; }
  void barrier() {}
  Archetype split(int, int) { return {}; }
  void abort(std::string_view) {}
};
static_assert(weft::Communicator<Archetype>, "the archetype is a communicator");
static_assert(!weft::CanAllReduce<Archetype> && !weft::CanStartAllReduce<Archetype> && !weft::CanReduce<Archetype> &&
                  !weft::CanReduceScatter<Archetype> && !weft::CanAllGather<Archetype> && !weft::CanBroadcast<Archetype> &&
                  !weft::CanAllToAll<Archetype> && !weft::CanSendReceive<Archetype>,
              "and has no capability by accident");

// Near misses of the core: one thing wrong in each.
struct Untagged {
  int rank() const { return 0; }
  int size() const { return 1; }
  int id() const { return 0; }
  void barrier() {}
  Untagged split(int, int) { return {}; }
  void abort(std::string_view) {}
};
struct SplitsIntoAnother : Archetype {
  Archetype split(int, int) { return {}; }
};
struct WithoutBarrier : Archetype {
  SplitsIntoAnother split(int, int) { return {}; }
  void barrier() = delete;
};
struct ForgetsItsRank : Archetype {
  ForgetsItsRank split(int, int) { return {}; }
  int rank() { return 0; }  // not const
};
static_assert(!weft::Communicator<Untagged>, "without its tag nothing is a communicator");
static_assert(!weft::Communicator<SplitsIntoAnother>, "a part of a communicator is one of its kind");
static_assert(!weft::Communicator<WithoutBarrier>, "a communicator has a barrier");
static_assert(!weft::Communicator<ForgetsItsRank>, "rank() is asked of a constant");

// One capability at a time.
struct Reduces : Archetype {
  Reduces split(int, int) { return {}; }
  template <class T>
  void all_reduce(T*, Index, Reduction, Index = 0) {}
};
struct ReducesWithoutTag : Archetype {
  ReducesWithoutTag split(int, int) { return {}; }
  template <class T>
  void all_reduce(T*, Index, Reduction) {}
};
struct ReducesAndReturns : Archetype {
  ReducesAndReturns split(int, int) { return {}; }
  template <class T>
  int all_reduce(T*, Index, Reduction, Index = 0) {
    return 0;
  }
};
struct ReducesFloats : Archetype {
  ReducesFloats split(int, int) { return {}; }
  void all_reduce(float*, Index, Reduction, Index = 0) {}
};
struct StartsAnother : Reduces {
  struct Request {
    void wait() {}
    bool done() { return true; }
  };
  StartsAnother split(int, int) { return {}; }
  void start_all_reduce(float*, Index, Reduction, Index = 0) {}
  void progress() {}
  void wait(Request&) {}
};
static_assert(weft::CanAllReduce<Reduces> && !weft::CanStartAllReduce<Reduces> && !weft::CanReduceScatter<Reduces>,
              "one capability, no other");
static_assert(!weft::CanAllReduce<ReducesWithoutTag>, "calls take a tag");
static_assert(!weft::CanAllReduce<ReducesAndReturns>, "calls that fail throw; they return nothing");
static_assert(weft::CanAllReduce<ReducesFloats, float> && !weft::CanAllReduce<ReducesFloats, double>, "a capability is per element type");
static_assert(!weft::CanStartAllReduce<StartsAnother>, "what is started is a Request");
static_assert(weft::CanAllReduce<weft::RecordingCommunicator<Reduces>> && !weft::CanBroadcast<weft::RecordingCommunicator<Reduces>> &&
                  !weft::CanStartAllReduce<weft::RecordingCommunicator<Reduces>> &&
                  weft::Communicator<weft::RecordingCommunicator<Archetype>>,
              "recording has what the inner communicator has");

struct ArchetypeRanks {
  using Communicator = Reduces;
  static constexpr int max_ranks = 1;
  static constexpr bool reports_faults = false;
  template <class Body>
  static void run(int, Body body) {
    Reduces comm;
    body(comm);
  }
};

}  // namespace

TEST_CASE("suite_with_few_capabilities_leaves_out_the_other_cases") {
  CHECK(weft::contract::case_01_rank_and_size<ArchetypeRanks>().empty());
  CHECK(weft::contract::case_02_barrier<ArchetypeRanks>().empty());
  CHECK(weft::contract::case_03_broadcast<ArchetypeRanks>() == "no broadcast");
  CHECK(weft::contract::case_04_all_reduce<ArchetypeRanks>().empty());
  CHECK(weft::contract::case_12_exchange_of_pairs<ArchetypeRanks>() == "no send and receive");
  CHECK(weft::contract::case_20_a_rank_fails<ArchetypeRanks>() == "reports no faults, or has fewer than 4 ranks");
  CHECK(weft::contract::case_16_started_requests<ArchetypeRanks>() == "no start_all_reduce");
}

namespace {

// Communicators with one fault each: the suite has to see it.
template <class Wrong>
struct WrongRanks {
  using Communicator = Wrong;
  static constexpr int max_ranks = 1;
  static constexpr bool reports_faults = false;
  template <class Body>
  static void run(int, Body body) {
    Wrong comm;
    body(comm);
  }
};
struct SaysTwo : Reduces {
  SaysTwo split(int, int) { return {}; }
  int size() const { return 2; }
};
struct WritesTooFar : Archetype {
  WritesTooFar split(int, int) { return {}; }
  template <class T>
  void all_reduce(T* data, Index count, Reduction, Index = 0) {
    data[count] = T(0.0F);
  }
};
struct Zeroes : Archetype {
  Zeroes split(int, int) { return {}; }
  template <class T>
  void all_reduce(T* data, Index count, Reduction, Index = 0) {
    if (count % 16 != 0) data[count - 1] = T(0.0F);
  }
};

}  // namespace

TEST_CASE("suite_with_a_wrong_communicator_says_so") {
  CHECK_THROWS_WITH_AS(weft::contract::case_01_rank_and_size<WrongRanks<SaysTwo>>(), "size is 2, not 1", std::runtime_error);
  CHECK_THROWS_AS(weft::contract::case_04_all_reduce<WrongRanks<WritesTooFar>>(), std::runtime_error);
  CHECK_THROWS_AS(weft::contract::case_04_all_reduce<WrongRanks<Zeroes>>(), std::runtime_error);
}
