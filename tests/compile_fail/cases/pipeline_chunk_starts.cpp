// SPDX-License-Identifier: Apache-2.0
// id: pipeline.chunk_starts
// Fixed starts for three chunks, of which there are two.
#include <weft/plan.hpp>

using namespace weft;

using Model = Sequential<Repeat<4, Linear<8, 8>>, Linear<8, 3>>;

#ifdef WEFT_CONTROL
using Train = Plan<Model, mesh(Pipeline<>{.stages = 2, .chunk_starts = chunk_starts(3)}), Batch{.global = 8, .micro = 1}>;
#else
using Train = Plan<Model, mesh(Pipeline<>{.stages = 2, .chunk_starts = chunk_starts(2, 3)}), Batch{.global = 8, .micro = 1}>;
#endif

static_assert(Train::bytes_per_rank() <= 8 * GiB, "a rank may use 8 GiB");
int main() { return Train::num_ranks == 0; }
