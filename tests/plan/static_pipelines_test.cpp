// SPDX-License-Identifier: Apache-2.0
// Static plans of pipelines: the compiler has seen a window of their micro-batches.
#include "plan/static_plans.hpp"

using namespace weft;
using namespace weft::test;

namespace {

using Pipe = Of<mesh(Pipeline<>{.stages = 4})>;
using PipeGPipe = Of<mesh(Pipeline<schedule::GPipe>{.stages = 4})>;
using Interleaved = Of<mesh(Pipeline<schedule::Interleaved>{.stages = 2, .chunks = 2})>;
using ZeroBubble1 = Of<mesh(Pipeline<schedule::ZeroBubbleH1>{.stages = 4})>;
using ZeroBubble2 = Of<mesh(Pipeline<schedule::ZeroBubbleH2>{.stages = 2})>;
using ZeroBubbleV = Of<mesh(Pipeline<schedule::ZeroBubbleV>{.stages = 2})>;
using Word = Of<mesh(DataParallel{.ranks = 2}, ModelParallel<schedule::GPipe>{.pipeline = 2, .tensor = 3, .sequence = true})>;
using All = Of<mesh(DataParallel{.ranks = 2, .shard = Shard::parameters}, Pipeline<>{.stages = 2, .chunk_starts = chunk_starts(4)},
                    TensorParallel{.ranks = 2, .sequence = true}, Activations{.recompute = Recompute::full})>;

constexpr Index elems = 16 * 48;  // of one sequence's activations between blocks
static_assert(Pipe::memory().activations < PipeGPipe::memory().activations, "4 of 16 micro-batches are held");
static_assert(ZeroBubble1::bytes_per_rank() < PipeGPipe::bytes_per_rank(), "as many micro-batches as 1F1B");
static_assert(Word::num_ranks == 12 && All::num_ranks == 8, "products of degrees");
static_assert(Pipe::ledger(GroupKind::pipe, 0).bytes == 16 * 2 * elems * 4, "the first stage sends activations");
static_assert(Pipe::ledger(GroupKind::pipe, 1).bytes == 2 * 16 * 2 * elems * 4, "a middle one sends gradients too");

}  // namespace

TEST_CASE("static_pipelines_are_those_of_start_up") {
  all_same_at_start_and_different_from_each_other<Pipe, PipeGPipe, Interleaved, ZeroBubble1, ZeroBubble2, ZeroBubbleV, Word, All>();
}
