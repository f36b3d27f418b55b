// SPDX-License-Identifier: Apache-2.0
// Generation with kept keys and values gives the tokens of a full forward pass, for learned and rotary positions.
#include <weft/run/generate.hpp>

#include "run/engine_cases.hpp"

using namespace weft;
using namespace weft::test;

namespace {

template <class Model>
void compare(Index prompt_length) {
  with_engines<Model, SoftmaxCrossEntropy<>, double>(
      {.ranks = 1}, {.global = 1, .micro = 1, .sequence = 12}, AdamW{}, {}, [&](auto& engine) {
        engine.for_each_parameter([&, drawn = 0](const std::string&, const ParameterFacts& facts, double* data, double*) mutable {
          for (Index e = 0; e < facts.elems(); ++e) data[e] += std::sin(0.7 * double(++drawn));  // far from uniform predictions
        });
        std::vector<std::int32_t> prompt;
        for (Index i = 0; i < prompt_length; ++i) prompt.push_back(std::int32_t(i * 5 % 11));
        std::vector<std::int32_t> cached = prompt, full = prompt;
        Index called = 0;
        Generator generator(engine);
        generator.generate(cached, 12 - prompt_length, {.temperature = 0}, [&](std::int32_t) { ++called; });
        CHECK(called == 12 - prompt_length);
        while (full.size() < 12) {
          const Index length = Index(full.size());
          const double* logits = engine.predict([&](auto& micro) {
            micro.leading = {1, length, 0};
            std::copy(full.begin(), full.end(), micro.tokens());
          });
          const double* last = logits + (length - 1) * 11;
          full.push_back(std::int32_t(std::max_element(last, last + 11) - last));
        }
        CHECK(cached == full);
        // Beyond the model's positions it goes on with what it still sees.
        generator.generate(cached, 20, {.temperature = 0.7, .top_k = 3, .seed = 4},
                           [](std::int32_t token) { CHECK((token >= 0 && token < 11)); });
        CHECK(cached.size() == 32);
        generator.generate(cached, 10, {.temperature = 50, .seed = 5, .vocabulary = 4}, [](std::int32_t token) { CHECK(token < 4); });
        cached.resize(32);
        // A step after generating is a step like any other: nothing of the cache is left in the engine.
        const auto fill = [](auto& micro) {
          for (int i = 0; i < 12; ++i) micro.tokens()[i] = i % 11, micro.integer_targets()[i] = (i + 1) % 11;
        };
        CHECK(engine.step(1, fill, 0.0).applied);
      });
}

}  // namespace

TEST_CASE("generation_with_a_cache_equals_the_full_forward") {
  using TinyGpt = Gpt<GptOptions{.vocabulary = 11, .sequence = 12, .width = 16, .heads = 2, .layers = 2}>;
  using TinyLlama = Llama<LlamaOptions{.vocabulary = 11, .width = 16, .heads = 4, .key_value_heads = 2, .hidden = 12, .layers = 2}>;
  for (Index prompt : {1, 5}) {
    compare<TinyGpt>(prompt);
    compare<TinyLlama>(prompt);
  }
}

TEST_CASE("sampling_follows_temperature_and_top_k") {
  const double logits[] = {0, 2, 1, -1e30};
  std::vector<std::pair<double, Index>> work;
  const auto counts = [&](SamplingOptions options) {
    std::vector<double> share(4);
    for (std::uint64_t i = 0; i < 4000; ++i) share[std::size_t(sample(std::span<const double>(logits), options, i, work))] += 1 / 4000.0;
    return share;
  };
  CHECK(counts({.temperature = 0})[1] == doctest::Approx(1));
  CHECK(counts({.top_k = 1})[1] == doctest::Approx(1));
  const auto all = counts({});
  const double sum = std::exp(0.0) + std::exp(2.0) + std::exp(1.0);
  CHECK(all[0] == doctest::Approx(1 / sum).epsilon(0.15));
  CHECK(all[1] == doctest::Approx(std::exp(2.0) / sum).epsilon(0.05));
  CHECK(all[3] == 0);
  const auto two = counts({.top_k = 2});
  CHECK(two[0] == 0);
  CHECK(two[1] == doctest::Approx(std::exp(2.0) / (std::exp(2.0) + std::exp(1.0))).epsilon(0.05));
  CHECK(counts({.temperature = 100})[0] == doctest::Approx(1.0 / 3).epsilon(0.1));
}

TEST_CASE("generation_refuses_what_it_cannot_do") {
  with_engines<OneWeight, SumLoss, double>({.ranks = 1}, {.global = 1, .micro = 1}, Sgd{}, {}, [](auto& engine) {
    CHECK_THROWS_WITH_AS(Generator{engine}, doctest::Contains("weft[generate.model]"), Error);
  });
  using TinyGpt = Gpt<GptOptions{.vocabulary = 11, .sequence = 12, .width = 16, .heads = 2, .layers = 2}>;
  with_engines<TinyGpt, SoftmaxCrossEntropy<>, double>(
      {.ranks = 1}, {.global = 1, .micro = 1, .sequence = 12}, AdamW{}, {}, [](auto& engine) {
        Generator generator(engine);
        std::vector<std::int32_t> nothing;
        CHECK_THROWS_WITH_AS(generator.generate(nothing, 1, {}, [](std::int32_t) {}), doctest::Contains("weft[generate.prompt]"), Error);
      });
}
