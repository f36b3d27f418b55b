// SPDX-License-Identifier: Apache-2.0
// A pipeline schedule of one's own: eager 1F1B (Zhuang et al., arXiv 2211.05322). 1F1B waits for every message; with up to twice as many
// micro-batches in flight a stage has always something to do while messages travel. The compiler proves that it cannot deadlock, the plan
// counts its memory, and four ranks train with it.
//   custom_schedule [--svg FILE] [--csv FILE]     writes the picture, or the table in PyTorch's syntax
#include <weft/report/draw_schedule.hpp>
#include <weft/schedule/csv.hpp>
#include <weft/weft.hpp>

#include <cmath>
#include <cstdio>
#include <string_view>
#include <vector>

// [schedule]
struct Eager {
  static constexpr const char* name = "eager_1f1b";  // in reports and the plan's fingerprint
  static constexpr int version = 1;                  // change it when the tables change

  // What every stage does, in order. Messages are added by the library. An empty table would refuse the shape.
  static constexpr weft::ScheduleTable table(weft::ScheduleShape shape) {
    using weft::ActionKind;
    weft::ScheduleTable out = weft::empty_table(shape);  // chunk s on stage s
    for (int s = 0; s < shape.stages; ++s) {
      weft::ActionRow& row = out.rows[std::size_t(s)];
      const int eager = 2 * (shape.stages - 1 - s), ahead = eager < shape.micros ? eager : shape.micros;
      for (int m = 0; m < ahead; ++m) row.push_back({ActionKind::forward, s, m});
      for (int m = 0; m < shape.micros; ++m) {
        if (ahead + m < shape.micros) row.push_back({ActionKind::forward, s, ahead + m});
        row.push_back({ActionKind::backward, s, m});
      }
    }
    return out;
  }
};
// [schedule]

using Model = weft::Sequential<weft::Linear<1, 32>, weft::Gelu,
                               weft::Repeat<3, weft::Residual<weft::LayerNorm<32>, weft::Linear<32, 32>, weft::Gelu>>, weft::Linear<32, 1>>;
using TheRecipe = weft::Recipe<weft::Fp64, weft::MeanSquaredError, weft::AdamW>;
constexpr weft::Batch batch{.global = 64, .micro = 4};

// A change that lets two stages wait for each other would stop here, with the stage, the place in its row, and what it waits for.
using Train = weft::Plan<Model, weft::mesh(weft::Pipeline<Eager>{.stages = 4}), batch, TheRecipe>;
using OneRank = weft::Plan<Model, weft::mesh(weft::DataParallel{.ranks = 1}), batch, TheRecipe>;
static_assert(Train::bytes_per_rank() < 8 * weft::MiB, "a rank may use 8 MiB");

// With messages that take half a forward's time, 16 micro-batches end sooner than with 1F1B.
constexpr weft::ScheduleShape shape{.stages = 4, .chunks_per_stage = 1, .micros = 16};
constexpr weft::ScheduleTimes slow_links{.forward = 1, .backward_input = 1, .backward_weight = 1, .communication = 0.5};
constexpr double makespan_of(const weft::ScheduleTable& table) { return weft::simulate_schedule(table, slow_links).makespan; }
static_assert(makespan_of(Eager::table(shape)) < makespan_of(weft::schedule::OneForwardOneBackward::table(shape)), "eager hides messages");

// The losses of 200 steps of learning the sine.
template <class Plan>
std::vector<double> losses() {
  std::vector<double> out;
  weft::launch(Plan::num_ranks, [&](auto& rank) {
    auto trainer = weft::make_trainer<Plan>(rank, weft::AdamW{.rate = 0.01});
    // Stages that work on a micro-batch together are given the same.
    weft::GeneratedLoader data(batch.global / batch.micro, rank.rank(), [](weft::Index step, int, auto& micro) {
      for (int i = 0; i < 4; ++i) {
        const double x = double((step * 64 + micro.number * 4 + i) * 37 % 628) / 100 - 3.14;
        micro.values()[i] = x, micro.real_targets()[i] = std::sin(x);
      }
    });
    for (int step = 0; step < 200; ++step) {
      const weft::StepResult result = trainer.step(data);
      if (rank.rank() == 0) out.push_back(result.loss);
    }
  });
  return out;
}

int main(int argc, char** argv) {
  const weft::ScheduleShape drawn{.stages = 4, .chunks_per_stage = 1, .micros = 8};
  const weft::ScheduleTable table = Eager::table(drawn), usual = weft::schedule::OneForwardOneBackward::table(drawn);
  std::printf("1F1B, messages of 0.5\n%s\neager 1F1B\n%s\n", weft::draw_schedule_text(usual, slow_links).c_str(),
              weft::draw_schedule_text(table, slow_links).c_str());
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = i + 1 < argc ? argv[i] : "";
    if (option == "--svg")
      weft::write_schedule_file(argv[i + 1], weft::draw_schedule_svg(table, slow_links, {.title = "eager 1F1B, messages of 0.5"}));
    else if (option == "--csv")
      weft::write_schedule_file(argv[i + 1], weft::schedule_to_csv(table));
    else
      return std::fprintf(stderr, "custom_schedule [--svg FILE] [--csv FILE]\n"), 1;
  }

  const std::vector<double> one = losses<OneRank>(), four = losses<Train>();
  double worst = 0;
  for (std::size_t i = 0; i < one.size(); ++i) worst = std::max(worst, std::abs(one[i] - four[i]));
  std::printf("loss after %zu steps: one rank %.6f, four stages %.6f; largest difference in any step %.1e\n", one.size(), one.back(),
              four.back(), worst);
  return worst < 1e-9 && one.back() < 0.5 * one.front() ? 0 : 1;
}
