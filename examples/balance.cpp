// SPDX-License-Identifier: Apache-2.0
// Unequal ranks: one of two has something else to do. Every few steps all tell each other how fast they were, and the shares of the next
// steps follow. Who computes what changes, the training does not: the loss stays that of one rank.
//
//   balance FILE        any text of a few KiB
#include <weft/weft.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>

using Model = weft::Gpt<weft::GptOptions{.vocabulary = 256, .sequence = 32, .width = 64, .heads = 2, .layers = 2}>;
// Capacity: a rank may get up to the whole batch, in micro-batches of two windows.
constexpr weft::Index windows = 24, ranks = 2;
using Train = weft::Plan<Model, weft::mesh(weft::DataParallel{.ranks = ranks}), weft::Batch{.global = windows, .micro = 2, .sequence = 32}>;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// What else rank 1 has to do for every micro-batch.
void other_work(int rank) {
  const double until = now() + (rank == 1 ? 2e-3 : 0);
  while (now() < until) {}
}

// The loss of every step; how many windows rank 1 took in the last one.
std::vector<double> train(const weft::data::TokenWindows& text, bool balanced, weft::Index& last_share) {
  std::vector<double> losses;
  weft::launch(ranks, [&](auto& rank) {
    auto trainer = weft::make_trainer<Train>(rank, weft::AdamW{.rate = 1e-3});
    weft::data::Loader loader(text, {.global_batch = windows, .micro_batch = 2, .rank = rank.rank(), .ranks = ranks});
    std::vector<weft::Index> shares(ranks, windows / ranks);
    double seconds = 0;  // that this rank worked, not waited
    weft::Index items = 0;
    for (int step = 1; step <= 40; ++step) {
      // [balance]
      const weft::Index micros = loader.begin_step();
      double start = now();
      const weft::StepResult result = trainer.engine().step(
          micros,
          [&](auto& micro) {
            other_work(rank.rank());
            loader.fill(micro);
            items += micro.leading.batch;
            seconds += now() - start, start = now();  // the micro-batch before, and reading this one
          },
          trainer.rate());
      if (balanced && step % 5 == 0) {
        shares = weft::balance(rank, windows, items, seconds);
        loader.set_shares(shares);
        items = 0, seconds = 0;
      }
      // [balance]
      if (rank.rank() == 0) losses.push_back(result.loss), last_share = shares[1];
    }
  });
  return losses;
}

int main(int argc, char** argv) {
  if (argc != 2) throw weft::Error("balance.file", "give a text file: balance FILE");
  const auto file = weft::data::map_file(argv[1]);
  const weft::data::TokenWindows text(weft::data::TokenSequence(file, weft::data::TokenType::u8, 256, 0, file.size()), 32);
  weft::Index equal_share = 0, share = 0;
  double start = now();
  const std::vector<double> equal = train(text, false, equal_share);
  const double equal_seconds = now() - start;
  start = now();
  const std::vector<double> balanced = train(text, true, share);
  std::printf("equal shares    %.2f s, loss %.6f\n", equal_seconds, equal.back());
  std::printf("by speed        %.2f s, loss %.6f; the slower rank takes %lld of %lld windows\n", now() - start, balanced.back(),
              static_cast<long long>(share), static_cast<long long>(windows));
  for (std::size_t s = 0; s < equal.size(); ++s)
    if (!(std::abs(equal[s] - balanced[s]) < 1e-3 * equal[s])) throw weft::Error("balance.loss", "shares have changed the training");
}
