// SPDX-License-Identifier: Apache-2.0
// id: mesh.axis_twice
// Pipelines of two schedules.
#include <weft/plan.hpp>

using namespace weft;

using Model = Gpt<GptOptions{.vocabulary = 65, .sequence = 16, .width = 32, .heads = 4, .layers = 3}>;

#ifdef WEFT_CONTROL
using Train = Plan<Model, mesh(Pipeline<>{.stages = 2}), Batch{.global = 8, .micro = 2, .sequence = 16}>;
#else
using Train = Plan<Model, mesh(Pipeline<>{.stages = 2}, ModelParallel<schedule::GPipe>{.pipeline = 2}), Batch{.global = 8, .micro = 2, .sequence = 16}>;
#endif

static_assert(Train::bytes_per_rank() <= 8 * GiB, "a rank may use 8 GiB");
int main() { return Train::num_ranks == 0; }
