// SPDX-License-Identifier: Apache-2.0
// id: schedule.too_large
// More stages and micro-batches than compilers can go through: a plan for start-up.
#include <weft/plan.hpp>

using namespace weft;

using Model = Sequential<Repeat<64, Linear<8, 8>>, Linear<8, 3>>;

#ifdef WEFT_CONTROL
using Train = Plan<Model, mesh(Pipeline<schedule::GPipe>{.stages = 4}), Batch{.global = 64, .micro = 1}>;
#else
using Train = Plan<Model, mesh(Pipeline<schedule::GPipe>{.stages = 64}), Batch{.global = 512, .micro = 1}>;
#endif

static_assert(Train::bytes_per_rank() <= 8 * GiB, "a rank may use 8 GiB");
int main() { return Train::num_ranks == 0; }
