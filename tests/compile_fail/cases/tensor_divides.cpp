// SPDX-License-Identifier: Apache-2.0
// id: tensor.divides
// Three tensor ranks for four heads.
#include <weft/plan.hpp>

using namespace weft;

using Model = Sequential<Linear<2, 16>, LayerNorm<16>, Residual<CausalAttention<16, 4>>, Linear<16, 4>>;
constexpr Batch batch{.global = 8, .micro = 2, .sequence = 16};
#ifdef WEFT_CONTROL
using Train = Plan<Model, mesh(TensorParallel{.ranks = 2}), batch>;
#else
using Train = Plan<Model, mesh(TensorParallel{.ranks = 3}), batch>;
#endif

static_assert(Train::bytes_per_rank() <= 8 * GiB, "a rank may use 8 GiB");
int main() { return Train::num_ranks == 0; }
