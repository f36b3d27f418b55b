// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <weft/plan.hpp>
#include <weft/report/describe_simulation.hpp>
#include <weft/strategy/synchronisation.hpp>

#include <doctest/doctest.h>

using namespace weft;

namespace {

// Eight equal units, a loss that costs nothing: the machine's memory and launches are free.
using Even = Sequential<Repeat<8, Linear<256, 256, Bias::no>>>;
using EvenRecipe = Recipe<Fp32, MeanSquaredError>;
constexpr Cluster free_memory() {
  Cluster out = clusters::a100_selene;
  out.memory_bytes_per_second = 1e30, out.kernels.launch_seconds = 0;
  out.inside = out.between = {1e30, 0};
  return out;
}

template <class Schedule>
Simulation even(Index stages, Index micros, Index chunks = 1) {
  const PlanData plan = plan_at_start<Even, EvenRecipe>(mesh(Pipeline<Schedule>{.stages = stages, .chunks = chunks}),
                                                        Batch{.global = 256 * micros, .micro = 256});
  return simulate(plan, free_memory());
}

using Small = Gpt<GptOptions{.vocabulary = 1024, .sequence = 256, .width = 512, .heads = 8, .layers = 8, .dropout = 0.1}>;
constexpr Batch small_batch{.global = 64, .micro = 1, .sequence = 256};

template <class MeshType>
Simulation simulated(const MeshType& mesh, const Cluster& cluster = clusters::a100_selene) {
  return simulate(plan_at_start<Small>(mesh, small_batch), cluster);
}

Cluster slower(double inside, double between) {
  Cluster out = clusters::a100_selene;
  out.inside.bytes_per_second /= inside, out.between.bytes_per_second /= between;
  return out;
}

// Local SGD: a mean of parameters now and then instead of sums of gradients.
struct Mean {
  static constexpr const char* name = "mean";
  static constexpr int version = 1;
  static constexpr bool sums_gradients = false;
  static constexpr void synchronise(SyncStep& step) {
    if (step.number() % step.every() == 0) step.average(Shared::parameters);
  }
};

}  // namespace

TEST_CASE("simulate_bubbles_are_the_formulas_where_times_are_uniform") {
  for (Index p : {2, 4, 8})
    for (Index m : {p, 2 * p, 4 * p}) {
      const Simulation one = even<schedule::OneForwardOneBackward>(p, m), all = even<schedule::GPipe>(p, m);
      const double both = one.forward_seconds + one.backward_seconds;
      CHECK(one.bubble_seconds == doctest::Approx(double(p - 1) * both).epsilon(1e-9));
      CHECK(all.bubble_seconds == doctest::Approx(one.bubble_seconds).epsilon(1e-9));
      CHECK(one.exposed() == doctest::Approx(0).epsilon(1e-15));
      // Forward and the two parts of backward are equal products here.
      const Simulation h1 = even<schedule::ZeroBubbleH1>(p, m);
      const double third = both / 3, rate = double(p - 1) * third / (double(p - 1) * third + double(m) * both);
      CHECK(h1.span_bubble_rate == doctest::Approx(rate).epsilon(1e-9));
      if (m >= 2 * p - 1) CHECK(even<schedule::ZeroBubbleH2>(p, m).span_bubble_rate == doctest::Approx(0).epsilon(1e-9));
    }
  for (Index p : {2, 4})
    for (Index m : {p, 2 * p, 4 * p}) {
      const Simulation one = even<schedule::OneForwardOneBackward>(p, m), two = even<schedule::Interleaved>(p, m, 2);
      CHECK(two.bubble_seconds == doctest::Approx(one.bubble_seconds / 2).epsilon(1e-9));
    }
}

TEST_CASE("simulate_parts_add_up_to_the_step") {
  const auto check = [](const Simulation& s) {
    CHECK(s.compute_seconds + s.bubble_seconds + s.optimizer_seconds + s.exposed() == doctest::Approx(s.step_seconds).epsilon(1e-9));
    CHECK(s.compute_seconds > 0);
    CHECK(s.bubble_seconds >= 0);
    CHECK(s.optimizer_seconds > 0);
    CHECK(s.memory_bytes > 0);
    for (double each : s.exposed_seconds) CHECK(each >= 0);
    CHECK(s.tokens_per_second() * s.step_seconds == doctest::Approx(64.0 * 256));
  };
  check(simulated(mesh()));
  using Images =
      Sequential<Input<3, 16, 16>, Conv2d<3, 32>, BatchNorm2d<32>, Relu, Flatten, Linear<32 * 14 * 14, 10>>;  // joins micro-batches
  const Batch images{.global = 64 * 256, .micro = 256};
  check(simulate(plan_at_start<Images>(mesh(DataParallel{.ranks = 16}), images), clusters::a100_selene));
  for (const Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::parameters}) {
    const DataParallel data{.ranks = 4, .shard = shard};
    check(simulated(mesh(data)));
    check(simulated(mesh(data, Pipeline<>{.stages = 4}, TensorParallel{.ranks = 4, .sequence = true})));
    check(simulated(mesh(data, Pipeline<schedule::ZeroBubbleV>{.stages = 2}, TensorParallel{.ranks = 2})));
    check(simulated(mesh(data, Pipeline<schedule::Interleaved>{.stages = 2, .chunks = 2}, Activations{.recompute = Recompute::full})));
    check(simulated(mesh(DataParallel{.ranks = 16, .shard = shard, .shard_ranks = 4})));
  }
}

TEST_CASE("simulate_slower_links_expose_more") {
  const auto data = mesh(DataParallel{.ranks = 16});
  const auto tensor = mesh(DataParallel{.ranks = 2}, TensorParallel{.ranks = 8});
  const auto pipe = mesh(Pipeline<>{.stages = 2}, TensorParallel{.ranks = 8});
  const auto sharded = mesh(DataParallel{.ranks = 16, .shard = Shard::parameters});
  double before[4]{};
  for (double factor : {1.0, 4.0, 64.0, 1024.0}) {
    const Cluster between = slower(1, factor), inside = slower(factor, 1);
    const double now[] = {simulated(data, between).exposed(GroupKind::data), simulated(tensor, inside).exposed(GroupKind::tensor),
                          simulated(pipe, between).exposed(GroupKind::pipe), simulated(sharded, between).exposed(GroupKind::shard)};
    for (int i = 0; i < 4; ++i) {
      CHECK(now[i] > before[i]);
      before[i] = now[i];
    }
  }
  // A link that no group uses does not matter.
  CHECK(simulated(tensor, slower(1, 8)).exposed(GroupKind::tensor) == simulated(tensor).exposed(GroupKind::tensor));
  CHECK(simulated(mesh(DataParallel{.ranks = 8}), slower(1, 8)).step_seconds == simulated(mesh(DataParallel{.ranks = 8})).step_seconds);
}

TEST_CASE("simulate_hides_buckets_behind_backward") {
  const auto run = [](bool overlap) { return simulated(mesh(DataParallel{.ranks = 16, .bucket_bytes = 4 * MiB, .overlap = overlap})); };
  const Simulation hidden = run(true), open = run(false);
  CHECK(hidden.exposed(GroupKind::data) < open.exposed(GroupKind::data));
  CHECK(hidden.compute_seconds == open.compute_seconds);
}

TEST_CASE("simulate_spreads_what_a_policy_says_over_steps") {
  const auto run = [](Index every) { return simulated(mesh(Replicas<Mean>{.ranks = 16, .every = every})); };
  const double each = run(1).exposed(GroupKind::data);
  CHECK(each > 0);
  CHECK(run(8).exposed(GroupKind::data) == doctest::Approx(each / 8).epsilon(1e-9));
  const PlanData plan = plan_at_start<Small>(mesh(Replicas<Mean>{.ranks = 16, .every = 8}), small_batch);
  const double elems = double(plan.stages[0].parameter_elems);
  CHECK(volume(plan, 0, as_planned(plan))[GroupKind::data] == doctest::Approx(2 * 4 * elems * 15 / 16 / 8).epsilon(1e-9));
}

TEST_CASE("routes_know_which_axis_is_close") {
  const auto route = [](const auto& mesh, GroupKind kind) {
    return GroupRoutes(plan_at_start<Small>(mesh, small_batch), clusters::a100_selene)[kind];
  };
  const auto close = mesh(DataParallel{.ranks = 4}, TensorParallel{.ranks = 8});
  const auto far = mesh(TensorParallel{.ranks = 8}, DataParallel{.ranks = 4});
  CHECK(route(close, GroupKind::tensor).nodes == 1);
  CHECK(route(close, GroupKind::data).nodes == 4);
  CHECK(route(far, GroupKind::tensor).nodes == 4);  // ranks 0, 4, 8, … 28
  CHECK(route(far, GroupKind::data).nodes == 1);
  CHECK(route(close, GroupKind::tensor).link.bytes_per_second == clusters::a100_selene.inside.bytes_per_second);
  CHECK(route(far, GroupKind::tensor).link.bytes_per_second == clusters::a100_selene.between.bytes_per_second);
  const auto hybrid = mesh(DataParallel{.ranks = 32, .shard = Shard::parameters, .shard_ranks = 8});
  CHECK((route(hybrid, GroupKind::shard).nodes == 1 && route(hybrid, GroupKind::shard).ranks == 8));
  CHECK((route(hybrid, GroupKind::replica).nodes == 4 && route(hybrid, GroupKind::replica).ranks == 4));
  const PlanData piped = plan_at_start<Small>(mesh(Pipeline<>{.stages = 4}, DataParallel{.ranks = 4}), small_batch);
  const GroupRoutes routes(piped, clusters::a100_selene);
  CHECK(routes.hop(0, 1).nodes == 1);
  CHECK(routes.hop(1, 2).nodes == 2);
}

// Thakur, Rabenseifner, Gropp, 2005: ring and recursive algorithms, whichever is faster; binomial broadcast.
TEST_CASE("collectives_cost_what_their_algorithms_send") {
  const Route route{8, 2, {1e9, 1e-5}};
  const double n = 1e6, move = n / 1e9;
  CHECK(collective_seconds(Operation::all_reduce, n, route) == doctest::Approx(2 * 3 * 1e-5 + 2 * move * 7 / 8));
  CHECK(collective_seconds(Operation::all_gather, n, route) == doctest::Approx(3 * 1e-5 + move * 7 / 8));
  CHECK(collective_seconds(Operation::broadcast, n, route) == doctest::Approx(3 * (1e-5 + move)));
  CHECK(collective_seconds(Operation::send, n, route) == doctest::Approx(1e-5 + move));
  CHECK(collective_seconds(Operation::all_reduce, n, {1, 1, {}}) == 0);
}

TEST_CASE("products_are_as_fast_as_their_shapes_allow") {
  const auto fraction = [](Index m, Index n, Index k) {
    const double seconds = product_seconds(clusters::a100_selene, ElementType::f16, 1, m, n, k, 2.0 * double(m * k + n * k + m * n));
    return 2.0 * double(m) * double(n) * double(k) / seconds / clusters::a100_selene.flops_f16;
  };
  const double large = fraction(8192, 8192, 8192);
  CHECK((large > 0.6 && large < clusters::a100_selene.kernels.product_fraction));
  double before = 0;
  for (Index k : {64, 256, 1024, 4096, 16384}) {  // a short k does not pay for starting a tile
    CHECK(fraction(8192, 8192, k) > before);
    before = fraction(8192, 8192, k);
  }
  CHECK(fraction(256, 256, 256) < 0.1 * large);                    // too few tiles for the device
  CHECK(fraction(1, 8192, 8192) < 0.01 * large);                   // reads a matrix for a vector: memory
  CHECK(fraction(1536, 1152, 8192) > fraction(1664, 1152, 8192));  // 108 of 128 x 128, and a second round for nine more
}

TEST_CASE("simulate_recompute_costs_time_and_saves_memory") {
  const auto run = [](Recompute recompute) { return simulated(mesh(Pipeline<>{.stages = 4}, Activations{.recompute = recompute})); };
  const Simulation none = run(Recompute::none), selective = run(Recompute::selective), full = run(Recompute::full);
  CHECK((none.step_seconds < selective.step_seconds && selective.step_seconds < full.step_seconds));
  CHECK((none.memory_bytes > selective.memory_bytes && selective.memory_bytes > full.memory_bytes));
  CHECK(none.recomputed_flops == 0);
  CHECK(none.model_flops == full.model_flops);
  CHECK(full.flops_per_rank() * full.step_seconds > full.model_flops_per_rank() * full.step_seconds * 1.2);
}

TEST_CASE("simulate_takes_memory_from_the_plan") {
  const PlanData plan = plan_at_start<Small>(mesh(Pipeline<>{.stages = 4}, DataParallel{.ranks = 2}), small_batch);
  const Simulation simulation = simulate(plan, clusters::a100_selene);
  CHECK(simulation.memory_bytes == double(plan.memory.total()));
  CHECK(simulation.fullest_stage == 0);
  CHECK(simulation.heaviest_stage == 3);  // the head
  CHECK(simulation.stages.size() == 4);
}

TEST_CASE("simulate_refuses_what_makes_no_sense") {
  const auto error = [](const PlanData& plan, const Cluster& cluster) -> std::string {
    try {
      simulate(plan, cluster);
    } catch (const Error& caught) { return caught.id(); }
    return "";
  };
  const PlanData plan = plan_at_start<Small>(mesh(DataParallel{.ranks = 2}), small_batch);
  CHECK(error(plan, clusters::a100_selene) == "");
  CHECK(error(plan, Cluster{}) == "cluster.numbers");
  Cluster no_single = clusters::a100_selene;
  no_single.flops_f32 = 0;
  CHECK(error(plan, no_single) == "cluster.numbers");
  CHECK_NOTHROW(simulate(plan, no_single, conventions::mixed_precision));
  CHECK(error(plan_data<Small>(lower_strategy(mesh(DataParallel{.ranks = 3})), small_batch), clusters::a100_selene) == "batch.divides");
}

// A plan of what the compiler has proved has no actions; its schedule is asked again.
TEST_CASE("simulate_takes_plans_of_the_compiler") {
  using Static = Plan<Small, mesh(DataParallel{.ranks = 2}, Pipeline<schedule::Interleaved>{.stages = 2, .chunks = 2}), small_batch>;
  const Simulation proved = simulate(Static::facts(), clusters::a100_selene, conventions::megatron);
  const Simulation whole = simulate(Static::data(), clusters::a100_selene, conventions::megatron);
  CHECK(proved.step_seconds == whole.step_seconds);
  CHECK(proved.memory_bytes == whole.memory_bytes);
}

TEST_CASE("simulation_as_text_has_time_volume_and_memory") {
  const PlanData plan =
      plan_at_start<Small>(mesh(DataParallel{.ranks = 2}, Pipeline<>{.stages = 2}, TensorParallel{.ranks = 8}), small_batch);
  const auto& convention = conventions::megatron;
  const std::string text = describe(simulate(plan, clusters::a100_selene, convention), plan, clusters::a100_selene, convention);
  for (const char* part :
       {"32 ranks = 2 data x 2 pipe x 8 tensor", "tokens/s", "bubble", "waiting for tensor", "groups of 8 on 1 node", "activations"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part);
}
