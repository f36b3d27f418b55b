// SPDX-License-Identifier: Apache-2.0
// id: sync.data
// Replicas that train alone, each of two data ranks with divided states.
#include <weft/plan.hpp>

using namespace weft;

using Model = Gpt<GptOptions{.vocabulary = 65, .sequence = 16, .width = 32, .heads = 4, .layers = 3}>;
struct Local {
  static constexpr const char* name = "local";
  static constexpr int version = 1;
  static constexpr bool sums_gradients = false;
  static constexpr void synchronise(SyncStep& step) { step.average(Shared::parameters); }
};

#ifdef WEFT_CONTROL
using Train = Plan<Model, mesh(Replicas<Local>{.ranks = 2}, Pipeline<>{.stages = 2}), Batch{.global = 8, .micro = 2, .sequence = 16}>;
#else
using Train = Plan<Model, mesh(Replicas<Local>{.ranks = 2}, DataParallel{.ranks = 2, .shard = Shard::optimizer}),
                   Batch{.global = 8, .micro = 2, .sequence = 16}>;
#endif

static_assert(Train::bytes_per_rank() <= 8 * GiB, "a rank may use 8 GiB");
int main() { return Train::num_ranks == 0; }
