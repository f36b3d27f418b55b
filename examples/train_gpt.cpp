// SPDX-License-Identifier: Apache-2.0
// Trains a GPT on the characters of any text file, under one of many strategies, over ranks that are threads, and writes some text with it.
//
//   train_gpt --text FILE [--ranks 2 | --strategy NAME] [--steps 2000] [--config cpu] [--seed 1] [--log FILE.csv] [--save FILE.safetensors]
//             [--describe]
//
// The default is nanoGPT's configuration for CPUs: 4 layers, 4 heads, width 128, 64 tokens, batch 12, AdamW with cosine rate.
#include <weft/weft.hpp>
#ifdef WEFT_HAS_CHECKPOINT
#include <weft/checkpoint/layouts.hpp>
#endif

#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace {

// [strategies]
// How the work is divided. The last axis of a mesh is the closest neighbours. The number of micro-batches: of every data rank.
struct Strategy {
  const char* name;
  weft::Index micros;
  weft::StrategyData data;
};
using weft::DataParallel, weft::Pipeline, weft::TensorParallel, weft::Activations, weft::Shard, weft::Recompute, weft::mesh;
namespace schedule = weft::schedule;

const Strategy strategies[] = {
    {"data2", 1, weft::lower_strategy(mesh(DataParallel{.ranks = 2}))},
    {"data4", 1, weft::lower_strategy(mesh(DataParallel{.ranks = 4}))},
    {"tensor2", 1, weft::lower_strategy(mesh(TensorParallel{.ranks = 2}))},
    {"tensor4_sequence", 1, weft::lower_strategy(mesh(TensorParallel{.ranks = 4, .sequence = true}))},
    {"pipe2", 12, weft::lower_strategy(mesh(Pipeline<>{.stages = 2}))},
    {"pipe4", 12, weft::lower_strategy(mesh(Pipeline<>{.stages = 4}))},
    {"pipe2_gpipe", 12, weft::lower_strategy(mesh(Pipeline<schedule::GPipe>{.stages = 2}))},
    {"pipe2_interleaved", 12, weft::lower_strategy(mesh(Pipeline<schedule::Interleaved>{.stages = 2, .chunks = 2}))},
    {"pipe4_interleaved", 12, weft::lower_strategy(mesh(Pipeline<schedule::Interleaved>{.stages = 4, .chunks = 2}))},
    {"pipe4_zero_bubble", 12, weft::lower_strategy(mesh(Pipeline<schedule::ZeroBubbleH1>{.stages = 4}))},
    {"pipe2_zero_bubble_v", 12, weft::lower_strategy(mesh(Pipeline<schedule::ZeroBubbleV>{.stages = 2}))},
    {"zero1_4", 1, weft::lower_strategy(mesh(DataParallel{.ranks = 4, .shard = Shard::optimizer}))},
    {"zero2_4", 1, weft::lower_strategy(mesh(DataParallel{.ranks = 4, .shard = Shard::gradients}))},
    {"zero3_2", 1, weft::lower_strategy(mesh(DataParallel{.ranks = 2, .shard = Shard::parameters}))},
    {"zero3_4", 1, weft::lower_strategy(mesh(DataParallel{.ranks = 4, .shard = Shard::parameters}))},
    {"zero3_4_hybrid", 1, weft::lower_strategy(mesh(DataParallel{.ranks = 4, .shard = Shard::parameters, .shard_ranks = 2}))},
    {"data2_recompute", 1, weft::lower_strategy(mesh(DataParallel{.ranks = 2}, Activations{.recompute = Recompute::full}))},
    {"data2_pipe2", 6, weft::lower_strategy(mesh(DataParallel{.ranks = 2}, Pipeline<>{.stages = 2}))},
    {"data2_tensor2_zero1", 1, weft::lower_strategy(mesh(DataParallel{.ranks = 2, .shard = Shard::optimizer}, TensorParallel{.ranks = 2}))},
    {"data2_pipe2_tensor2", 6,
     weft::lower_strategy(mesh(DataParallel{.ranks = 2}, Pipeline<>{.stages = 2}, TensorParallel{.ranks = 2, .sequence = true}))},
};
// [strategies]

struct Options {
  std::string text, log, save, config = "cpu", strategy, prompt = "\n";
  weft::Index ranks = 1, steps = 2000, batch = 12, evaluate_every = 250, evaluate_windows = 1200, sample = 300;
  std::uint64_t seed = 1;
  double rate = 2e-3, temperature = 0.8;
  weft::Index top_k = 0;
  bool describe = false;
};

// What --strategy names, or data parallelism over --ranks.
Strategy chosen(const Options& options) {
  for (const Strategy& strategy : strategies)
    if (options.strategy == strategy.name) return strategy;
  return {"", 1, weft::lower_strategy(mesh(DataParallel{.ranks = options.ranks}))};
}

// One compiled size. Everything else (strategy, batch, steps, …) is known at start-up only.
template <weft::GptOptions gpt>
int train(const Options& options, const weft::data::CharacterVocabulary& vocabulary, const weft::data::FileBytes& text) {
  using Model = weft::Gpt<gpt>;
  using Recipe = weft::Recipe<weft::Fp32, weft::SoftmaxCrossEntropy<>, weft::AdamW>;
  using Executor = weft::Cpu<weft::kernel::cpu::Builtin>;

  // [plan]
  // Who does what: which rank holds which part of the model and of every batch. Checked here, before anything starts. A batch with fewer
  // windows than that goes in micro-batches of one.
  const Strategy strategy = chosen(options);
  const weft::Index ranks = strategy.data.ranks, data_ranks = strategy.data.data();
  const weft::Index micro = std::max<weft::Index>(1, options.batch / (data_ranks * strategy.micros));
  const weft::PlanData plan =
      weft::plan_at_start<Model, Recipe>(strategy.data, {.global = options.batch, .micro = micro, .sequence = gpt.sequence});
  // [plan]
  const weft::Index before = weft::resident_bytes();  // program, libraries and text
  if (options.describe) std::printf("%s", weft::describe(plan, before).c_str());

  // [data]
  // The first 90 % to learn from, the rest to be judged by.
  const weft::data::TokenSequence tokens = vocabulary.tokens(text);
  const weft::Index split = tokens.size() * 9 / 10;
  const weft::data::TokenWindows learning(tokens.part(0, split), gpt.sequence, weft::data::WindowStarts::every_token);
  const weft::data::TokenWindows judging(tokens.part(split, tokens.size() - split), gpt.sequence);
  // [data]

  const auto rank_main = [&](auto& rank) {
    // [trainer]
    const weft::AdamW optimizer{.rate = options.rate, .beta2 = 0.99, .decay = 0.1};
    const weft::CosineRate schedule{.warm_up = std::min<weft::Index>(100, options.steps / 10), .steps = options.steps, .floor = 0.1};
    auto trainer =
        weft::make_trainer<Model, Recipe, Executor, 2, 4>(plan, rank, optimizer, schedule, {.seed = options.seed, .clip_norm = 1});
    trainer.engine().initialise(options.seed, weft::GptInitialValues{gpt.layers});
    // [trainer]

    // [fit]
    // Every rank reads its own part of each global batch from the mapped file; ranks that share the work on a micro-batch read the same.
    const int data_rank = int(trainer.engine().place().data);
    weft::data::Loader train_data(learning, {.global_batch = options.batch,
                                             .micro_batch = plan.batch.micro,
                                             .rank = data_rank,
                                             .ranks = data_ranks,
                                             .seed = options.seed,
                                             .order = weft::data::Order::with_replacement});
    const auto validation = [&] {
      auto all = weft::data::evaluation_options(options.batch, plan.batch.micro, data_rank, data_ranks);
      all.epoch_items = std::min(judging.num_items(), options.evaluate_windows);
      return weft::data::Loader(judging, all);
    };
    const weft::FitResult fit =
        trainer.fit(train_data, validation, {.steps = options.steps, .evaluate_every = options.evaluate_every, .log = options.log});
    // [fit]
    const bool speaks = rank.rank() == 0;
    if (speaks)
      std::printf("validation loss %.4f after %lld steps (best %.4f), %.0f tokens/s, %.0f %% of the cores' peak, %s\n", fit.validation_loss,
                  static_cast<long long>(fit.steps), fit.best_validation_loss, fit.rows_per_second, 100 * fit.peak_fraction,
                  weft::duration_text(fit.seconds).c_str());
    if (!options.save.empty()) {
#ifdef WEFT_HAS_CHECKPOINT
      weft::save(trainer.engine(), options.save, weft::checkpoint::gpt2_layout());
      if (speaks) std::printf("saved under the names of Hugging Face's GPT-2: %s\n", options.save.c_str());
#endif
    }
    if (options.sample > 0) {
      // [generate]
      // One token at a time is work for one rank, which gets the whole model from all.
      const auto model = trainer.engine().collect();
      if (!speaks) return;
      auto writer = weft::make_trainer<Model, Recipe, Executor>(
          weft::plan_at_start<Model, Recipe>(weft::mesh(), {.sequence = gpt.sequence}), weft::SelfCommunicator{}, optimizer);
      writer.engine().distribute(model);
      std::vector<std::int32_t> sequence = vocabulary.encode(options.prompt);
      weft::Generator generator(writer.engine());
      generator.generate(
          sequence, options.sample,
          {.temperature = options.temperature, .top_k = options.top_k, .seed = options.seed, .vocabulary = vocabulary.size()},
          [](std::int32_t) {});
      // [generate]
      std::printf("─── a sample ───\n%s\n────────────────\n", vocabulary.decode(sequence).c_str());
    }
  };
  weft::launch(int(ranks), rank_main);
  std::printf("memory: at most %s, planned %s (%lld x %s, and %s of program and libraries)\n",
              weft::bytes_text(weft::peak_resident_bytes()).c_str(), weft::bytes_text(ranks * plan.memory.total() + before).c_str(),
              static_cast<long long>(ranks), weft::bytes_text(plan.memory.total()).c_str(), weft::bytes_text(before).c_str());
  return 0;
}

// The smallest compiled vocabulary that holds the text's characters: 65 is that of Shakespeare's text.
template <weft::GptOptions gpt>
int train_for_vocabulary(const Options& options, const weft::data::CharacterVocabulary& vocabulary, const weft::data::FileBytes& text) {
  constexpr auto with = [](weft::Index size) {
    weft::GptOptions sized = gpt;
    sized.vocabulary = size;
    return sized;
  };
  if constexpr (gpt.layers > 2)
    if (vocabulary.size() <= 65) return train<with(65)>(options, vocabulary, text);
  return train<with(256)>(options, vocabulary, text);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Trains a GPT on the characters of a text file."};
  app.add_option("--text", options.text, "the text to learn")->required()->check(CLI::ExistingFile);
  const CLI::Range at_least_one(weft::Index(1), weft::Index(1'000'000'000)), not_negative(weft::Index(0), weft::Index(1'000'000'000));
  CLI::Option* const ranks =
      app.add_option("--ranks", options.ranks, "data-parallel ranks, as threads")->capture_default_str()->check(at_least_one);
  std::vector<std::string> names;
  for (const Strategy& strategy : strategies) names.emplace_back(strategy.name);
  app.add_option("--strategy", options.strategy, "how the work is divided, instead of --ranks")
      ->check(CLI::IsMember(names))
      ->excludes(ranks);
  app.add_option("--steps", options.steps, "updates")->capture_default_str()->check(at_least_one);
  app.add_option("--batch", options.batch, "windows a step, over all ranks")->capture_default_str()->check(at_least_one);
  app.add_option("--config", options.config, "compiled size: tiny, cpu or medium")
      ->capture_default_str()
      ->check(CLI::IsMember({"tiny", "cpu", "medium"}));
  app.add_option("--seed", options.seed, "of weights, data order and sample")->capture_default_str();
  app.add_option("--rate", options.rate, "largest learning rate")->capture_default_str();
  const auto in_a_folder = [](const std::string& path) {
    const auto folder = std::filesystem::path(path).parent_path();
    return folder.empty() || std::filesystem::is_directory(folder) ? std::string() : "there is no folder " + folder.string();
  };
  app.add_option("--log", options.log, "CSV file of every step")->check(in_a_folder);
  app.add_option("--save", options.save, "safetensors file of the trained parameters")->check(in_a_folder);
  app.add_option("--evaluate-every", options.evaluate_every, "steps between evaluations; 0: none")
      ->capture_default_str()
      ->check(not_negative);
  app.add_option("--evaluate-windows", options.evaluate_windows, "held-out windows that are evaluated at most")
      ->capture_default_str()
      ->check(at_least_one);
  app.add_option("--sample", options.sample, "characters to write at the end")->capture_default_str()->check(not_negative);
  app.add_option("--prompt", options.prompt, "what the sample begins with");
  app.add_option("--temperature", options.temperature, "of the sample; 0: always the most likely")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 100.0));
  app.add_option("--top-k", options.top_k, "sample among so many; 0: all")->capture_default_str()->check(not_negative);
  app.add_flag("--describe", options.describe, "print the plan");
  CLI11_PARSE(app, argc, argv);
  try {
#ifndef WEFT_HAS_CHECKPOINT
    if (!options.save.empty())
      throw weft::Error("train_gpt.save", "this was built without weft::checkpoint; install nlohmann-json3-dev and build again");
#endif
    const weft::data::FileBytes text = weft::data::map_file(options.text);
    const auto vocabulary = weft::data::CharacterVocabulary::of_text(text);
    if (options.config == "tiny")
      return train_for_vocabulary<weft::GptOptions{.sequence = 32, .width = 32, .heads = 2, .layers = 2, .bias = false}>(options,
                                                                                                                         vocabulary, text);
    if (options.config == "medium")
      return train_for_vocabulary<weft::GptOptions{.sequence = 256, .width = 384, .heads = 6, .layers = 6, .bias = false}>(
          options, vocabulary, text);
    return train_for_vocabulary<weft::GptOptions{.sequence = 64, .width = 128, .heads = 4, .layers = 4, .bias = false}>(options, vocabulary,
                                                                                                                        text);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_gpt: %s\n", error.what());
    return 1;
  }
}
