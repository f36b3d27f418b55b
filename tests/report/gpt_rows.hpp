// SPDX-License-Identifier: Apache-2.0
// Published configurations of GPT models as plans.
#pragma once

#include <weft/plan.hpp>

namespace weft {

// The models of Narayanan et al. (arXiv 2104.04473) and Korthikanti et al. (arXiv 2205.05198): 51200 words, 2048 tokens, tied head,
// dropout.
constexpr GptOptions published_gpt(Index layers, Index width, Index heads) {
  return {.vocabulary = 51200, .sequence = 2048, .width = width, .heads = heads, .layers = layers, .dropout = 0.1};
}

struct PublishedRun {
  Index tensor = 1, stages = 1, gpus = 1, global = 1, micro = 1, chunks = 1;
  Shard shard = Shard::none;
  Recompute recompute = Recompute::full;
  bool sequence = false;
};

// Reductions of gradients overlap with backward without a pipeline, and come after it with one: those programs' DDP implementations.
template <GptOptions o>
PlanData published_plan(const PublishedRun& run) {
  const DataParallel data{
      .ranks = run.gpus / run.tensor / run.stages, .bucket_bytes = 256 * MiB, .overlap = run.stages == 1, .shard = run.shard};
  const TensorParallel tensor{.ranks = run.tensor, .sequence = run.sequence};
  const Activations activations{.recompute = run.recompute};
  const Batch batch{.global = run.global, .micro = run.micro, .sequence = o.sequence};
  if (run.chunks > 1)
    return plan_at_start<Gpt<o>>(
        mesh(data, Pipeline<schedule::Interleaved>{.stages = run.stages, .chunks = run.chunks}, tensor, activations), batch);
  return plan_at_start<Gpt<o>>(mesh(data, Pipeline<>{.stages = run.stages}, tensor, activations), batch);
}

}  // namespace weft
