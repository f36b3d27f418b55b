// SPDX-License-Identifier: Apache-2.0
// id: graph.tie_owner
// A tie to a name that does not exist.
#include <weft/plan.hpp>

using namespace weft;

#ifdef WEFT_CONTROL
using Train = Plan<Sequential<Named<"wte", Embedding<5, 4>>, Tied<"wte.table", Linear<4, 5, Bias::no>>>, mesh(DataParallel{.ranks = 2}), Batch{.global = 8, .micro = 2, .sequence = 16}>;
#else
using Train = Plan<Sequential<Named<"wte", Embedding<5, 4>>, Tied<"wte.weight", Linear<4, 5, Bias::no>>>, mesh(DataParallel{.ranks = 2}), Batch{.global = 8, .micro = 2, .sequence = 16}>;
#endif

static_assert(Train::bytes_per_rank() <= 8 * GiB, "a rank may use 8 GiB");
int main() { return Train::num_ranks == 0; }
