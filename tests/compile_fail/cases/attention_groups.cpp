// SPDX-License-Identifier: Apache-2.0
// id: attention.groups
// Three key/value heads for four heads.
#include <weft/plan.hpp>

using namespace weft;

#ifdef WEFT_CONTROL
using Train = Plan<Sequential<Linear<2, 16>, Linear<16, 8 * 4>, Attention<AttentionOptions{.heads = 4, .key_value_heads = 2, .head_size = 4}>>, mesh(DataParallel{.ranks = 2}), Batch{.global = 8, .micro = 2, .sequence = 16}>;
#else
using Train = Plan<Sequential<Linear<2, 16>, Linear<16, 10 * 4>, Attention<AttentionOptions{.heads = 4, .key_value_heads = 3, .head_size = 4}>>, mesh(DataParallel{.ranks = 2}), Batch{.global = 8, .micro = 2, .sequence = 16}>;
#endif

static_assert(Train::bytes_per_rank() <= 8 * GiB, "a rank may use 8 GiB");
int main() { return Train::num_ranks == 0; }
