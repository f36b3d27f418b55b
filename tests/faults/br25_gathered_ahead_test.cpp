// SPDX-License-Identifier: Apache-2.0
// BR-25, peaks from eager gathering and double copies: of L equal layers of P bytes at most three are whole at once, whatever L is;
// gradients are held once, beside one unit's.
#include "faults/watched.hpp"

using namespace weft;
using namespace weft::test;

namespace {

constexpr Index width = 1024, ranks = 4, unit_bytes = width * 8;

constexpr Index padded(Index bytes) { return round_up(bytes, alignment_bytes); }

template <Index L>
void peak(Shard shard) {
  INFO("layers " << L << ", shard " << int(shard));
  using Model = Equal<L, width>;
  const Index total = L * unit_bytes;
  const PlanData plan = plan_at_start<Model, WatchedRecipe>(mesh(DataParallel{.ranks = ranks, .bucket_bytes = unit_bytes, .shard = shard}),
                                                            {.global = 2 * ranks, .micro = 1});
  const Memory& memory = plan.memory;
  // What is whole for a while: parameters of three units and gradients of one, in four equal buffers.
  const bool gradients = shard >= Shard::gradients, parameters = shard == Shard::parameters;
  CHECK(memory.gathered == (3 * parameters + gradients) * padded(unit_bytes));
  CHECK(memory.parameters + memory.gathered - gradients * padded(unit_bytes) <= (parameters ? total / ranks + 3 * unit_bytes : total));
  // Buckets are ranges of the gradients, not copies.
  CHECK(memory.gradients + gradients * padded(unit_bytes) <= total + unit_bytes);
  CHECK(memory.gradients == (gradients ? total / ranks : total));
  CHECK(memory.optimizer == (shard == Shard::none ? 2 * total : 2 * total / ranks));

  const Seen seen = train_watched<Model>(plan, 2);
  CHECK(seen.places.size() == (parameters ? 3 : L));  // L >= 3
  CHECK(seen.most_ahead <= 2);
  REQUIRE(seen.losses.size() == 2);
  // What is whole for a while holds the right numbers: replicas come to the same.
  if (shard == Shard::none) return;
  const PlanData replicas = plan_at_start<Model, WatchedRecipe>(mesh(DataParallel{.ranks = ranks}), {.global = 2 * ranks, .micro = 1});
  const Seen reference = train_watched<Model>(replicas, 2);
  REQUIRE(reference.parameters.size() == std::size_t(L * width));
  CHECK(largest_difference(seen.parameters, reference.parameters) < 1e-12);
}

}  // namespace

TEST_CASE("br25_of_few_and_of_many_layers_three_are_whole_at_once") {
  for (Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::parameters}) {
    peak<4>(shard);
    peak<32>(shard);
  }
}

// The same bytes where the whole parameters are: the peak does not grow with the layers.
TEST_CASE("br25_the_peak_of_whole_parameters_does_not_grow_with_the_layers") {
  const auto gathered = []<Index L>() {
    return plan_at_start<Equal<L, width>, WatchedRecipe>(mesh(DataParallel{.ranks = ranks, .shard = Shard::parameters}),
                                                         {.global = 2 * ranks, .micro = 1})
        .memory.gathered;
  };
  CHECK(gathered.template operator()<4>() == gathered.template operator()<32>());
}
