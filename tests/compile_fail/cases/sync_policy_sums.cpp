// SPDX-License-Identifier: Apache-2.0
// id: sync.policy
// A policy that does not say whether gradients are summed.
#include <weft/plan.hpp>

using namespace weft;

struct Policy {
  static constexpr const char* name = "mine";
  static constexpr int version = 1;
#ifdef WEFT_CONTROL
  static constexpr bool sums_gradients = false;
#endif
  static constexpr void synchronise(SyncStep&) {}
};

using Model = Sequential<Linear<8, 8>, Linear<8, 3>>;
using Train = Plan<Model, mesh(Replicas<Policy>{.ranks = 2, .every = 4}), Batch{.global = 8, .micro = 1}>;

static_assert(Train::bytes_per_rank() <= 8 * GiB, "a rank may use 8 GiB");
int main() { return Train::num_ranks == 0; }
