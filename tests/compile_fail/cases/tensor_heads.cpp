// SPDX-License-Identifier: Apache-2.0
// id: tensor.divides
// Six heads for four tensor ranks.
#include <weft/plan.hpp>

using namespace weft;

using Model = Gpt<GptOptions{.vocabulary = 64, .sequence = 16, .width = 48, .heads = 6, .layers = 2}>;

#ifdef WEFT_CONTROL
using Train = Plan<Model, mesh(TensorParallel{.ranks = 3}), Batch{.global = 4, .micro = 2, .sequence = 16}>;
#else
using Train = Plan<Model, mesh(TensorParallel{.ranks = 4}), Batch{.global = 4, .micro = 2, .sequence = 16}>;
#endif

static_assert(Train::bytes_per_rank() <= 8 * GiB, "a rank may use 8 GiB");
int main() { return Train::num_ranks == 0; }
