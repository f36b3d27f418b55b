// SPDX-License-Identifier: Apache-2.0
// id: tensor.divides
// Two tensor ranks for three key/value heads: neither divides the other.
#include <weft/plan.hpp>

using namespace weft;

#ifdef WEFT_CONTROL
constexpr TensorParallel tensor{.ranks = 6};
#else
constexpr TensorParallel tensor{.ranks = 2};
#endif
using Model = Sequential<Linear<2, 12>, LayerNorm<12>, CausalAttention<12, 6, 3>, Linear<12, 4>>;
using Train = Plan<Model, mesh(tensor), Batch{.global = 8, .micro = 2, .sequence = 16}>;

static_assert(Train::bytes_per_rank() <= 8 * GiB, "a rank may use 8 GiB");
int main() { return Train::num_ranks == 0; }
