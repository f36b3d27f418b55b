// SPDX-License-Identifier: Apache-2.0
// What every communicator has to do, as numbered cases to bring one up with: 01 first. For a communicator of your own, write
//
//   struct MyRanks {
//     using Communicator = MyCommunicator;
//     static constexpr int max_ranks = 8;            // larger worlds are left out
//     static constexpr bool reports_faults = true;   // whether the cases of disagreement, failure and leaving apply
//     template <class Body> static void run(int ranks, Body body);  // body(Communicator&) on each rank; throws if a rank threw
//   };
//   TEST_CASE("my_communicator_conforms") { weft::contract::run_communicator_suite<MyRanks>(); }
//
// A case throws on the rank that sees something wrong. Cases for capabilities that the communicator lacks are left out, and say so.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>
#include <limits>

#include "contract/communicator_checks.hpp"

namespace weft::contract {

// ---- the cases: each returns why it was left out, or nothing ------------------------------------------------------------------------

template <class Ranks, class Body>
void on_each_world(std::initializer_list<int> sizes, Body body) {
  for (const int size : sizes)
    if (size <= Ranks::max_ranks) Ranks::run(size, body);
}

template <class Ranks>
std::string case_01_rank_and_size() {
  for (const int size : {1, 2, 3, 4, 8}) {
    if (size > Ranks::max_ranks) continue;
    Ranks::run(size, [size](auto& comm) {
      require(comm.size() == size, "size is " + std::to_string(comm.size()) + ", not " + std::to_string(size));
      require(comm.rank() >= 0 && comm.rank() < size, "rank " + std::to_string(comm.rank()) + " is outside the world");
    });
  }
  return {};
}

template <class Ranks>
std::string case_02_barrier() {
  on_each_world<Ranks>({1, 2, 3, 4, 8}, [](auto& comm) {
    for (int i = 0; i < 50; ++i) comm.barrier();
  });
  return {};
}

template <class Ranks>
std::string case_03_broadcast() {
  if constexpr (!CanBroadcast<typename Ranks::Communicator>)
    return "no broadcast";
  else {
    on_each_world<Ranks>({1, 2, 3, 4, 8}, [](auto& comm) {
      for_each_type(AllTypes{}, [&]<class T>(T) {
        const Index step = sizeof(T) == 4 ? 1 : 3;
        for (Index count = 0; count <= 70; count += step) check_broadcast<T>(comm, count, static_cast<int>(count) % comm.size());
      });
    });
    return {};
  }
}

template <class Ranks>
std::string case_04_all_reduce() {
  if constexpr (!CanAllReduce<typename Ranks::Communicator>)
    return "no all_reduce";
  else {
    on_each_world<Ranks>({1, 2, 3, 4, 8}, [](auto& comm) {
      for_each_type(AllTypes{}, [&]<class T>(T) {
        for (Index count = 0; count <= 70; ++count) {
          const auto reductions = reductions_of<T>();
          // All lengths with sum and average, each length with one of the others.
          check_all_reduce<T>(comm, Reduction::sum, count);
          if (is_floating<T>) check_all_reduce<T>(comm, Reduction::average, count);
          check_all_reduce<T>(comm, reductions[std::size_t(1 + count % 3)], count);
        }
      });
    });
    return {};
  }
}

template <class Ranks>
std::string case_05_reduce() {
  if constexpr (!CanReduce<typename Ranks::Communicator>)
    return "no reduce";
  else {
    on_each_world<Ranks>({1, 2, 3, 8}, [](auto& comm) {
      for_each_type(AllTypes{}, [&]<class T>(T) {
        for (const Reduction reduction : reductions_of<T>())
          for (const Index count : {0, 1, 5, 16, 33, 70}) check_reduce<T>(comm, reduction, count, static_cast<int>(count) % comm.size());
      });
    });
    return {};
  }
}

template <class Ranks>
std::string case_06_reduce_scatter() {
  if constexpr (!CanReduceScatter<typename Ranks::Communicator>)
    return "no reduce_scatter";
  else {
    on_each_world<Ranks>({1, 2, 3, 4, 8}, [](auto& comm) {
      for_each_type(AllTypes{}, [&]<class T>(T) {
        for (const Reduction reduction : reductions_of<T>())
          for (const Index count : {0, 1, 2, 7, 8, 31, 70}) check_reduce_scatter<T>(comm, reduction, count, count % 2 != 0);
      });
    });
    return {};
  }
}

template <class Ranks>
std::string case_07_all_gather() {
  if constexpr (!CanAllGather<typename Ranks::Communicator>)
    return "no all_gather";
  else {
    on_each_world<Ranks>({1, 2, 3, 4, 8}, [](auto& comm) {
      for_each_type(AllTypes{}, [&]<class T>(T) {
        for (Index count = 0; count <= 70; count += 5) check_all_gather<T>(comm, count, count % 2 != 0);
      });
    });
    return {};
  }
}

template <class Ranks>
std::string case_08_all_to_all() {
  if constexpr (!CanAllToAll<typename Ranks::Communicator>)
    return "no all_to_all";
  else {
    on_each_world<Ranks>({1, 2, 3, 4, 8}, [](auto& comm) {
      for_each_type(AllTypes{}, [&]<class T>(T) {
        for (Index count = 0; count <= 70; count += 5) check_all_to_all<T>(comm, count);
      });
    });
    return {};
  }
}

// Long arrays of numbers that do not add up exactly: the order of the sum is the ranks', and repeats.
template <class Ranks>
std::string case_09_long_arrays() {
  if constexpr (!CanAllReduce<typename Ranks::Communicator>)
    return "no all_reduce";
  else {
    on_each_world<Ranks>({1, 2, 3, 4}, [](auto& comm) {
      const Index count = 300'013;
      const auto value = [](int rank, Index i) { return float((i * 7919 + rank * 104'729) % 10'007) / 3.0F; };
      std::vector<float> data(std::size_t(count), 0.0F);
      for (Index i = 0; i < count; ++i) data[std::size_t(i)] = value(comm.rank(), i);
      comm.all_reduce(data.data(), count, Reduction::sum);
      const auto right = [&](Index i) {
        float total = value(0, i);
        for (int rank = 1; rank < comm.size(); ++rank) total += value(rank, i);
        return total;
      };
      require_elements(data.data(), count, right, "a long sum, compared in its bits with the sum in rank order");
    });
    return {};
  }
}

// 16-bit sums are carried in float and rounded once: no overflow before the mean, no underflow by dividing first.
template <class Ranks>
std::string case_10_sixteen_bit_sums() {
  if constexpr (!CanAllReduce<typename Ranks::Communicator>)
    return "no all_reduce";
  else if (Ranks::max_ranks < 4)
    return "fewer than 4 ranks";
  else {
    Ranks::run(4, [](auto& comm) {
      float16 large(20'000.0F), tiny(std::ldexp(1.0F, -24));
      comm.all_reduce(&large, 1, Reduction::average);
      comm.all_reduce(&tiny, 1, Reduction::average);
      require(large == 20'000.0F, "the mean of four 20000 in float16 is " + shown(large));
      require(tiny == std::ldexp(1.0F, -24), "the mean of four 2^-24 in float16 is " + shown(tiny));
      bfloat16 small(comm.rank() == 0 ? 1.0F : std::ldexp(1.0F, -8));  // 1 + 3 · 2^-8 = 1.01171875; one by one in bfloat16 it stays 1
      comm.all_reduce(&small, 1, Reduction::sum);
      require(small == float(bfloat16(1.01171875F)) && small != 1.0F, "small addends are lost in bfloat16: " + shown(small));
    });
    return {};
  }
}

template <class Ranks>
std::string case_11_nan_and_infinity() {
  if constexpr (!CanAllReduce<typename Ranks::Communicator>)
    return "no all_reduce";
  else {
    on_each_world<Ranks>({2, 3, 4}, [](auto& comm) {
      for_each_type(Types<float, double, float16, bfloat16>{}, [&]<class T>(T) {
        for (const Reduction reduction : reductions_of<T>())
          for (int who = 0; who < comm.size(); ++who)
            for (const Index count : {3, 150}) {
              const std::string where = at<T>("NaN or infinity in all_reduce", reduction, comm.size(), count);
              const float infinity = std::numeric_limits<float>::infinity();
              Guarded<T> data(count);
              for (Index i = 0; i < count; ++i) data[i] = number<T>(1);
              if (comm.rank() == who) {
                data[0] = data[count - 1] = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
                data[1] = static_cast<T>(infinity);
              }
              comm.all_reduce(data.data(), count, reduction);
              const auto first = static_cast<double>(data[0]), second = static_cast<double>(data[1]);
              const auto last = static_cast<double>(data[count - 1]);
              require(first != first && last != last, where + ": a NaN is gone");
              require(second == (reduction == Reduction::minimum ? 1.0 : double(infinity)), where + ": infinity became " + shown(second));
            }
      });
    });
    return {};
  }
}

// Both sides send first, whatever the size; also oneself.
template <class Ranks>
std::string case_12_exchange_of_pairs() {
  if constexpr (!CanSendReceive<typename Ranks::Communicator>)
    return "no send and receive";
  else {
    on_each_world<Ranks>({1, 2}, [](auto& comm) {
      const int peer = comm.size() - 1 - comm.rank();
      for (const Index bytes : {Index(0), Index(1), 64 * KiB, 16 * MiB}) {
        std::vector<std::uint8_t> mine(std::size_t(bytes), std::uint8_t(1 + comm.rank())), theirs(std::size_t(bytes), 0);
        const Outgoing send = outgoing(mine.data(), bytes, peer);
        const Incoming receive = incoming(theirs.data(), bytes, peer);
        comm.exchange({&send, 1}, {&receive, 1});
        require(std::all_of(theirs.begin(), theirs.end(), [&](auto byte) { return byte == 1 + peer; }), "an exchanged message is wrong");
      }
    });
    return {};
  }
}

template <class Ranks>
std::string case_13_exchange_in_rings() {
  if constexpr (!CanSendReceive<typename Ranks::Communicator>)
    return "no send and receive";
  else {
    on_each_world<Ranks>({3, 4, 5}, [](auto& comm) {
      const int size = comm.size(), next = (comm.rank() + 1) % size, before = (comm.rank() + size - 1) % size;
      for (const Index count : {1, 1000, 100'000}) {
        std::vector<double> mine(std::size_t(count), comm.rank()), from_before(std::size_t(count), -1), from_next(std::size_t(count), -1);
        const Outgoing sends[] = {outgoing(mine.data(), count, next), outgoing(mine.data(), count, before)};
        const Incoming receives[] = {incoming(from_next.data(), count, next), incoming(from_before.data(), count, before)};
        comm.exchange(sends, receives);
        require(from_before.front() == before && from_before.back() == before && from_next.back() == next, "a ring's message is wrong");
      }
    });
    return {};
  }
}

// More messages to one peer than any queue is likely to hold, in order; then plain sends and receives.
template <class Ranks>
std::string case_14_messages_in_order() {
  if constexpr (!CanSendReceive<typename Ranks::Communicator>)
    return "no send and receive";
  else if (Ranks::max_ranks < 2)
    return "fewer than 2 ranks";
  else {
    Ranks::run(2, [](auto& comm) {
      constexpr int num_messages = 40;
      const int peer = 1 - comm.rank();
      std::int32_t mine[num_messages], theirs[num_messages];
      Outgoing sends[num_messages];
      Incoming receives[num_messages];
      for (int i = 0; i < num_messages; ++i) {
        mine[i] = 100 * comm.rank() + i;
        sends[i] = outgoing(&mine[i], 1, peer);
        receives[i] = incoming(&theirs[i], 1, peer);
      }
      comm.exchange(sends, receives);
      for (int i = 0; i < num_messages; ++i) require(theirs[i] == 100 * peer + i, "messages of one exchange change places");
      for (int i = 0; i < num_messages; ++i) {
        std::int32_t value = i;
        if (comm.rank() == 0)
          comm.send(&value, 1, 1, i);
        else
          comm.receive(&value, 1, 0, i);
        require(value == i, "a message is wrong");
      }
    });
    return {};
  }
}

template <class Ranks>
std::string case_15_split() {
  on_each_world<Ranks>({1, 4, 5, 8}, [](auto& comm) {
    auto part = comm.split(comm.rank() % 2, -comm.rank());
    const int members = (comm.size() + 1 - comm.rank() % 2) / 2;
    require(part.size() == members, "a part has " + std::to_string(part.size()) + " ranks, not " + std::to_string(members));
    require(part.rank() == members - 1 - comm.rank() / 2, "the key does not order the ranks of a part");
    if constexpr (CanAllReduce<typename Ranks::Communicator, std::int32_t>) {
      for (int round = 0; round < 5; ++round) {
        std::int32_t sum = comm.rank(), right = 0, all = 1;
        part.all_reduce(&sum, 1, Reduction::sum);
        for (int rank = comm.rank() % 2; rank < comm.size(); rank += 2) right += rank;
        require(sum == right, "a part's sum is " + std::to_string(sum) + ", not " + std::to_string(right));
        comm.all_reduce(&all, 1, Reduction::sum);
        require(all == comm.size(), "the whole does not add up while parts exist");
      }
    }
    auto alone = part.split(part.rank(), 0);
    require(alone.size() == 1 && alone.rank() == 0, "a part of a part is wrong");
    alone.barrier();
  });
  return {};
}

// Started requests are in order with each other and with blocking calls, may be waited for in any order, and give the blocking call's bits.
template <class Ranks>
std::string case_16_started_requests() {
  using Communicator = typename Ranks::Communicator;
  if constexpr (!CanStartAllReduce<Communicator>)
    return "no start_all_reduce";
  else {
    on_each_world<Ranks>({1, 2, 3, 8}, [](auto& comm) {
      const std::size_t num_requests = 100;
      const Index count = 333;
      std::vector<std::vector<float>> overlapped(num_requests), blocking(num_requests);
      for (std::size_t k = 0; k < num_requests; ++k) {
        for (Index i = 0; i < count; ++i) overlapped[k].push_back(float((i * 31 + comm.rank() * 17 + Index(k)) % 101) / 7.0F);
        blocking[k] = overlapped[k];
      }
      for (int round = 0; round < 3; ++round) {
        std::vector<typename Communicator::Request> requests;
        for (std::size_t k = 0; k < num_requests; ++k) {
          requests.push_back(comm.start_all_reduce(overlapped[k].data(), count, Reduction::average));
          if (k % 3 == 0) comm.progress();
          if (k == 50) comm.barrier();
        }
        for (std::size_t k = num_requests; k-- > 0;) {
          if (k % 2 == 0)
            requests[k].wait();
          else
            comm.wait(requests[k]);
          require(requests[k].done(), "a request is not done after its wait");
        }
        for (std::size_t k = 0; k < num_requests; ++k) comm.all_reduce(blocking[k].data(), count, Reduction::average);
        require(overlapped == blocking, "started and blocking all-reduce differ in bits");
      }
    });
    return {};
  }
}

// A rank that is blocked in something else still does its share of what was started.
template <class Ranks>
std::string case_17_progress_while_blocked() {
  using Communicator = typename Ranks::Communicator;
  if constexpr (!CanStartAllReduce<Communicator> || !CanSendReceive<Communicator>)
    return "no start_all_reduce, or no send and receive";
  else if (Ranks::max_ranks < 2)
    return "fewer than 2 ranks";
  else {
    Ranks::run(2, [](auto& comm) {
      for (int round = 0; round < 20; ++round) {
        std::vector<float> data(100, 1.0F);
        std::int32_t message = round;
        auto request = comm.start_all_reduce(data.data(), 100, Reduction::sum);
        if (comm.rank() == 0) comm.send(&message, 1, 1);
        request.wait();
        if (comm.rank() == 1) comm.receive(&message, 1, 0);
        require(data[99] == 2.0F, "a started sum is wrong");
      }
    });
    return {};
  }
}

// ---- faults: every rank gets an error that says enough ------------------------------------------------------------------------------

template <class Body>
void require_error(Body body, std::initializer_list<const char*> ids, std::initializer_list<const char*> words) {
  try {
    body();
  } catch (const Error& error) {
    const std::string text = error.what();
    require(std::any_of(ids.begin(), ids.end(), [&](const char* id) { return error.id() == id; }), "another error was expected: " + text);
    for (const char* word : words) require(text.find(word) != std::string::npos, std::string("no `") + word + "` in: " + text);
    return;
  }
  require(false, "an error was expected, and there was none");
}

template <class Ranks>
std::string case_18_disagreement() {
  using Communicator = typename Ranks::Communicator;
  if constexpr (!CanAllReduce<Communicator> || !CanBroadcast<Communicator>)
    return "no all_reduce, or no broadcast";
  else if (!Ranks::reports_faults || Ranks::max_ranks < 3)
    return "reports no faults, or has fewer than 3 ranks";
  else {
    const auto expect = [](auto call, std::initializer_list<const char*> words) {
      Ranks::run(3, [&](auto& comm) {
        comm.barrier();
        std::vector<double> data(1024, 0.0);
        auto* memory = data.data();
        require_error([&] { call(comm, memory); }, {"comm.mismatch"}, words);
        require_error([&] { comm.barrier(); }, {"comm.mismatch"}, words);  // and so does every later call
      });
    };
    expect([](auto& comm, double* data) { comm.all_reduce(data, comm.rank() == 1 ? 1000 : 1024, Reduction::sum); },
           {"1000", "1024", "rank 1"});
    expect(
        [](auto& comm, double* data) {
          if (comm.rank() == 2)
            comm.broadcast(data, 8, 0);
          else
            comm.all_reduce(data, 8, Reduction::sum);
        },
        {"all_reduce", "broadcast", "rank 2"});
    expect(
        [](auto& comm, double* data) {
          if (comm.rank() == 0)
            comm.all_reduce(reinterpret_cast<std::uint64_t*>(data), 8, Reduction::sum);
          else
            comm.all_reduce(data, 8, Reduction::sum);
        },
        {"uint64", "float64", "rank 0"});
    expect([](auto& comm, double* data) { comm.all_reduce(data, 8, comm.rank() == 0 ? Reduction::sum : Reduction::average); },
           {"sum", "average"});
    expect([](auto& comm, double* data) { comm.broadcast(data, 8, comm.rank() == 0 ? 0 : 1); }, {"root 0", "root 1"});
    // Two equal-sized parameters swapped on one rank: only the tag tells.
    expect([](auto& comm, double* data) { comm.all_reduce(data, 8, Reduction::sum, comm.rank() == 1 ? 7 : 6); }, {"tag 6", "tag 7"});
    // Three parameters against four.
    expect(
        [](auto& comm, double* data) {
          for (int i = 0; i < (comm.rank() == 1 ? 3 : 4); ++i) comm.all_reduce(data, 8, Reduction::sum);
          comm.barrier();
        },
        {"all_reduce", "barrier"});
    return {};
  }
}

template <class Ranks>
std::string case_19_disagreement_about_a_message() {
  using Communicator = typename Ranks::Communicator;
  if constexpr (!CanSendReceive<Communicator>)
    return "no send and receive";
  else if (!Ranks::reports_faults || Ranks::max_ranks < 2)
    return "reports no faults, or has fewer than 2 ranks";
  else {
    Ranks::run(2, [](auto& comm) {
      float data[10] = {};
      require_error(
          [&] {
            if (comm.rank() == 0)
              comm.send(data, 10, 1);
            else
              comm.receive(data, 8, 0);
          },
          {"comm.mismatch"}, {"10", "8", "rank 0", "rank 1"});
    });
    return {};
  }
}

// Rank 2 of 4 throws, or leaves: the others' calls name it, and their parameters are as they were.
template <class Ranks>
std::string case_20_a_rank_fails() {
  using Communicator = typename Ranks::Communicator;
  if constexpr (!CanAllReduce<Communicator>)
    return "no all_reduce";
  else if (!Ranks::reports_faults || Ranks::max_ranks < 4)
    return "reports no faults, or has fewer than 4 ranks";
  else {
    for (const bool throws : {true, false}) {
      bool has_failed = false;
      try {
        Ranks::run(4, [&](auto& comm) {
          comm.barrier();
          if (comm.rank() == 2) {
            if (throws) throw std::runtime_error("out of luck");
            return;
          }
          std::vector<float> data(100, 1.0F);
          const char* id = throws ? "comm.rank_failed" : "comm.rank_left";
          require_error([&] { comm.all_reduce(data.data(), 100, Reduction::sum); }, {id}, {"rank 2", "all_reduce"});
          require(data == std::vector<float>(100, 1.0F), "a step that broke was applied");
        });
      } catch (const std::exception& error) {
        has_failed = true;
        require(throws && std::string(error.what()).find("out of luck") != std::string::npos, error.what());
      }
      require(has_failed == throws, "a rank threw, and the run did not");
    }
    return {};
  }
}

template <class Ranks>
std::string case_21_wrong_arguments() {
  using Communicator = typename Ranks::Communicator;
  if constexpr (!CanAllReduce<Communicator> || !CanBroadcast<Communicator>)
    return "no all_reduce, or no broadcast";
  else {
    Ranks::run(1, [](auto& comm) {
      std::int32_t data = 0, *nothing = nullptr;
      require_error([&] { comm.all_reduce(&data, -1, Reduction::sum); }, {"comm.count"}, {"-1"});
      require_error([&] { comm.all_reduce(nothing, 5, Reduction::sum); }, {"comm.memory"}, {"5 int32"});
      require_error([&] { comm.all_reduce(&data, 1, Reduction::average); }, {"comm.average"}, {"int32"});
      require_error([&] { comm.broadcast(&data, 1, 1); }, {"comm.peer"}, {"root 1"});
      require_error([&] { comm.split(-1, 0); }, {"comm.color"}, {"-1"});
      comm.all_reduce(nothing, 0, Reduction::sum);
      if constexpr (CanAllToAll<Communicator>) {
        std::int32_t pair[3] = {1, 2, 3};
        require_error([&] { comm.all_to_all(nothing, pair, 2); }, {"comm.memory"}, {"2 int32"});
        require_error([&] { comm.all_to_all(pair + 1, pair, 2); }, {"comm.overlap"}, {"2 int32"});
      }
    });
    return {};
  }
}

template <class Ranks>
void run_communicator_suite() {
  static_assert(Communicator<typename Ranks::Communicator>, "weft[comm.concept]: the communicator under test lacks a part of the core");
  struct Case {
    const char* name;
    std::string (*run)();
  };
  static const Case cases[] = {
      {"01_rank_and_size", case_01_rank_and_size<Ranks>},
      {"02_barrier", case_02_barrier<Ranks>},
      {"03_broadcast", case_03_broadcast<Ranks>},
      {"04_all_reduce", case_04_all_reduce<Ranks>},
      {"05_reduce", case_05_reduce<Ranks>},
      {"06_reduce_scatter", case_06_reduce_scatter<Ranks>},
      {"07_all_gather", case_07_all_gather<Ranks>},
      {"08_all_to_all", case_08_all_to_all<Ranks>},
      {"09_long_arrays", case_09_long_arrays<Ranks>},
      {"10_sixteen_bit_sums", case_10_sixteen_bit_sums<Ranks>},
      {"11_nan_and_infinity", case_11_nan_and_infinity<Ranks>},
      {"12_exchange_of_pairs", case_12_exchange_of_pairs<Ranks>},
      {"13_exchange_in_rings", case_13_exchange_in_rings<Ranks>},
      {"14_messages_in_order", case_14_messages_in_order<Ranks>},
      {"15_split", case_15_split<Ranks>},
      {"16_started_requests", case_16_started_requests<Ranks>},
      {"17_progress_while_blocked", case_17_progress_while_blocked<Ranks>},
      {"18_disagreement", case_18_disagreement<Ranks>},
      {"19_disagreement_about_a_message", case_19_disagreement_about_a_message<Ranks>},
      {"20_a_rank_fails", case_20_a_rank_fails<Ranks>},
      {"21_wrong_arguments", case_21_wrong_arguments<Ranks>},
  };
  for (const Case& each : cases) {
    const std::string name = each.name;
    INFO(name);
    std::string fault, left_out;
    try {
      left_out = each.run();
    } catch (const std::exception& error) { fault = error.what(); }
    CHECK_MESSAGE(fault.empty(), fault);
    if (!left_out.empty()) MESSAGE("left out, " << name << ": " << left_out);
  }
}

}  // namespace weft::contract
