// SPDX-License-Identifier: Apache-2.0
// BR-35, safety by serialising: correctness (BR-13), overlap (BR-33) and the peak (BR-25) in one program with the same settings: 64 layers,
// tiny buckets, collectives delayed at random. Overlap is counted, not timed: what has been started when backward reaches the first layer.
#include "faults/watched.hpp"

using namespace weft;
using namespace weft::test;

namespace {

constexpr Index layers = 64, width = 32, unit_bytes = width * 8, bucket_bytes = 4 * unit_bytes;
constexpr int steps = 12;
using Model = Equal<layers, width>;

std::chrono::nanoseconds random_delay(const CallRecord&, Index number) {  // 0 to 0.3 ms, the same on all ranks
  return std::chrono::microseconds((number * 7919 + 13) % 300);
}

PlanData plan_of(Shard shard, bool overlap) {
  return plan_at_start<Model, WatchedRecipe>(
      mesh(DataParallel{.ranks = 2, .bucket_bytes = bucket_bytes, .overlap = overlap, .shard = shard}), {.global = 4, .micro = 1});
}

Seen train(const PlanData& plan, bool delayed) {
  LaunchOptions options;
  if (delayed) options.threads.delay = random_delay;
  return train_watched<Model>(plan, steps, options);
}

}  // namespace

TEST_CASE("br35_bits_overlap_and_peak_hold_together") {
  const Seen serial = train(plan_of(Shard::none, false), false);
  REQUIRE(serial.parameters.size() == std::size_t(layers * width));
  for (Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::parameters}) {
    INFO("shard " << int(shard));
    const PlanData plan = plan_of(shard, true);
    const Seen seen = train(plan, true), again = train(plan, false);
    // BR-13: delays and overlap change no bit.
    CHECK(seen.parameters == again.parameters);
    CHECK(seen.losses == again.losses);
    if (shard == Shard::none) {
      CHECK(seen.parameters == serial.parameters);
      CHECK(seen.losses == serial.losses);
    } else {
      CHECK(largest_difference(seen.parameters, serial.parameters) < 1e-12);  // norms are summed in another order
    }
    // BR-25.
    CHECK(plan.memory.gradients + (shard >= Shard::gradients ? unit_bytes : 0) <= layers * unit_bytes + bucket_bytes);
    CHECK(plan.memory.gathered <= (shard == Shard::parameters  ? 4
                                   : shard == Shard::gradients ? 1
                                                               : 0) *
                                      round_up(unit_bytes, alignment_bytes));
    CHECK(seen.places.size() == (shard == Shard::parameters ? 3 : layers));
    CHECK(seen.most_ahead <= 2);
    // BR-33: one call for four layers, and only the last bucket is left when backward comes to the first layer.
    if (shard != Shard::none) continue;
    CHECK(seen.calls == layers * unit_bytes / bucket_bytes);
    CHECK(Index(plan.stages[0].buckets.size()) == seen.calls);
    CHECK(seen.started_in_backward == seen.calls - 1);
    CHECK(serial.started_in_backward == 0);
    CHECK(serial.calls == seen.calls);
  }
}
