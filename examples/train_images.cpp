// SPDX-License-Identifier: Apache-2.0
// Trains an image classifier on Fashion-MNIST (Debian's dataset-fashion-mnist, or any files in the same IDX format), data-parallel.
//
//   train_images [--data DIR] [--model cnn|mlp] [--ranks 2] [--epochs 5] [--batch 128] [--items N] [--log FILE.csv]
//
// The CNN has batch norm over the *global* batch, so its result does not depend on the number of ranks either.
#include <weft/data/gzip/read_idx.hpp>
#include <weft/weft.hpp>

#include <CLI/CLI.hpp>

#include <cstdio>

namespace {

// [model]
template <weft::Index C, weft::Index K>
using Stage = weft::Sequential<weft::Conv2d<C, K, weft::Conv2dOptions{.kernel = 3, .padding = 1, .bias = false}>, weft::BatchNorm2d<K>,
                               weft::Relu, weft::MaxPool2d<>>;

using Cnn = weft::Sequential<weft::Input<1, 28, 28>, Stage<1, 32>, Stage<32, 64>, weft::Flatten, weft::Linear<64 * 7 * 7, 128>, weft::Relu,
                             weft::Dropout<0.25>, weft::Linear<128, 10>>;
// [model]
using Mlp = weft::Sequential<weft::Input<1, 28, 28>, weft::Flatten, weft::Linear<784, 512>, weft::Relu, weft::Linear<512, 256>, weft::Relu,
                             weft::Linear<256, 10>>;

struct Options {
  std::string data = "/usr/share/datasets/fashion-mnist", model = "cnn", log;
  weft::Index ranks = 1, epochs = 5, batch = 128, items = 0;
  std::uint64_t seed = 1;
  double rate = 2e-3, accept = 0;
  bool describe = false;
};

weft::data::IdxArray read(const Options& options, const char* file) { return weft::data::gzip::read_idx(options.data + "/" + file); }

template <class Model>
void train(const Options& options) {
  using Recipe = weft::Recipe<weft::Fp32, weft::SoftmaxCrossEntropy<>, weft::AdamW>;
  using Executor = weft::Cpu<weft::kernel::cpu::Builtin>;
  const weft::PlanData plan = weft::plan_at_start<Model, Recipe>(weft::mesh(weft::DataParallel{.ranks = options.ranks}),
                                                                 {.global = options.batch, .micro = options.batch / options.ranks});
  if (options.describe) std::printf("%s", weft::describe(plan).c_str());

  // [data]
  // Read once in this process; ranks share the pages and take their own part of every batch.
  const weft::data::IdxArray pixels = read(options, "train-images-idx3-ubyte.gz");
  const weft::data::ImageOptions images{.shape = {1, 28, 28}, .classes = 10, .scale = weft::data::pixel_scale(pixels)};
  const weft::data::LabelledImages<float> learning(pixels, read(options, "train-labels-idx1-ubyte.gz"), images);
  const weft::data::LabelledImages<float> judging(read(options, "t10k-images-idx3-ubyte.gz"), read(options, "t10k-labels-idx1-ubyte.gz"),
                                                  images);
  // [data]

  weft::launch(int(options.ranks), [&](auto& rank) {
    const weft::Index items = options.items > 0 ? options.items : learning.num_items();
    const weft::Index steps = options.epochs * weft::divide_up(items, options.batch);
    const weft::CosineRate schedule{.warm_up = steps / 20, .steps = steps, .floor = 0.02};
    auto trainer = weft::make_trainer<Model, Recipe, Executor>(plan, rank, weft::AdamW{.rate = options.rate, .decay = 0.05}, schedule,
                                                               {.seed = options.seed});
    weft::data::Loader train_data(learning, {.global_batch = options.batch,
                                             .micro_batch = plan.batch.micro,
                                             .rank = rank.rank(),
                                             .ranks = options.ranks,
                                             .seed = options.seed,
                                             .epochs = options.epochs,
                                             .epoch_items = items});
    const auto test_data = [&] {
      return weft::data::Loader(judging, weft::data::evaluation_options(options.batch, plan.batch.micro, rank.rank(), options.ranks));
    };
    const weft::FitResult fit =
        trainer.fit(train_data, test_data, {.evaluate_every = train_data.steps_per_epoch(), .log = options.log, .row_unit = "images"});
    const double accuracy = trainer.accuracy(test_data());
    if (rank.rank() != 0) return;
    std::printf("%s: test accuracy %.2f %%, test loss %.4f after %lld epochs, %.0f images/s, %.0f %% of the peak of %lld core(s), %s\n",
                options.model.c_str(), 100 * accuracy, fit.validation_loss, static_cast<long long>(options.epochs), fit.rows_per_second,
                100 * fit.peak_fraction, static_cast<long long>(options.ranks), weft::duration_text(fit.seconds).c_str());
    if (100 * accuracy < options.accept) throw weft::Error("train_images.accuracy", "the accuracy is below what was asked for by --accept");
  });
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Trains an image classifier on files in IDX format, such as Fashion-MNIST."};
  app.add_option("--data", options.data, "folder of the four files")->capture_default_str();
  app.add_option("--model", options.model, "cnn or mlp")->capture_default_str()->check(CLI::IsMember({"cnn", "mlp"}));
  app.add_option("--ranks", options.ranks, "data-parallel ranks, as threads")->capture_default_str();
  app.add_option("--epochs", options.epochs, "times through the data")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--batch", options.batch, "images a step, over all ranks")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--items", options.items, "images of an epoch; 0: all")->capture_default_str();
  app.add_option("--rate", options.rate, "largest learning rate")->capture_default_str();
  app.add_option("--seed", options.seed, "of weights, dropout and data order")->capture_default_str();
  app.add_option("--log", options.log, "CSV file of every step");
  app.add_option("--accept", options.accept, "fail below this test accuracy, in percent");
  app.add_flag("--describe", options.describe, "print the plan");
  CLI11_PARSE(app, argc, argv);
  try {
    if (options.model == "mlp")
      train<Mlp>(options);
    else
      train<Cnn>(options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_images: %s\n", error.what());
    return 1;
  }
}
