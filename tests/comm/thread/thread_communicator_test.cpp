// SPDX-License-Identifier: Apache-2.0
// What is particular to ranks that are threads: overlap, exact detection of ranks that cannot go on, time-outs, dropped requests. What all
// communicators share is tested by contract/.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <vector>

#include <weft/run/launch.hpp>

using namespace std::chrono_literals;
using weft::Index, weft::Reduction, weft::ThreadCommunicator;

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

weft::LaunchOptions waiting(std::chrono::milliseconds time_out, int spins = -1) {
  return {.threads = {.time_out = time_out, .spins = spins, .delay = nullptr}, .allow_inside_mpi = true};
}

// Runs body on each rank and gives the texts of the errors that the ranks met.
template <class Body>
std::vector<std::string> errors_of(int ranks, Body body, const weft::LaunchOptions& options = waiting(60s)) {
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  weft::launch(
      ranks,
      [&](ThreadCommunicator& comm) {
        try {
          body(comm);
        } catch (const weft::Error& error) { errors[std::size_t(comm.rank())] = error.what(); }
      },
      options);
  return errors;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

// Every layer's gradients are started as they become ready, and reduced at a random time within 2 ms after: the bits are those without
// overlap and without delays.
TEST_CASE("started_requests_with_random_delays_train_as_blocking_calls") {
  constexpr int num_layers = 64, num_steps = 12;
  constexpr Index width = 37;
  const auto train = [&](bool overlap, weft::LaunchOptions options) {
    std::vector<std::vector<float>> weights(3);
    weft::launch(
        3,
        [&](ThreadCommunicator& comm) {
          std::vector<float> weight(num_layers * width, 1.0F), gradient(num_layers * width, 0.0F);
          std::array<weft::ThreadRequest, num_layers> requests;
          for (int step = 0; step < num_steps; ++step) {
            for (int layer = num_layers - 1; layer >= 0; --layer) {
              float* part = gradient.data() + layer * width;
              for (Index i = 0; i < width; ++i) part[i] = weight[std::size_t(layer * width + i)] / float(3 + comm.rank() + (i + step) % 5);
              if (overlap)
                requests[std::size_t(layer)] = comm.start_all_reduce(part, width, Reduction::average, layer + 1);
              else
                comm.all_reduce(part, width, Reduction::average, layer + 1);
              comm.progress();
            }
            for (auto& request : requests) request.wait();
            for (std::size_t i = 0; i < weight.size(); ++i) weight[i] -= 0.1F * gradient[i];
          }
          weights[std::size_t(comm.rank())] = weight;
        },
        options);
    require(weights[0] == weights[1] && weights[0] == weights[2], "ranks have different weights");
    return weights[0];
  };
  weft::LaunchOptions delayed = waiting(60s);
  delayed.threads.delay = [](const weft::CallRecord&, Index number) { return std::chrono::nanoseconds((number * 7919) % 2'000'000); };
  const auto right = train(false, waiting(60s));
  CHECK(right[5] != 1.0F);
  CHECK(train(true, waiting(60s)) == right);
  CHECK(train(true, delayed) == right);
}

// While rank computes (here: polls), what was started before comes to its end without anybody having waited.
TEST_CASE("started_requests_finish_during_later_work") {
  weft::LaunchOptions delayed = waiting(60s);
  delayed.threads.delay = [](const weft::CallRecord& call, Index) {
    return call.operation == weft::Operation::all_reduce ? std::chrono::nanoseconds(3ms) : 0ns;
  };
  weft::launch(
      2,
      [](ThreadCommunicator& comm) {
        std::vector<float> data(10 * 100, 1.0F);
        std::array<weft::ThreadRequest, 10> requests;
        const auto start = std::chrono::steady_clock::now();
        for (std::size_t layer = 0; layer < 10; ++layer) {
          requests[layer] = comm.start_all_reduce(data.data() + 100 * layer, 100, Reduction::sum);
          require(!requests[layer].done() || std::chrono::steady_clock::now() - start >= 3ms, "reduced before its time");
        }
        while (!requests[8].done()) require(std::chrono::steady_clock::now() - start < 30s, "no progress without a wait");
        for (std::size_t layer = 0; layer < 8; ++layer) require(requests[layer].done(), "requests finish out of order");
        requests[9].wait();
        for (const float value : data) require(value == 2.0F, "a sum is wrong");
      },
      delayed);
}

// A message that is posted may be delayed too: its receiver sleeps, nobody takes that for a deadlock, and the order between two ranks
// stays.
TEST_CASE("messages_with_delays_arrive_late_and_in_order") {
  weft::LaunchOptions delayed = waiting(60s);
  delayed.threads.delay = [](const weft::CallRecord& call, Index number) -> std::chrono::nanoseconds {
    return call.operation != weft::Operation::send ? 0ms : number == 0 ? 5ms : 1ms;
  };
  weft::launch(
      2,
      [](ThreadCommunicator& comm) {
        const auto start = std::chrono::steady_clock::now();
        comm.barrier();  // so that nobody sends before a receiver's start
        for (int round = 0; round < 3; ++round) {
          float sent[2] = {float(2 * round), float(2 * round + 1)}, got[2] = {-1, -1};
          if (comm.rank() == 0)
            for (const float& value : sent) comm.send(&value, 1, 1);
          else
            for (float& value : got) comm.receive(&value, 1, 0);
          if (comm.rank() == 1) require(got[0] == sent[0] && got[1] == sent[1], "messages overtake each other");
          require(std::chrono::steady_clock::now() - start >= 5ms + round * 2ms, "a message arrived before its time");
        }
        weft::Outgoing out;
        weft::Incoming in;
        float own = float(comm.rank()), other = -1;
        out = weft::outgoing(&own, 1, 1 - comm.rank(), 0), in = weft::incoming(&other, 1, 1 - comm.rank(), 0);
        comm.exchange({&out, 1}, {&in, 1});
        require(other == float(1 - comm.rank()), "an exchange gives something else");
      },
      delayed);
}

TEST_CASE("receive_without_send_is_told_at_once_to_all") {
  const auto errors = errors_of(3, [](ThreadCommunicator& comm) {
    float value = 0;
    if (comm.rank() == 0)
      comm.receive(&value, 1, 1);
    else if (comm.rank() == 1)
      comm.receive(&value, 1, 0);
    else
      comm.barrier();
  });
  CHECK_MESSAGE(has(errors[0], "weft[comm.deadlock]"), errors[0]);
  CHECK(has(errors[0], "rank 1: receive of 1 float32 from rank 0"));
  CHECK(has(errors[0], "rank 2: barrier"));
  CHECK(errors[1] == errors[0]);
  CHECK(errors[2] == errors[0]);
}

TEST_CASE("two_groups_in_opposite_order_are_told_at_once_to_all") {
  const auto errors = errors_of(2, [](ThreadCommunicator& comm) {
    ThreadCommunicator a = comm.split(0, comm.rank()), b = comm.split(0, comm.rank());
    float value = 1;
    (comm.rank() == 0 ? a : b).all_reduce(&value, 1, Reduction::sum);
    (comm.rank() == 0 ? b : a).all_reduce(&value, 1, Reduction::sum);
  });
  CHECK_MESSAGE(has(errors[0], "weft[comm.deadlock]"), errors[0]);
  CHECK(errors[1] == errors[0]);
}

TEST_CASE("two_groups_in_one_order_with_requests_in_both_go_on") {
  weft::launch(4, [](ThreadCommunicator& comm) {
    ThreadCommunicator row = comm.split(comm.rank() / 2, 0), column = comm.split(comm.rank() % 2, 0);
    for (int round = 0; round < 50; ++round) {
      float a = 1, b = 1;
      auto in_row = row.start_all_reduce(&a, 1, Reduction::sum);
      auto in_column = column.start_all_reduce(&b, 1, Reduction::sum);
      if (comm.rank() % 3 == 0)
        in_row.wait(), in_column.wait();
      else
        in_column.wait(), in_row.wait();
      require(a == 2 && b == 2, "a sum in a part is wrong");
    }
  });
}

TEST_CASE("all_reduce_with_a_rank_that_computes_for_ever_times_out_and_says_who") {
  std::atomic<bool> is_over{false};
  const auto errors = errors_of(
      2,
      [&](ThreadCommunicator& comm) {
        float value = 0;
        if (comm.rank() == 1)
          while (!is_over) std::this_thread::yield();
        try {
          comm.all_reduce(&value, 1, Reduction::sum);
        } catch (...) {
          is_over = true;
          throw;
        }
      },
      waiting(30ms));
  CHECK_MESSAGE(has(errors[0], "weft[comm.time_out]"), errors[0]);
  CHECK(has(errors[0], "rank 0: all_reduce of 1 float32, sum"));
  CHECK(has(errors[0], "rank 1: does not wait"));
  CHECK(errors[1] == errors[0]);
}

TEST_CASE("disagreement_reads_the_same_on_every_rank") {
  const auto errors = errors_of(4, [](ThreadCommunicator& comm) {
    std::vector<float> data(2000, 0.0F);
    comm.all_reduce(data.data(), comm.rank() == 2 ? 1000 : 1024, Reduction::sum);
  });
  CHECK(errors[0] ==
        "weft[comm.mismatch]: the ranks of a communicator make the same calls in the same order; call 0 of communicator 0; "
        "rank 0 1 3: all_reduce of 1024 float32, sum; rank 2: all_reduce of 1000 float32, sum");
  for (const std::string& error : errors) CHECK(error == errors[0]);
}

TEST_CASE("disagreement_of_started_requests_is_told_too") {
  const auto errors = errors_of(2, [](ThreadCommunicator& comm) {
    std::vector<float> data(20, 0.0F);
    auto request = comm.start_all_reduce(data.data(), comm.rank() == 0 ? 10 : 20, Reduction::sum);
    request.wait();
  });
  CHECK(has(errors[0], "weft[comm.mismatch]"));
  CHECK(errors[1] == errors[0]);
}

// The buffer of a request dies with the exception; nobody may touch it after (address sanitizer watches).
TEST_CASE("request_of_a_rank_that_throws_is_withdrawn") {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> others(4);
    CHECK_THROWS_WITH_AS(weft::launch(4,
                                      [&](ThreadCommunicator& comm) {
                                        std::vector<float> data(50'000, 1.0F);
                                        auto request = comm.start_all_reduce(data.data(), 50'000, Reduction::sum);
                                        if (comm.rank() == 1) throw std::runtime_error("lost its head");
                                        try {
                                          request.wait();
                                        } catch (const weft::Error& error) { others[std::size_t(comm.rank())] = error.what(); }
                                      }),
                         doctest::Contains("rank 1 of 4: lost its head"), weft::Error);
    for (const std::size_t rank : {0U, 2U, 3U})  // the request was dropped, unless all had been reduced before
      CHECK((others[rank].empty() || has(others[rank], "rank 1")));
  }
}

TEST_CASE("request_that_is_dropped_breaks_the_world") {
  const auto errors = errors_of(2, [](ThreadCommunicator& comm) {
    std::vector<float> data(100, 1.0F);
    { auto request = comm.start_all_reduce(data.data(), 100, Reduction::sum); }
    comm.barrier();
  });
  CHECK((has(errors[0], "weft[comm.request_dropped]") || has(errors[1], "weft[comm.request_dropped]")));
}

TEST_CASE("rank_that_leaves_before_a_message_is_named_on_both_ends") {
  for (const bool sends : {true, false}) {
    const auto errors = errors_of(3, [&](ThreadCommunicator& comm) {
      float value = 0;
      if (comm.rank() == 2) return;
      if (comm.rank() == 1) return comm.barrier();
      if (sends)
        comm.send(&value, 1, 2);
      else
        comm.receive(&value, 1, 2);
    });
    for (const std::size_t rank : {0U, 1U}) {
      CHECK_MESSAGE(has(errors[rank], "weft[comm.rank_left]: rank 2 has left"), errors[rank]);
      const char* in_message = sends ? "rank 0 was in send of 1 float32 to rank 2" : "rank 0 was in receive of 1 float32 from rank 2";
      CHECK(has(errors[rank], rank == 1 ? "rank 1 was in barrier" : in_message));
    }
  }
}

TEST_CASE("rank_that_leaves_when_it_is_not_needed_disturbs_nobody") {
  weft::launch(3, [](ThreadCommunicator& comm) {
    ThreadCommunicator part = comm.split(comm.rank() == 0 ? 0 : 1, 0);
    if (comm.rank() == 0) return;
    for (int i = 0; i < 200; ++i) part.barrier();
  });
}

TEST_CASE("abort_reaches_ranks_that_wait_and_ranks_that_come_later") {
  const auto errors = errors_of(3, [](ThreadCommunicator& comm) {
    if (comm.rank() == 1) comm.abort("the disk is full");
    comm.barrier();
  });
  for (const std::string& error : errors) CHECK_MESSAGE(has(error, "weft[comm.aborted]: rank 1 aborted: the disk is full"), error);
}

TEST_CASE("error_that_is_caught_stays_for_later_calls_of_all") {
  const auto errors = errors_of(2, [](ThreadCommunicator& comm) {
    try {
      float data[4] = {};
      comm.broadcast(data, 4, comm.rank());
    } catch (const weft::Error&) {}
    comm.progress();
  });
  for (const std::string& error : errors) CHECK(has(error, "weft[comm.mismatch]"));
}

TEST_CASE("buffers_that_overlap_are_refused_unless_one_is_the_own_row") {
  weft::launch(2, [](ThreadCommunicator& comm) {
    float data[8] = {};
    const auto is_refused = [](auto call) {
      try {
        call();
      } catch (const weft::Error& error) { return error.id() == "comm.overlap"; }
      return false;
    };
    require(is_refused([&] { comm.reduce_scatter(data + 1 - comm.rank(), data, 1, Reduction::sum); }), "overlap in reduce_scatter");
    require(is_refused([&] { comm.all_gather(data, data + 3, 2); }), "overlap in all_gather");
    require(is_refused([&] { comm.all_to_all(data, data, 2); }), "overlap in all_to_all");
    comm.all_to_all(data, data + 4, 2);
    comm.all_gather(data, data + 2 * comm.rank(), 2);
  });
}

TEST_CASE("many_more_ranks_than_cores_finish_with_and_without_spinning") {
  for (const int spins : {0, 1, -1}) {
    weft::launch(
        24,
        [](ThreadCommunicator& comm) {
          std::vector<std::int32_t> data(100, comm.rank());
          for (int i = 0; i < 10; ++i) {
            comm.all_reduce(data.data(), 100, Reduction::maximum);
            comm.barrier();
          }
          require(data[99] == 23, "a maximum is wrong");
        },
        waiting(60s, spins));
  }
}

TEST_CASE("reduction_with_other_registers_gives_the_same_bits") {
  std::vector<float> native(999, 0.0F), generic(999, 0.0F);
  const auto run = [](std::vector<float>& result, auto isa) {
    weft::ThreadWorld world(3);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; ++rank)
      threads.emplace_back([&, rank] {
        auto comm = world.communicator<decltype(isa)>(rank);
        std::vector<float> data;
        for (int i = 0; i < 999; ++i) data.push_back(float(i * 17 % 101 + rank) / 3.0F);
        comm.all_reduce(data.data(), 999, Reduction::average);
        if (rank == 2) result = data;
        world.leave(rank);
      });
    for (std::thread& thread : threads) thread.join();
  };
  run(native, weft::simd::Native{});
  run(generic, weft::simd::Generic{});
  CHECK(native == generic);
}
