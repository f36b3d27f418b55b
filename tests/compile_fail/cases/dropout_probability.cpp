// SPDX-License-Identifier: Apache-2.0
// id: dropout.probability
// Everything is dropped.
#include <weft/plan.hpp>

using namespace weft;

#ifdef WEFT_CONTROL
using Train = Plan<Sequential<Linear<4, 4>, Dropout<0.5>>, mesh(DataParallel{.ranks = 2}), Batch{.global = 8, .micro = 2, .sequence = 16}>;
#else
using Train = Plan<Sequential<Linear<4, 4>, Dropout<1.0>>, mesh(DataParallel{.ranks = 2}), Batch{.global = 8, .micro = 2, .sequence = 16}>;
#endif

static_assert(Train::bytes_per_rank() <= 8 * GiB, "a rank may use 8 GiB");
int main() { return Train::num_ranks == 0; }
