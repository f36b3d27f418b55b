// SPDX-License-Identifier: Apache-2.0
// Starts the ranks of a program as threads of this process, and ends with the first error that any of them met.
#pragma once

#include <atomic>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "weft/comm/thread/thread_communicator.hpp"

namespace weft {

struct LaunchOptions {
  ThreadOptions threads{};
  // Whether to go on although a launcher has started several copies of this program, each of which will be a world of its own.
  bool allow_inside_mpi = false;
};

// The sign of a launcher that has started this process as one of many: `NAME=VALUE`, or nothing. lookup: what std::getenv does.
template <class Lookup>
std::string launcher_sign(Lookup&& lookup) {
  struct Sign {
    const char* size;   // the number of processes
    const char* proof;  // must be there too: some sizes are also set where nothing was launched (inside an allocation, in a shell)
  };
  constexpr Sign signs[] = {
      {"OMPI_COMM_WORLD_SIZE", nullptr}, {"PMI_SIZE", nullptr},
      {"MV2_COMM_WORLD_SIZE", nullptr},  {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
      {"SLURM_NTASKS", "SLURM_STEP_ID"}, {"WORLD_SIZE", "LOCAL_RANK"},
  };
  for (const Sign& sign : signs) {
    const char* size = lookup(sign.size);
    if (size == nullptr || std::atol(size) < 2) continue;
    if (sign.proof == nullptr || lookup(sign.proof) != nullptr) return text_of(sign.size, "=", size);
  }
  return {};
}

// Runs body(ThreadCommunicator&) on `ranks` threads (rank 0 on the caller's) and returns when all have returned.
// Errors: weft[launch.ranks], weft[launch.inside_mpi]. If a rank throws, the others' calls give weft[comm.rank_failed], and when all
//   have ended, launch throws the first error: an Error with its id, naming the rank, the original nested in it. An error that a body
//   catches itself is its own affair.
// Cost: ranks - 1 threads; nothing else.
template <class Body>
void launch(int ranks, Body&& body, const LaunchOptions& options = {}) {
  if (ranks < 1 || ranks > comm::max_thread_ranks)
    throw Error("launch.ranks", text_of("the number of ranks is 1 to ", comm::max_thread_ranks, "; got ", ranks));
  if (!options.allow_inside_mpi) {
    if (const std::string sign = launcher_sign([](const char* name) { return std::getenv(name); }); !sign.empty())
      throw Error("launch.inside_mpi",
                  text_of("weft::launch makes a world of threads in one process, but a launcher has started several (", sign,
                          "), and each would train alone; start one process, or say LaunchOptions::allow_inside_mpi if that is meant"));
  }

  ThreadWorld world(ranks, options.threads);
  std::vector<std::exception_ptr> errors(std::size_t(ranks), nullptr);
  std::atomic<int> first{-1};
  const auto fail = [&](int rank, const std::string& what) {
    errors[std::size_t(rank)] = std::current_exception();
    int none = -1;
    first.compare_exchange_strong(none, rank);
    world.fail(rank, what);
  };
  const auto run = [&](int rank) noexcept {
    auto communicator = world.communicator(rank);
    try {
      body(communicator);
    } catch (const std::exception& error) { fail(rank, error.what()); } catch (...) {
      fail(rank, "an exception that is not a std::exception");
    }
    world.leave(rank);
  };

  std::vector<std::thread> threads;
  threads.reserve(std::size_t(ranks));
  int started = 1;
  try {
    for (; started < ranks; ++started) threads.emplace_back(run, started);
    run(0);
  } catch (const std::exception& error) {  // a thread that could not be started; run itself does not throw
    fail(started, error.what());
    for (int rank = started; rank < ranks; ++rank) world.leave(rank);
    world.leave(0);
  }
  for (std::thread& thread : threads) thread.join();
  if (first.load() < 0) return;

  // The rank that broke the world, if it is one and has thrown: what another threw because of it may have come in before.
  const int culprit = world.culprit();
  const int rank = culprit >= 0 && errors[std::size_t(culprit)] != nullptr ? culprit : first.load();
  const std::string whose = text_of("rank ", rank, " of ", ranks);
  try {
    std::rethrow_exception(errors[std::size_t(rank)]);
  } catch (const Error& error) {
    std::throw_with_nested(Error(error.id(), text_of(whose, ": ", error.message())));
  } catch (const std::exception& error) {
    std::throw_with_nested(Error("launch.rank_failed", text_of(whose, ": ", error.what())));
  } catch (...) { std::throw_with_nested(Error("launch.rank_failed", text_of(whose, ": an exception that is not a std::exception"))); }
}

}  // namespace weft
