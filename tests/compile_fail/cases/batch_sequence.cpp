// SPDX-License-Identifier: Apache-2.0
// id: batch.sequence
// Sequences longer than the model has positions.
#include <weft/plan.hpp>

using namespace weft;

#ifdef WEFT_CONTROL
using Train = Plan<Gpt<GptOptions{.vocabulary = 65, .sequence = 16, .width = 32, .heads = 4, .layers = 3}>, mesh(DataParallel{.ranks = 2}), Batch{.global = 8, .micro = 2, .sequence = 16}>;
#else
using Train = Plan<Gpt<GptOptions{.vocabulary = 65, .sequence = 16, .width = 32, .heads = 4, .layers = 3}>, mesh(DataParallel{.ranks = 2}), Batch{.global = 8, .micro = 2, .sequence = 17}>;
#endif

static_assert(Train::bytes_per_rank() <= 8 * GiB, "a rank may use 8 GiB");
int main() { return Train::num_ranks == 0; }
