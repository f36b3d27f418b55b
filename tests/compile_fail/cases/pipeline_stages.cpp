// SPDX-License-Identifier: Apache-2.0
// id: pipeline.stages
// Three layers on four stages.
#include <weft/plan.hpp>

using namespace weft;


#ifdef WEFT_CONTROL
using Model = Sequential<Linear<8, 8>, Linear<8, 8>, Linear<8, 8>, Linear<8, 3>>;
using Train = Plan<Model, mesh(Pipeline<>{.stages = 4}), Batch{.global = 8, .micro = 1}>;
#else
using Model = Sequential<Linear<8, 8>, Linear<8, 8>, Linear<8, 3>>;
using Train = Plan<Model, mesh(Pipeline<>{.stages = 4}), Batch{.global = 8, .micro = 1}>;
#endif

static_assert(Train::bytes_per_rank() <= 8 * GiB, "a rank may use 8 GiB");
int main() { return Train::num_ranks == 0; }
