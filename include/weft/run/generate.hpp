// SPDX-License-Identifier: Apache-2.0
// Text (or any tokens) from a trained model, one token at a time, with the keys and values of all tokens so far kept.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "weft/base/error.hpp"
#include "weft/op/leaf_call.hpp"
#include "weft/random/distribution.hpp"
#include "weft/run/walker.hpp"
#include "weft/tensor/buffer.hpp"

namespace weft {

struct SamplingOptions {
  double temperature = 1;  // 0: always the most likely token (greedy)
  Index top_k = 0;         // only among the k most likely; 0: all
  std::uint64_t seed = 1;
  Index vocabulary = 0;  // only tokens below it, where the data uses fewer than the model has; 0: all
};

// Picks a token from logits (V). number: which draw of the stream this is.
template <class Real>
Index sample(std::span<const Real> logits, const SamplingOptions& options, std::uint64_t number,
             std::vector<std::pair<double, Index>>& work) {
  work.clear();
  for (Index v = 0; v < Index(logits.size()); ++v) work.push_back({double(logits[std::size_t(v)]), v});
  const auto more_likely = [](const auto& a, const auto& b) { return a.first > b.first || (a.first == b.first && a.second < b.second); };
  if (options.temperature <= 0) return std::min_element(work.begin(), work.end(), more_likely)->second;
  if (options.top_k > 0 && options.top_k < Index(work.size())) {
    std::partial_sort(work.begin(), work.begin() + options.top_k, work.end(), more_likely);
    work.resize(std::size_t(options.top_k));
  }
  double most = work[0].first, total = 0;
  for (const auto& [logit, token] : work) most = std::max(most, logit);
  for (auto& [logit, token] : work) total += logit = std::exp((logit - most) / options.temperature);
  const random::Stream stream{.seed = options.seed, .purpose = random::Purpose::sampling, .step = 0, .layer = 0};
  double left = random::uniform<double>(random::Words(stream)[number]) * total;
  for (const auto& [weight, token] : work)
    if ((left -= weight) < 0) return token;
  return work.back().second;
}

// Generates from an engine's model. Memory: the cache, 2·Hkv·D elements a token and attention layer, allocated here.
template <class Engine>
class Generator {
 public:
  using Real = typename Engine::Real;

  explicit Generator(Engine& engine) : engine_(engine), capacity_(engine.plan().batch.sequence) {
    if (engine.plan().streams() || engine.plan().strategy.tensor() > 1 || engine.plan().strategy.shards_parameters())
      throw Error("generate.strategy",
                  "generation runs on one rank that holds the whole model; load the parameters into an engine of such a plan");
    Index elems = 0;
    for (const LeafSite& leaf : engine.plan().graph.leaves) {
      offsets_.push_back(elems);
      elems += engine.plan().graph.frames[std::size_t(leaf.frame)].count * capacity_ * leaf.facts.cache_elems_per_row;
    }
    if (elems == 0)
      throw Error("generate.model", "generation needs a model with attention; this one has no layer that keeps keys and values");
    cache_ = Buffer(elems * Index(sizeof(Real)));
  }

  Index cache_bytes() const { return cache_.bytes(); }

  // Appends `count` tokens to `tokens` (the prompt, at least one), calling each(token) as they come. Beyond the model's positions the first
  // half of what it sees is dropped. Errors: weft[generate.prompt].
  template <class Each>
  void generate(std::vector<std::int32_t>& tokens, Index count, const SamplingOptions& options, Each&& each) {
    if (tokens.empty()) throw Error("generate.prompt", "generation starts from at least one token; give a prompt");
    const auto& plan = engine_.plan();
    engine_.state().walker.set_cache(cache_.as<Real>(), capacity_, &offsets_);
    Index seen = 0;  // tokens in the cache
    std::size_t start = tokens.size() > std::size_t(capacity_) ? tokens.size() - std::size_t(capacity_) : 0;
    const Index width = plan.graph.output.elems();
    const Index vocabulary = options.vocabulary > 0 ? std::min(options.vocabulary, width) : width;
    for (Index i = 0; i < count; ++i) {
      if (Index(tokens.size() - start) > capacity_) start = tokens.size() - std::size_t(std::max<Index>(1, capacity_ / 2)), seen = 0;
      const Index fresh = Index(tokens.size() - start) - seen;
      std::int32_t* input = reinterpret_cast<std::int32_t*>(engine_.state().walker.input(0));
      std::copy(tokens.end() - fresh, tokens.end(), input);
      const MicroBatch micro{.leading = {1, fresh, seen}, .training = false};
      engine_.state().walker.forward({-1, int(plan.joins.size())}, micro, [&](Index u) { engine_.state().store.gather(u); });
      seen += fresh;
      const Real* logits = engine_.state().walker.prediction(micro) + (fresh - 1) * width;
      const Index token = sample(std::span<const Real>(logits, std::size_t(vocabulary)), options, std::uint64_t(i), work_);
      tokens.push_back(std::int32_t(token));
      each(std::int32_t(token));
    }
    engine_.state().walker.set_cache(nullptr, 0, nullptr);
  }

 private:
  Engine& engine_;
  Index capacity_;
  std::vector<Index> offsets_;
  Buffer cache_;
  std::vector<std::pair<double, Index>> work_;
};

}  // namespace weft
