// SPDX-License-Identifier: Apache-2.0
// id: tensor.divides
// Four heads for three tensor ranks, known before the number of data ranks is.
#include <weft/plan.hpp>

using namespace weft;

using Model = Gpt<GptOptions{.vocabulary = 65, .sequence = 16, .width = 32, .heads = 4, .layers = 3}>;

#ifdef WEFT_CONTROL
using Train = Plan<Model, mesh(DataParallel{.ranks = rest_of_world}, TensorParallel{.ranks = 4}), Batch{.global = 8, .micro = 2, .sequence = 16}>;
#else
using Train = Plan<Model, mesh(DataParallel{.ranks = rest_of_world}, TensorParallel{.ranks = 3}), Batch{.global = 8, .micro = 2, .sequence = 16}>;
#endif

static_assert(Train::bytes_per_rank({.data = 2}) <= 8 * GiB, "a rank may use 8 GiB");
int main() { return Train::num_parameters() == 0; }
