// SPDX-License-Identifier: Apache-2.0
// id: pipeline.chunks
// Two chunks a stage, and a schedule that does not interleave.
#include <weft/plan.hpp>

using namespace weft;

using Model = Sequential<Repeat<4, Linear<8, 8>>, Linear<8, 3>>;
#ifdef WEFT_CONTROL
using Train = Plan<Model, mesh(Pipeline<schedule::Interleaved>{.stages = 2, .chunks = 2}), Batch{.global = 8, .micro = 1}>;
#else
using Train = Plan<Model, mesh(Pipeline<>{.stages = 2, .chunks = 2}), Batch{.global = 8, .micro = 1}>;
#endif

static_assert(Train::bytes_per_rank() <= 8 * GiB, "a rank may use 8 GiB");
int main() { return Train::num_ranks == 0; }
