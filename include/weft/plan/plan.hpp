// SPDX-License-Identifier: Apache-2.0
// Plan<Model, strategy, batch>: a plan at compile time, checked where it is named. plan_at_start<…>: the same when sizes are known later.
#pragma once

#include "weft/graph/split_parts.hpp"
#include "weft/plan/make_plan.hpp"
#include "weft/plan/refuse.hpp"

namespace weft {

// A strategy as a mesh: Plan<Model, DataParallel{.ranks = 2}, …> is meant as a mesh of this one axis.
template <class Strategy>
constexpr auto as_mesh(const Strategy& strategy) {
  if constexpr (is_mesh<Strategy>)
    return strategy;
  else
    return mesh(strategy);
}

// A pipeline brings its schedule.
template <class Axis>
constexpr void lower_pipeline(const Axis& axis, StrategyData& out) {
  using Schedule = typename Axis::Schedule;
  Index chunks = 1;
  if constexpr (requires { axis.chunks; }) chunks = axis.chunks;
  out.chunks_asked = chunks;
  out.chunks_per_stage = axis.size() > 1 ? chunks_per_stage<Schedule>(chunks) : 1;
  out.schedule = &schedule_table<Schedule>;
  out.schedule_name = Schedule::name, out.schedule_version = Schedule::version;
  if constexpr (requires { axis.chunk_starts; }) out.chunk_starts = axis.chunk_starts;
}

// A pipeline of a table: its bytes stand for its name and version.
template <class Axis>
constexpr void lower_table(const Axis& axis, StrategyData& out) {
  out.table = axis.table, out.chunk_starts = axis.chunk_starts;
  out.schedule_name = "table";
  if (axis.table) {
    Fingerprint print;
    out.chunks_per_stage = axis.size() > 1 ? axis.table->shape.chunks_per_stage : 1;
    for (int stage : axis.table->stage_of_chunk) print.add(stage);
    for (const ActionRow& row : axis.table->rows)
      for (const Action& action : row) print.add(Index(action.kind)).add(action.chunk).add(action.micro);
    out.table_print = print.value();
  }
}

// Replicas bring their policy.
template <class Axis>
constexpr void lower_policy(const Axis& axis, StrategyData& out) {
  using Policy = typename Axis::Policy;
  static_assert(SyncPolicy<Policy>,
                "weft[sync.policy]: Replicas takes a policy with name, version, sums_gradients and synchronise(SyncStep&); "
                "see strategy/synchronisation.hpp");
  if constexpr (SyncPolicy<Policy>)
    if (axis.size() != 1) out.sync = {Policy::name, Policy::version, Policy::sums_gradients, axis.every, &Policy::synchronise};
}

// The strategy, lowered: every axis contributes what it knows. What an axis, also a user's, may have besides what makes it one:
// bucket_bytes, overlap, shard, shard_ranks (see DataParallel), sequence (TensorParallel), recompute, fit (Activations), Schedule, chunks
// and chunk_starts (Pipeline), table (TablePipeline), Policy and every (Replicas).
template <class Strategy>
constexpr StrategyData lower_strategy(const Strategy& strategy) {
  StrategyData out;
  const auto axes = as_mesh(strategy);
  out.ranks = axes.num_ranks();
  axes.for_each_axis([&]<class Axis>(const Axis& axis, int) {
    out.axes.push(Axis::role, axis.size(), Axis::name);
    if constexpr (requires { axis.bucket_bytes; }) out.bucket_bytes = axis.bucket_bytes;
    if constexpr (requires { axis.recompute; }) out.recompute = axis.recompute;
    if constexpr (requires { axis.fit; }) out.fits_recompute = axis.fit;
    if constexpr (requires { axis.reproducible; }) out.reproducible = axis.reproducible;
    if constexpr (requires { axis.sequence; }) out.sequence = axis.sequence;
    if constexpr (requires { typename Axis::Policy; }) lower_policy(axis, out);
    if constexpr (requires { axis.overlap; }) out.overlap = axis.overlap;
    if constexpr (requires { axis.shard; }) out.shard = axis.shard;
    if constexpr (requires { axis.shard_ranks; }) out.shard_ranks = axis.shard_ranks;
    if constexpr (requires { typename Axis::Schedule; }) lower_pipeline(axis, out);
    if constexpr (requires { axis.table; }) lower_table(axis, out);
  });
  return out;
}

template <class RecipeType>
constexpr TrainingData lower_recipe(const GraphData& graph) {
  using Loss = typename RecipeType::Loss;
  return {RecipeType::Precision::type, RecipeType::Optimizer::num_states,
          Loss::target(graph.output),  Loss::counts_per_row(graph.output),
          divides_classes<Loss>,       Loss::name};
}

// For a degree that does not divide: the nearest ones that all layers take, among the divisors and multiples of the number at fault.
constexpr void find_nearest_tensor(PlanFault& fault, const GraphData& whole, bool sequence, bool divides_classes) {
  constexpr int most_tries = 4;
  const auto takes = [&](Index ranks) { return split_graph(whole, ranks, sequence, divides_classes).fault.rule == GraphRule::none; };
  const auto related = [&](Index ranks) { return fault.found % ranks == 0 || ranks % fault.found == 0; };
  int tries = 0;
  for (Index ranks = fault.wanted - 1; ranks >= 1 && tries < most_tries && fault.below == 0; --ranks)
    if (related(ranks) && (ranks == 1 || (++tries, takes(ranks)))) fault.below = ranks;
  tries = 0;
  for (Index ranks = fault.wanted + 1; ranks <= 4 * fault.found && tries < most_tries && fault.above == 0; ++ranks)
    if (related(ranks) && (++tries, takes(ranks))) fault.above = ranks;
}

// The whole plan as data. Faults are in it: see require_valid.
template <class Model, class RecipeType = Recipe<>>
constexpr PlanData plan_data(const StrategyData& strategy, const Batch& batch, const Budget& budget = {}) {
  GraphData graph = lower<Model>(batch.sequence);
  const TrainingData training = lower_recipe<RecipeType>(graph);
  if (const int open = strategy.axes.num_open(); open > 0) {
    PlanData plan;
    plan.graph = graph, plan.strategy = strategy;
    plan.fault = {.rule = open > 1 ? PlanRule::open_twice : PlanRule::mesh_open, .found = open};
    return plan;
  }
  PlanData plan =
      make_plan(split_graph(graph, strategy.tensor(), strategy.sequence, training.divides_classes), strategy, batch, training, budget);
  if (plan.fault.rule == PlanRule::tensor_divides) find_nearest_tensor(plan.fault, graph, strategy.sequence, training.divides_classes);
  return plan;
}

// A plan made at start-up, from a mesh value or from what lower_strategy made of one. Errors: what Plan refuses, with the same ids.
template <class Model, class RecipeType = Recipe<>>
PlanData plan_at_start(const StrategyData& strategy, const Batch& batch, const Budget& budget = {}) {
  PlanData plan = plan_data<Model, RecipeType>(strategy, batch, budget);
  require_valid(plan);
  return plan;
}
template <class Model, class RecipeType = Recipe<>, class MeshType>
PlanData plan_at_start(const MeshType& mesh, const Batch& batch, const Budget& budget = {}) {
  return plan_at_start<Model, RecipeType>(lower_strategy(mesh), batch, budget);
}

// The shape of the schedule; no stages if the numbers make no sense, which is said elsewhere.
constexpr ScheduleShape schedule_shape(const StrategyData& strategy, const Batch& batch) {
  constexpr Index most = 1'000'000;
  const Index sequences = batch.micro < 1 || strategy.data() < 1 ? 0 : strategy.data() * batch.micro, p = strategy.stages(),
              v = strategy.chunks_per_stage;
  if (sequences < 1 || batch.global < 1 || batch.global % sequences != 0 || p < 2 || v < 1) return {};
  if (p > most || v > most || batch.global / sequences > most) return {int(most), 1, int(most)};
  return {int(p), int(v), int(batch.global / sequences)};
}

// The strategy with what the compiler proves of its schedule.
template <auto strategy, Batch batch>
inline constexpr ScheduleShape schedule_shape_of = schedule_shape(lower_strategy(strategy), batch);
template <auto strategy, Batch batch>
constexpr StrategyData proved_strategy() {
  StrategyData out = lower_strategy(strategy);
  as_mesh(strategy).for_each_axis([&]<class Axis>(const Axis&, int) {
    if constexpr (requires { typename Axis::Schedule; })
      if constexpr (schedule_shape_of<strategy, batch>.stages > 1)  // not a constant of this function: nvcc does not see those in a lambda
        out.proved = &proved_schedule<typename Axis::Schedule, schedule_shape_of<strategy, batch>>;
  });
  return out;
}

template <class Model, int leaf>
struct LeafType {
  using type = At<leaf, Leaves<Model>>;
};
template <class Model, int leaf>
requires(leaf >= Leaves<Model>::size) struct LeafType<Model, leaf> {
  using type = void;
};

template <bool>
struct Because {};

// Why a plan was refused: names every member that a program asks a plan for, so that the reason is the only error.
struct RefusedPlan {
  static constexpr Index num_ranks = 1;
  static constexpr Memory memory() { return {}; }
  static constexpr Index bytes_per_rank() { return 0; }
  static constexpr LedgerTotals ledger(int = 0) { return {}; }
  static constexpr LedgerTotals ledger(GroupKind, int = 0) { return {}; }
  static constexpr Index bytes_per_rank(const MeshSizes&) { return 0; }
  static constexpr Index num_parameters() { return 0; }
  static constexpr std::uint64_t fingerprint() { return 0; }
  static constexpr PlanData data() { return {}; }
  static constexpr PlanData facts() { return {}; }
};

template <class Model, auto strategy, Batch batch, class RecipeType, Budget budget>
struct AcceptedPlan {
  static constexpr Index num_ranks = as_mesh(strategy).num_ranks();

  static constexpr Memory memory() { return facts().memory; }
  static constexpr Index bytes_per_rank() { return facts().memory.total(); }
  static constexpr LedgerTotals ledger(int stage = 0) { return totals(facts(), stage); }
  static constexpr LedgerTotals ledger(GroupKind group, int stage = 0) { return totals(facts(), stage, group); }
  static constexpr Index num_parameters() { return lower<Model>().num_parameters(); }
  static constexpr std::uint64_t fingerprint() { return weft::fingerprint(facts()); }
  // All of it. To be called at start-up: the actions of a long schedule are too many for compilers.
  static constexpr PlanData data() {
    PlanData plan = plan_data<Model, RecipeType>(lower_strategy(strategy), batch, budget);
    if (const Index seen = facts().memory.total(); plan.fault.rule == PlanRule::none && plan.memory.total() != seen)
      plan.fault = {.rule = PlanRule::schedule_window, .found = plan.memory.total(), .wanted = seen};
    return plan;
  }
  // Without the actions of stages: of what the compiler has proved of the schedule.
  static constexpr PlanData facts() { return plan_data<Model, RecipeType>(proved_strategy<strategy, batch>(), batch, budget); }
};

// A mesh with an open axis: what can be known without its extent is checked with the smallest one.
template <class Model, class RecipeType>
constexpr PlanFault find_open_fault(StrategyData strategy, const Batch& batch) {
  if (const int open = strategy.axes.num_open(); open > 1) return {.rule = PlanRule::open_twice, .found = open};
  if (strategy.tensor() < 0) return {.rule = PlanRule::open_tensor, .found = 1};
  AxisList axes;
  for (int i = 0; i < strategy.axes.size(); ++i) {
    const AxisData& axis = strategy.axes[i];
    const Index least = axis.role == Role::batch && strategy.shard_ranks > 0 ? strategy.shard_ranks : 1;
    axes.push(axis.role, axis.extent == rest_of_world ? least : axis.extent, axis.name);
  }
  strategy.axes = axes, strategy.ranks = axes.extent(Role::batch) * axes.extent(Role::layers) * axes.extent(Role::features);
  const GraphData graph = lower<Model>(batch.sequence);
  const TrainingData training = lower_recipe<RecipeType>(graph);
  const GraphData split = split_graph(graph, strategy.tensor(), strategy.sequence, training.divides_classes);
  PlanFault fault = find_fault(split, strategy, batch, training);
  if (fault.rule == PlanRule::tensor_divides) find_nearest_tensor(fault, graph, strategy.sequence, training.divides_classes);
  return fault;
}

// Also of the types of a tensor rank's layers, which only the compiler sees (at start-up: model_code).
template <class Model, auto strategy, Batch batch, class RecipeType, Budget budget>
constexpr PlanFault find_static_fault() {
  constexpr StrategyData data = lower_strategy(strategy);
  PlanFault fault;
  if constexpr (data.axes.num_open() > 0)
    fault = find_open_fault<Model, RecipeType>(data, batch);
  else
    fault = plan_data<Model, RecipeType>(proved_strategy<strategy, batch>(), batch, budget).fault;
  constexpr CodeSplit split{data.tensor(), data.sequence && data.tensor() > 1, divides_classes<typename RecipeType::Loss>};
  if constexpr (split.ranks > 1) {
    if (fault.rule == PlanRule::none && part_fault_of<Model, split>.leaf >= 0) {
      const PartFault part = part_fault_of<Model, split>;
      return {.rule = PlanRule::tensor_part, .leaf = part.leaf, .found = part.has, .wanted = part.left};
    }
  }
  return fault;
}
template <class Model, auto strategy, Batch batch, class RecipeType, Budget budget>
inline constexpr PlanFault fault_of = find_static_fault<Model, strategy, batch, RecipeType, budget>();

enum class Verdict : char { accepted, open, refused, refused_by_layer };

constexpr Verdict verdict(PlanRule rule, bool is_open) {
  if (rule != PlanRule::none) return rule == PlanRule::layer_options ? Verdict::refused_by_layer : Verdict::refused;
  return is_open ? Verdict::open : Verdict::accepted;
}

template <class ModelType, auto strategy_value, Batch batch_value, class RecipeType = Recipe<>, Budget budget_value = Budget{}>
struct Plan;

// A plan with an open axis. What does not depend on it has been checked; the rest is with At<sizes>, which is a Plan like any other:
//   using Train = weft::Plan<Model, weft::mesh(weft::DataParallel{.ranks = weft::rest_of_world}, …), …>;
//   static_assert(Train::bytes_per_rank({.data = 8}) <= 2 * weft::GiB);
template <class Model, auto strategy, Batch batch, class RecipeType, Budget budget>
struct OpenPlan {
  template <MeshSizes sizes>
  using At = Plan<Model, as_mesh(strategy).with_sizes(sizes), batch, RecipeType, budget>;

  // With extents for the open axis. Errors, also of a constant expression: what a Plan of these extents is refused for.
  static constexpr Index bytes_per_rank(const MeshSizes& sizes) { return data_of(as_mesh(strategy).with_sizes(sizes)).memory.total(); }
  static constexpr Index num_parameters() { return lower<Model>().num_parameters(); }
  // For a world of so many ranks; the open axis gets what the others leave. Errors: as before, weft[mesh.world].
  static constexpr PlanData data(Index world) { return data_of(fit_to_world(as_mesh(strategy), world)); }

 private:
  template <class MeshType>
  static constexpr PlanData data_of(const MeshType& filled) {
    PlanData plan = plan_data<Model, RecipeType>(lower_strategy(filled), batch, budget);
    if (plan.fault.rule != PlanRule::none) require_valid(plan);
    return plan;
  }
};

template <class Model, auto strategy, Batch batch, class RecipeType, Budget budget,
          Verdict = verdict(fault_of<Model, strategy, batch, RecipeType, budget>.rule, as_mesh(strategy).is_open())>
struct CheckedPlan : AcceptedPlan<Model, strategy, batch, RecipeType, budget> {};
template <class Model, auto strategy, Batch batch, class RecipeType, Budget budget>
struct CheckedPlan<Model, strategy, batch, RecipeType, budget, Verdict::open> : OpenPlan<Model, strategy, batch, RecipeType, budget> {};
template <class Model, auto strategy, Batch batch, class RecipeType, Budget budget>
struct CheckedPlan<Model, strategy, batch, RecipeType, budget, Verdict::refused>
    : RefusedPlan,
      Because<explain<fault_of<Model, strategy, batch, RecipeType, budget>,
                      typename LeafType<Model, fault_of<Model, strategy, batch, RecipeType, budget>.leaf>::type>()> {};
template <class Model, auto strategy, Batch batch, class RecipeType, Budget budget>
struct CheckedPlan<Model, strategy, batch, RecipeType, budget, Verdict::refused_by_layer>
    : RefusedPlan, Because<LeafType<Model, fault_of<Model, strategy, batch, RecipeType, budget>.leaf>::type::explain()> {};

// How a model is trained: who works on what, what is said when, how much memory a rank needs. Everything is known to the compiler:
//   using Train = weft::Plan<Model, weft::mesh(weft::DataParallel{.ranks = 2}), weft::Batch{.global = 64, .micro = 8, .sequence = 256}>;
//   static_assert(Train::bytes_per_rank() <= 2 * weft::GiB);
// Requires: what plan/refuse.hpp lists; the first rule that is broken is the error.
template <class ModelType, auto strategy_value, Batch batch_value, class RecipeType, Budget budget_value>
struct Plan : CheckedPlan<ModelType, strategy_value, batch_value, RecipeType, budget_value> {
  using Model = ModelType;
  using Recipe = RecipeType;
  static constexpr auto strategy = as_mesh(strategy_value);
  static constexpr Batch batch = batch_value;
};

}  // namespace weft
