// SPDX-License-Identifier: Apache-2.0
// All-reduce (float32, sum, in place) among threads.
//
// The time is the median of seven worlds. bytes_per_second is the algorithm's: bytes of one rank's buffer / time of one all-reduce. The
// limit is memory traffic: each rank's buffer is read once and written once, 2 · R · bytes in all; `percent_of_copy` holds the traffic's
// rate against what R threads reach when each copies an array of the same size (which reads and writes 2 · R · bytes too) between meetings
// of the same kind. bench/collectives.sh runs this beside Open MPI and prints the ratios.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <weft/run/launch.hpp>

namespace {

using weft::Index;

struct Figures {
  double reduce_seconds = 0, copy_seconds = 0;
};

double now_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::vector<float> aligned_room(Index bytes) {
  return std::vector<float>(std::size_t(bytes + weft::alignment_bytes) / sizeof(float), 0.0F);
}
float* aligned(std::vector<float>& room) {
  const auto address = reinterpret_cast<std::uintptr_t>(room.data());
  return room.data() + (weft::round_up(Index(address), weft::alignment_bytes) - Index(address)) / Index(sizeof(float));
}

// Both are timed in turn, in one world, so that what disturbs one disturbs the other.
Figures measure(int ranks, Index bytes, int repeats) {
  Figures figures;
  weft::launch(ranks, [&](weft::ThreadCommunicator& comm) {
    std::vector<float> room = aligned_room(bytes), other_room = aligned_room(bytes);
    float *data = aligned(room), *other = aligned(other_room);
    const Index count = bytes / Index(sizeof(float));
    comm.all_reduce(data, count, weft::Reduction::sum);
    comm.barrier();
    const double start = now_seconds();
    for (int i = 0; i < repeats; ++i) comm.all_reduce(data, count, weft::Reduction::sum);
    const double middle = now_seconds();
    for (int i = 0; i < repeats; ++i) {
      comm.barrier();
      std::memcpy(other, data, std::size_t(bytes));
      comm.barrier();
    }
    if (comm.rank() == 0) figures = {(middle - start) / repeats, (now_seconds() - middle) / repeats};
    benchmark::DoNotOptimize(other[0]);
  });
  return figures;
}

void all_reduce(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  const Index bytes = state.range(1);
  const int repeats = bytes <= 4 * weft::KiB ? 2000 : bytes <= weft::MiB ? 300 : bytes <= 4 * weft::MiB ? 40 : 8;
  std::vector<double> reduce_seconds, copy_seconds;
  for (auto each : state) {
    for (int i = 0; i < 7; ++i) {
      const Figures figures = measure(ranks, bytes, repeats);
      reduce_seconds.push_back(figures.reduce_seconds);
      copy_seconds.push_back(figures.copy_seconds);
    }
    state.SetIterationTime(median(reduce_seconds));
  }
  state.SetBytesProcessed(state.iterations() * bytes);
  state.counters["percent_of_copy"] = 100 * median(copy_seconds) / median(reduce_seconds);
}

}  // namespace

BENCHMARK(all_reduce)
    ->ArgNames({"ranks", "bytes"})
    ->ArgsProduct({{2, 4}, {4 * weft::KiB, 256 * weft::KiB, 3'276'800, 25 * weft::MiB}})
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMicrosecond);

BENCHMARK_MAIN();
