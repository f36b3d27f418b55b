// SPDX-License-Identifier: Apache-2.0
// The smallest program: two ranks learn the sine. hello_by_hand.cpp does the same without weft.
#include <weft/weft.hpp>

#include <cmath>
#include <cstdio>

using Model = weft::Sequential<weft::Linear<1, 32>, weft::Gelu, weft::Linear<32, 1>>;
using Train = weft::Plan<Model, weft::mesh(weft::DataParallel{.ranks = 2}), weft::Batch{.global = 64, .micro = 32},
                         weft::Recipe<weft::Fp32, weft::MeanSquaredError, weft::AdamW>>;
static_assert(Train::bytes_per_rank() < 8 * weft::MiB, "a rank may use 8 MiB");

int main() {
  weft::launch(Train::num_ranks, [](auto& rank) {
    auto trainer = weft::make_trainer<Train>(rank, weft::AdamW{.rate = 0.01});
    weft::GeneratedLoader data(1, rank.rank(), [](weft::Index step, int r, auto& micro) {
      for (int i = 0; i < 32; ++i) {
        const float x = float((step * 64 + r * 32 + i) * 37 % 628) / 100 - 3.14f;
        micro.values()[i] = x, micro.real_targets()[i] = std::sin(x);
      }
    });
    weft::StepResult result;
    for (int step = 0; step < 1500; ++step) result = trainer.step(data);
    if (rank.rank() == 0) std::printf("mean squared error after 1500 steps: %.6f\n", result.loss);
    if (!(result.loss < 1e-2)) throw weft::Error("hello.loss", "the sine was not learned");
  });
}
