// SPDX-License-Identifier: Apache-2.0
// Trains a GPT on the characters of any text file, data-parallel over ranks that are threads, and writes some text with it.
//
//   train_gpt --text FILE [--ranks 2] [--steps 2000] [--config cpu] [--seed 1] [--log FILE.csv] [--save FILE.safetensors] [--describe]
//
// The default is nanoGPT's configuration for CPUs: 4 layers, 4 heads, width 128, 64 tokens, batch 12, AdamW with cosine rate.
#include <weft/weft.hpp>
#ifdef WEFT_HAS_CHECKPOINT
#include <weft/checkpoint/layouts.hpp>
#endif

#include <CLI/CLI.hpp>

#include <cstdio>

namespace {

struct Options {
  std::string text, log, save, config = "cpu", prompt = "\n";
  weft::Index ranks = 1, steps = 2000, batch = 12, evaluate_every = 250, evaluate_windows = 1200, sample = 300;
  std::uint64_t seed = 1;
  double rate = 2e-3, temperature = 0.8;
  weft::Index top_k = 0;
  bool describe = false;
};

// One compiled size. Everything else (ranks, batch, steps, …) is known at start-up only.
template <weft::GptOptions gpt>
int train(const Options& options, const weft::data::CharacterVocabulary& vocabulary, const weft::data::FileBytes& text) {
  using Model = weft::Gpt<gpt>;
  using Recipe = weft::Recipe<weft::Fp32, weft::SoftmaxCrossEntropy<>, weft::AdamW>;
  using Executor = weft::Cpu<weft::kernel::cpu::Builtin>;

  // [plan]
  // Who does what: every rank holds the model and takes its part of every batch. Checked here, before anything starts.
  const weft::PlanData plan =
      weft::plan_at_start<Model, Recipe>(weft::mesh(weft::DataParallel{.ranks = options.ranks}),
                                         {.global = options.batch, .micro = options.batch / options.ranks, .sequence = gpt.sequence});
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
    auto trainer = weft::make_trainer<Model, Recipe, Executor>(plan, rank, optimizer, schedule, {.seed = options.seed, .clip_norm = 1});
    trainer.engine().initialise(options.seed, weft::GptInitialValues{gpt.layers});
    // [trainer]

    // [fit]
    // Every rank reads its own part of each global batch from the mapped file.
    weft::data::Loader train_data(learning, {.global_batch = options.batch,
                                             .micro_batch = plan.batch.micro,
                                             .rank = rank.rank(),
                                             .ranks = options.ranks,
                                             .seed = options.seed,
                                             .order = weft::data::Order::with_replacement});
    const auto validation = [&] {
      auto all = weft::data::evaluation_options(options.batch, plan.batch.micro, rank.rank(), options.ranks);
      all.epoch_items = std::min(judging.num_items(), options.evaluate_windows);
      return weft::data::Loader(judging, all);
    };
    const weft::FitResult fit =
        trainer.fit(train_data, validation, {.steps = options.steps, .evaluate_every = options.evaluate_every, .log = options.log});
    // [fit]
    if (rank.rank() != 0) return;

    std::printf("validation loss %.4f after %lld steps (best %.4f), %.0f tokens/s, %.0f %% of the peak of %lld core(s), %s\n",
                fit.validation_loss, static_cast<long long>(fit.steps), fit.best_validation_loss, fit.rows_per_second,
                100 * fit.peak_fraction, static_cast<long long>(options.ranks), weft::duration_text(fit.seconds).c_str());
    if (!options.save.empty()) {
#ifdef WEFT_HAS_CHECKPOINT
      weft::save(trainer.engine(), options.save, weft::checkpoint::gpt2_layout());
      std::printf("saved under the names of Hugging Face's GPT-2: %s\n", options.save.c_str());
#endif
    }
    if (options.sample > 0) {
      // [generate]
      std::vector<std::int32_t> sequence = vocabulary.encode(options.prompt);
      weft::Generator generator(trainer.engine());
      generator.generate(
          sequence, options.sample,
          {.temperature = options.temperature, .top_k = options.top_k, .seed = options.seed, .vocabulary = vocabulary.size()},
          [](std::int32_t) {});
      // [generate]
      std::printf("─── a sample ───\n%s\n────────────────\n", vocabulary.decode(sequence).c_str());
    }
  };
  weft::launch(int(options.ranks), rank_main);
  std::printf("memory: at most %s, planned %s (%lld x %s, and %s of program and libraries)\n",
              weft::bytes_text(weft::peak_resident_bytes()).c_str(), weft::bytes_text(options.ranks * plan.memory.total() + before).c_str(),
              static_cast<long long>(options.ranks), weft::bytes_text(plan.memory.total()).c_str(), weft::bytes_text(before).c_str());
  return 0;
}

// The smallest compiled vocabulary that holds the text's characters: 65 is the Shakespeare text's.
template <weft::GptOptions gpt>
int train_for_vocabulary(const Options& options, const weft::data::CharacterVocabulary& vocabulary, const weft::data::FileBytes& text) {
  constexpr auto with = [](weft::Index size) {
    weft::GptOptions sized = gpt;
    sized.vocabulary = size;
    return sized;
  };
  if (vocabulary.size() <= 65) return train<with(65)>(options, vocabulary, text);
  if (vocabulary.size() <= 128) return train<with(128)>(options, vocabulary, text);
  return train<with(256)>(options, vocabulary, text);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Trains a GPT on the characters of a text file."};
  app.add_option("--text", options.text, "the text to learn")->required()->check(CLI::ExistingFile);
  app.add_option("--ranks", options.ranks, "data-parallel ranks, as threads")->capture_default_str();
  app.add_option("--steps", options.steps, "updates")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--batch", options.batch, "windows a step, over all ranks")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--config", options.config, "compiled size: tiny, cpu or medium")
      ->capture_default_str()
      ->check(CLI::IsMember({"tiny", "cpu", "medium"}));
  app.add_option("--seed", options.seed, "of weights, data order and sample")->capture_default_str();
  app.add_option("--rate", options.rate, "largest learning rate")->capture_default_str();
  app.add_option("--log", options.log, "CSV file of every step");
  app.add_option("--save", options.save, "safetensors file of the trained parameters");
  app.add_option("--evaluate-every", options.evaluate_every, "steps between evaluations")->capture_default_str();
  app.add_option("--evaluate-windows", options.evaluate_windows, "held-out windows that are evaluated at most")->capture_default_str();
  app.add_option("--sample", options.sample, "characters to write at the end")->capture_default_str();
  app.add_option("--prompt", options.prompt, "what the sample begins with");
  app.add_option("--temperature", options.temperature, "of the sample; 0: always the most likely")->capture_default_str();
  app.add_option("--top-k", options.top_k, "sample among so many; 0: all")->capture_default_str();
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
