// SPDX-License-Identifier: Apache-2.0
// Whenever collectives and messages happen to move, a step ends and gives the same bits: 200 runs in which every communication is held back
// for a random time. The delays differ from rank to rank, so that ranks meet in all kinds of orders.
#include <weft/kernel/cpu/gemm.hpp>
#include <weft/optim/optim.hpp>
#include <weft/plan.hpp>
#include <weft/run/engine.hpp>
#include <weft/run/launch.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>

using namespace weft;

namespace {

constexpr Index sequence = 4, global = 8, steps = 2;
using Model = Gpt<GptOptions{.vocabulary = 13, .sequence = sequence, .width = 8, .heads = 4, .layers = 4, .tied = true, .dropout = 0.1}>;
using TheRecipe = Recipe<Fp64, SoftmaxCrossEntropy<>, AdamW>;
using TheEngine = Engine<Cpu<kernel::cpu::Builtin>, double, ThreadCommunicator, AdamW>;

constexpr std::size_t num_operations = std::size_t(Operation::split) + 1;
std::array<std::atomic<Index>, num_operations> num_delayed;
std::uint64_t run_number = 0;  // written between runs only
thread_local int delayed_rank = 0;

std::uint64_t mixed(std::uint64_t x) {  // Steele et al., SplitMix64
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return x ^ x >> 31;
}

// A function of run, rank, communicator, receiver and number: 0 to 40 µs, and one in 16 up to 640 µs.
std::chrono::nanoseconds random_delay(const CallRecord& call, Index number) {
  ++num_delayed[std::size_t(call.operation)];
  std::uint64_t x = mixed(run_number);
  for (const std::uint64_t part :
       {std::uint64_t(delayed_rank), std::uint64_t(call.communicator), std::uint64_t(call.peer + 1), std::uint64_t(number)})
    x = mixed(x ^ part);
  return std::chrono::nanoseconds(x % 40'000 * (x >> 40 & 15U ? 1 : 16));
}

// Losses, norms and parameters, in this order.
std::vector<double> train(const PlanData& plan, bool delayed) {
  std::vector<double> out;
  LaunchOptions options;
  options.threads.spins = 10;  // there are more ranks than cores, and they mostly wait
  if (delayed) options.threads.delay = random_delay;
  launch(
      int(plan.strategy.ranks),
      [&](ThreadCommunicator& comm) {
        delayed_rank = comm.rank();
        using Kernels = typename TheEngine::Kernels;
        const ModelCode<double> code =
            model_code_for<Kernels, double, Model, SoftmaxCrossEntropy<>, 2>(plan.strategy.tensor(), plan.graph.sequence);
        TheEngine engine(plan, code, comm, AdamW{}, {.seed = 3, .clip_norm = 0.5, .poison = true});
        for (Index step = 0; step < steps; ++step) {
          const auto fill = [&](auto& to) {
            to.leading = {1, sequence, 0};
            to.first_item = step * global + engine.place().data * plan.micros + to.number;
            for (Index i = 0; i < sequence; ++i) {
              to.tokens()[i] = std::int32_t((to.first_item * 5 + i * 3) % 13);
              to.integer_targets()[i] = (to.first_item + i) % 5 == 2 ? -100 : std::int32_t((to.first_item * 7 + i) % 13);
            }
          };
          const StepResult result = engine.step(plan.micros, fill, 0.01);
          if (comm.rank() == 0) out.push_back(result.loss), out.push_back(result.gradient_norm);
        }
        const auto model = engine.collect(Collected::values, 0);
        for (const auto& tensor : model.tensors) out.insert(out.end(), tensor.data.begin(), tensor.data.end());
      },
      options);
  return out;
}

template <class MeshType>
void compare_delayed_runs(const char* name, const MeshType& axes, int runs) {
  const PlanData plan = plan_at_start<Model, TheRecipe>(axes, {.global = global, .micro = 1, .sequence = sequence});
  const std::vector<double> right = train(plan, false);
  REQUIRE(right[0] > 0);
  int differing = 0;
  for (int run = 0; run < runs; ++run) {
    ++run_number;
    differing += train(plan, true) != right;
  }
  CHECK_MESSAGE(differing == 0, name << ": " << differing << " of " << runs << " runs give other bits");
}

}  // namespace

TEST_CASE("random_delays_in_every_communication_change_no_bit_in_200_runs") {
  const DataParallel buckets{.ranks = 4, .bucket_bytes = 2000};
  compare_delayed_runs("data4", mesh(buckets), 25);
  compare_delayed_runs("data4 zero3", mesh(DataParallel{.ranks = 4, .shard = Shard::parameters}), 25);
  compare_delayed_runs("data2 pipe2 reproducible", mesh(DataParallel{.ranks = 2}, Pipeline<>{.stages = 2}, Reproducible{}), 10);
  compare_delayed_runs("pipe4 1f1b", mesh(Pipeline<>{.stages = 4}), 30);
  compare_delayed_runs("pipe4 zero bubble", mesh(Pipeline<schedule::ZeroBubbleH1>{.stages = 4}), 30);
  compare_delayed_runs("pipe2 zero bubble V", mesh(Pipeline<schedule::ZeroBubbleV>{.stages = 2}), 25);
  compare_delayed_runs("tensor2 sequence", mesh(TensorParallel{.ranks = 2, .sequence = true}), 25);
  compare_delayed_runs("data2 zero2, pipe2, tensor2",
                       mesh(DataParallel{.ranks = 2, .shard = Shard::gradients}, Pipeline<>{.stages = 2}, TensorParallel{.ranks = 2}), 30);
  CHECK(run_number == 200);
  for (const Operation operation : {Operation::all_reduce, Operation::all_gather, Operation::reduce_scatter, Operation::send})
    CHECK_MESSAGE(num_delayed[std::size_t(operation)] > 1000, name_of(operation) << " " << num_delayed[std::size_t(operation)].load());
}
