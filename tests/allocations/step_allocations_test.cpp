// SPDX-License-Identifier: Apache-2.0
// BR-13, BR-33 and BR-35 in one program with the same settings: with collectives delayed at random, overlap changes no bit, still overlaps,
// and no step allocates anything.
#include "allocations/count.hpp"
#include "run/engine_cases.hpp"

using namespace weft;
using namespace weft::test;

namespace {

// 64 layers of small tensors: many buckets.
using Deep = Sequential<Repeat<64, Residual<Linear<8, 8>>>, Linear<8, 1>>;

std::chrono::nanoseconds random_delay(const CallRecord&, Index number) {  // 0 to 0.5 ms, the same on all ranks
  return std::chrono::microseconds((number * 7919 + 13) % 500);
}

struct Outcome {
  std::vector<double> parameters;
  std::vector<double> losses;
  long allocations = 0;
  Index calls = 0;
};

Outcome train(bool overlap, bool delayed, int steps) {
  Outcome outcome;
  LaunchOptions launch_options;
  if (delayed) launch_options.threads.delay = random_delay;
  with_engines<Deep, MeanSquaredError, double>(
      {.ranks = 2, .bucket_bytes = 1024, .overlap = overlap}, {.global = 4, .micro = 1}, AdamW{.rate = 1e-3}, {.clip_norm = 1},
      [&](auto& engine) {
        Index at = 0;
        const auto fill = [&](auto& micro) {
          micro.leading = {1, 1, 0};
          for (int i = 0; i < 8; ++i) micro.values()[i] = std::sin(double(at * 17 + engine.communicator().rank() * 5 + i));
          micro.real_targets()[0] = std::cos(double(at++));
        };
        const bool first = engine.communicator().rank() == 0;
        for (int step = 0; step < steps; ++step) {
          if (step == 2) {  // buffers that grow once have grown
            engine.communicator().barrier();
            if (first) outcome.allocations = num_allocations;
            engine.communicator().clear(), engine.communicator().barrier();
          }
          const StepResult result = engine.step(2, fill, 1e-3);
          if (first && step < 2) outcome.losses.push_back(result.loss);
        }
        engine.communicator().barrier();
        if (!first) return;
        outcome.allocations = num_allocations - outcome.allocations;
        outcome.calls = totals(engine.plan()).calls;
        outcome.parameters.assign(engine.parameters(), engine.parameters() + engine.plan().graph.parameter_elems);
      },
      launch_options);
  return outcome;
}

}  // namespace

TEST_CASE("overlap_changes_no_bit_and_allocates_nothing") {
  const int steps = 60;
  const Outcome without = train(false, false, steps), with = train(true, false, steps), delayed = train(true, true, steps);
  CHECK(with.parameters == without.parameters);
  CHECK(delayed.parameters == without.parameters);
  CHECK(with.losses == without.losses);
  CHECK(with.allocations == 0);
  CHECK(delayed.allocations == 0);
  CHECK(with.calls > 10);
}

// Buckets are started while backward goes on: with an injected delay of d per bucket, the delays run beside each other and beside the work.
// Serial waiting would take buckets · d; the bound is generous for busy machines.
TEST_CASE("overlap_still_overlaps") {
  static constexpr std::chrono::milliseconds each{20};
  LaunchOptions launch_options;
  launch_options.threads.delay = [](const CallRecord& call, Index) -> std::chrono::nanoseconds {
    return call.type == ElementType::f32 ? std::chrono::nanoseconds(each) : std::chrono::nanoseconds(0);
  };
  Index buckets = 0;
  double seconds = 0;
  with_engines<Deep, MeanSquaredError, float>(
      {.ranks = 2, .bucket_bytes = 1024}, {.global = 2, .micro = 1}, Sgd{.rate = 0}, {},
      [&](auto& engine) {
        const auto fill = [&](auto& micro) {
          micro.leading = {1, 1, 0};
          std::fill_n(micro.values(), 8, 1.0f);
          micro.real_targets()[0] = 0;
        };
        engine.step(1, fill, 0);
        const auto start = std::chrono::steady_clock::now();
        engine.step(1, fill, 0);
        if (engine.communicator().rank() == 0) {
          seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
          buckets = totals(engine.plan()).calls;
        }
      },
      launch_options);
  const double serial = double(buckets) * std::chrono::duration<double>(each).count();
  REQUIRE(buckets >= 15);
  CHECK(seconds < 0.8 * serial);
}
