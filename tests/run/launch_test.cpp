// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <map>
#include <string>

#include <weft/run/launch.hpp>

using weft::ThreadCommunicator;

TEST_CASE("launch_runs_every_rank_once_and_rank_0_on_the_callers_thread") {
  for (const int ranks : {1, 2, 5}) {
    std::vector<int> runs(std::size_t(ranks), 0);
    bool is_caller = false;
    const auto caller = std::this_thread::get_id();
    weft::launch(ranks, [&](ThreadCommunicator& comm) {
      runs[std::size_t(comm.rank())] += comm.size();
      if (comm.rank() == 0) is_caller = std::this_thread::get_id() == caller;
    });
    CHECK(runs == std::vector<int>(std::size_t(ranks), ranks));
    CHECK(is_caller);
  }
}

TEST_CASE("launch_of_no_ranks_is_refused") {
  for (const int ranks : {0, -3, 5000})
    CHECK_THROWS_WITH_AS(weft::launch(ranks, [](ThreadCommunicator&) {}), doctest::Contains("weft[launch.ranks]"), weft::Error);
}

// The first rank to fail is what is told, not what the others met because of it; its own exception is inside.
TEST_CASE("launch_with_a_rank_that_throws_throws_its_error") {
  for (int who = 0; who < 3; ++who) {
    std::string inside;
    try {
      weft::launch(3, [who](ThreadCommunicator& comm) {
        comm.barrier();
        if (comm.rank() == who) throw std::out_of_range("beyond the end");
        float value = 0;
        comm.all_reduce(&value, 1, weft::Reduction::sum);
      });
      FAIL("no error");
    } catch (const weft::Error& error) {
      CHECK(error.what() == weft::text_of("weft[launch.rank_failed]: rank ", who, " of 3: beyond the end"));
      try {
        std::rethrow_if_nested(error);
      } catch (const std::out_of_range& original) { inside = original.what(); }
    }
    CHECK(inside == "beyond the end");
  }
}

TEST_CASE("launch_with_a_rank_that_throws_keeps_the_id_of_an_error") {
  CHECK_THROWS_WITH_AS(weft::launch(2,
                                    [](ThreadCommunicator& comm) {
                                      if (comm.rank() == 1) throw weft::Error("data.missing", "no such file");
                                      comm.barrier();
                                    }),
                       "weft[data.missing]: rank 1 of 2: no such file", weft::Error);
  CHECK_THROWS_WITH_AS(weft::launch(1, [](ThreadCommunicator&) { throw 3; }), doctest::Contains("not a std::exception"), weft::Error);
}

TEST_CASE("launch_with_a_rank_that_leaves_early_throws_who_left") {
  CHECK_THROWS_WITH_AS(weft::launch(4,
                                    [](ThreadCommunicator& comm) {
                                      if (comm.rank() != 2) comm.barrier();
                                    }),
                       doctest::Contains("weft[comm.rank_left]"), weft::Error);
}

TEST_CASE("launch_under_a_launcher_of_processes_is_refused") {
  using Environment = std::map<std::string, std::string>;
  const auto sign = [](const Environment& environment) {
    return weft::launcher_sign([&](const char* name) {
      const auto found = environment.find(name);
      return found == environment.end() ? nullptr : found->second.c_str();
    });
  };
  CHECK(sign({}).empty());
  CHECK(sign({{"OMPI_COMM_WORLD_SIZE", "4"}}) == "OMPI_COMM_WORLD_SIZE=4");
  CHECK(sign({{"OMPI_COMM_WORLD_SIZE", "1"}}).empty());
  CHECK(sign({{"PMI_SIZE", "2"}}) == "PMI_SIZE=2");
  CHECK(sign({{"SLURM_NTASKS", "8"}}).empty());  // inside an allocation, and started once
  CHECK(sign({{"SLURM_NTASKS", "8"}, {"SLURM_STEP_ID", "0"}}) == "SLURM_NTASKS=8");
  CHECK(sign({{"WORLD_SIZE", "8"}}).empty());
  CHECK(sign({{"WORLD_SIZE", "8"}, {"LOCAL_RANK", "0"}}) == "WORLD_SIZE=8");
}
