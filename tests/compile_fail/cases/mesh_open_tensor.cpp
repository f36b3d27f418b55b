// SPDX-License-Identifier: Apache-2.0
// id: mesh.open_tensor
// Tensor ranks whose number is left open.
#include <weft/plan.hpp>

using namespace weft;

using Model = Gpt<GptOptions{.vocabulary = 65, .sequence = 16, .width = 32, .heads = 4, .layers = 3}>;

#ifdef WEFT_CONTROL
using Train = Plan<Model, mesh(TensorParallel{.ranks = 2}, DataParallel{.ranks = rest_of_world}), Batch{.global = 8, .micro = 2, .sequence = 16}>;
#else
using Train = Plan<Model, mesh(TensorParallel{.ranks = rest_of_world}, DataParallel{.ranks = 2}), Batch{.global = 8, .micro = 2, .sequence = 16}>;
#endif

static_assert(Train::bytes_per_rank({.data = 2}) <= 8 * GiB, "a rank may use 8 GiB");
int main() { return Train::num_parameters() == 0; }
