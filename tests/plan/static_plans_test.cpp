// SPDX-License-Identifier: Apache-2.0
// Static plans of strategies without a pipeline.
#include "plan/static_plans.hpp"

using namespace weft;
using namespace weft::test;

namespace {

using One = Of<mesh()>;
using Data4 = Of<mesh(DataParallel{.ranks = 4, .bucket_bytes = 64 * KiB})>;
using Zero1 = Of<mesh(DataParallel{.ranks = 4, .shard = Shard::optimizer})>;
using Zero2 = Of<mesh(DataParallel{.ranks = 4, .shard = Shard::gradients})>;
using Zero3 = Of<mesh(DataParallel{.ranks = 4, .shard = Shard::parameters})>;
using Hybrid = Of<mesh(DataParallel{.ranks = 4, .shard = Shard::parameters, .shard_ranks = 2})>;
using Tensor = Of<mesh(TensorParallel{.ranks = 2})>;
using Sequence = Of<mesh(TensorParallel{.ranks = 2, .sequence = true})>;
using Selective = Of<mesh(DataParallel{.ranks = 2}, Activations{.recompute = Recompute::selective})>;
using Full = Of<mesh(DataParallel{.ranks = 2}, Activations{.recompute = Recompute::full})>;

// What strategies are for: see the table of memory in Rajbhandari et al., arXiv 1910.02054.
constexpr Index whole = Data4::memory().parameters;
static_assert(Data4::memory().gradients == whole && Data4::memory().optimizer == 2 * whole, "replicas keep all");
static_assert(Zero1::memory().optimizer * 4 < 2 * whole + 4096 && Zero1::memory().gradients >= whole, "states are divided");
static_assert(Zero2::memory().gradients * 4 < whole + 4096 && Zero2::memory().parameters >= whole, "gradients too");
static_assert(Zero3::memory().parameters * 4 < whole + 4096, "parameters too");
static_assert(Hybrid::memory().parameters * 2 < whole + 4096 && Hybrid::memory().parameters * 2 >= whole, "over two ranks");
static_assert(Full::memory().activations < Selective::memory().activations, "full keeps less");
static_assert(Selective::memory().activations < Data4::memory().activations, "selective keeps less than all");
static_assert(Sequence::memory().activations < Tensor::memory().activations, "rows are divided too");
static_assert(Tensor::memory().activations < Data4::memory().activations, "features are divided");
static_assert(Data4::ledger(GroupKind::data).bytes == whole, "every gradient goes once");
static_assert(One::ledger().calls == 0, "one rank says nothing");

}  // namespace

TEST_CASE("static_plans_are_those_of_start_up") {
  all_same_at_start_and_different_from_each_other<One, Data4, Zero1, Zero2, Zero3, Hybrid, Tensor, Sequence, Selective, Full>();
}
