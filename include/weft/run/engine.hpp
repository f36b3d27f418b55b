// SPDX-License-Identifier: Apache-2.0
// One rank's part in training: runs the steps of a plan, whatever model and strategy it came from.
#pragma once

#include <cmath>

#include "weft/plan/fit_world.hpp"
#include "weft/run/audit.hpp"
#include "weft/run/collect.hpp"
#include "weft/run/initialise.hpp"
#include "weft/run/micro_batch_run.hpp"
#include "weft/run/update.hpp"

namespace weft {

struct EngineOptions {
  std::uint64_t seed = 1;
  double clip_norm = 0;                                // 0: no clipping
  UnusedParameters unused = UnusedParameters::refuse;  // a parameter that took no part in a step: an error, or left as it is
  bool poison = false;                                 // for tests: memory is made NaN before it is written
};

template <class Executor, class RealType, class Communicator, Optimizer OptimizerRule>
class Engine {
 public:
  using Real = RealType;
  using State = RankState<Executor, Real, Communicator>;
  using Kernels = typename State::Kernels;

  // Collective: all ranks make their engine of the same plan. Parameters get the layers' own initial values.
  // Errors: weft[engine.ranks], weft[engine.plans] (plans differ between ranks), weft[engine.optimizer], weft[engine.type],
  // weft[engine.tensor] (the code is of another split).
  Engine(PlanData plan, ModelCode<Real> code, Communicator communicator, OptimizerRule optimizer, EngineOptions options = {})
      : optimizer_(optimizer),
        options_(options),
        state_(for_world(std::move(plan), communicator.size()), code, std::move(communicator)),
        exchange_(state_),
        run_(state_, exchange_),
        updater_(state_, optimizer_) {
    weft::require_valid(optimizer_);
    check();
    state_.walker.set_poison(options.poison);
    initialise(options.seed, RuleOfLayers{});
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Draws all parameters anew. Collective where parameters are sharded.
  template <class Rule>
  void initialise(std::uint64_t seed, Rule&& rule) {
    state_.for_each_held([&](int p, Index repetition, const ParameterSite& site, const typename State::Held& held) {
      const InitialValue initial = rule(path_of(plan().graph, p, repetition), site.facts);
      if (site.split.dimension >= 0) std::fill_n(held.data, held.elems, Real(0));  // padding
      for_each_stretch(site, plan().graph.tensor_ranks, place().tensor, [&](Index own, Index whole, Index count) {
        const Index from = std::max(own, held.first), to = std::min(own + count, held.first + held.elems);
        if (from < to) weft::initialise(p, repetition, seed, whole + (from - own), to - from, held.data + (from - held.first), initial);
      });
    });
    refresh();
  }

  // To be called on all ranks after parameters were written from outside: whoever keeps copies gets them.
  void refresh() {
    if (plan().strategy.shards_parameters()) state_.store.publish();
  }

  // One step of the global batch: this rank's micro-batches (may be none), gradients summed over ranks, update.
  // fill(MicroBatchInput<Real>&) is called once a micro-batch, in order; ranks that work on the same micro-batch (stages of a pipeline,
  // a tensor group) are given the same. rate: of this update. done, stop: told to all ranks.
  // Communication: for_each_call of plan/ledger.hpp, audited. Allocates nothing after the first call.
  // Errors: weft[engine.micro_batches], weft[engine.capacity], weft[engine.unused], weft[audit.call], weft[audit.count].
  template <class Fill>
  StepResult step(Index num_micros, Fill&& fill, double rate, bool done = false, bool stop = false) {
    if (num_micros > (state_.lockstep() ? plan().micros : plan().joins.empty() ? num_micros : plan().depth))
      throw Error(
          "engine.micro_batches",
          text_of("a layer joins micro-batches, or ranks go through them together, so the plan holds a fixed number of them; plan a "
                  "larger Batch::global (holds ",
                  plan().micros, ", given ", num_micros, ")"));
    begin_step();
    run_.run(num_micros, fill);
    exchange_.finish();
    return finish_step({rate, done, stop, num_micros == 0});
  }

  // The sums of the loss over one micro-batch, without training. Where ranks work on a micro-batch together, all of them call this, and the
  // one that has the loss (of the first tensor rank) gets it; the others get zeros. Without that: no communication.
  template <class Fill>
  kernel::LossSum evaluate(Fill&& fill) {
    const MicroBatch last = run_.run_prediction(fill);
    if (!state_.walker.has_loss()) return {0, 0};
    const kernel::LossSum sum = run_.run_loss(last, nullptr);
    return place().tensor == 0 ? sum : kernel::LossSum{0, 0};
  }

  // The model's output for one micro-batch: (rows, features), valid until the next call; null on a stage without it.
  template <class Fill>
  const Real* predict(Fill&& fill) {
    const MicroBatch last = run_.run_prediction(fill);
    return state_.walker.has_loss() ? state_.walker.prediction(last) : nullptr;
  }

  const PlanData& plan() const { return state_.plan; }
  const RankPlace& place() const { return state_.place; }
  State& state() { return state_; }
  typename State::Comm& communicator() { return state_.groups.world(); }
  const Arenas& arenas() const { return state_.arenas; }
  const OptimizerRule& optimizer() const { return optimizer_; }
  EngineOptions& options() { return options_; }
  Index num_updates() const { return num_updates_; }
  void set_num_updates(Index updates) { num_updates_ = updates; }
  Index num_steps() const { return num_steps_; }
  void set_num_steps(Index steps) { num_steps_ = steps; }

  // The rank's arenas. What they hold of the model: State::for_each_held; whole tensors: collect.
  Real* parameters() const { return state_.parameters(); }
  Real* buffers() const { return state_.buffers(); }
  Real* gradients() const { return state_.gradients(); }     // of the last step: sums / nominal, see gradient_scale()
  double gradient_scale() const { return gradient_scale_; }  // times this: the gradient of the mean loss, before clipping
  Real* optimizer_state(Index i) const { return state_.optimizer_state(i); }

  // The whole model on rank `root` (the others get an empty one), or on all ranks (-1), however it is divided. Collective, between steps.
  WholeModel<Real> collect(Collected what = Collected::values, int root = -1) {
    WholeModel<Real> model;
    for_each_collected(state_, what, gradient_scale_, root,
                       [&](const std::string& path, const ParameterFacts& facts, std::vector<Real>& data) {
                         model.tensors.push_back({path, facts, std::move(data)});
                       });
    return model;
  }
  // Every rank takes what it keeps of a model that all ranks have. Collective, between steps. Errors: weft[collect.model].
  void distribute(const WholeModel<Real>& model) { weft::distribute(state_, model); }
  // The model's tensors with all values zero: to be filled, then distributed.
  WholeModel<Real> whole_model() const { return whole_model_of(state_); }

  // Calls visit(path, facts, data, gradient or null) for every parameter and buffer that this rank's stage owns, ties once: this rank's
  // part of it in a tensor group. Only where parameters and gradients are not sharded.
  template <class Visit>
  void for_each_parameter(Visit&& visit) const {
    state_.for_each_held([&](int p, Index repetition, const ParameterSite& site, const typename State::Held& held) {
      if (plan().stage_of_unit(plan().owner_unit(p, repetition)) != state_.stage_number()) return;
      visit(path_of(plan().graph, p, repetition), site.facts, held.data, held.gradient);
    });
  }

 private:
  struct Request {
    double rate = 0;
    bool done = false, stop = false, idle = false;
  };

  // Before any communicator is split: every rank sees the same numbers, and says the same.
  static PlanData for_world(PlanData plan, int world) {
    if (plan.fault.rule == PlanRule::none && plan.strategy.ranks != Index(world))
      throw Error("engine.ranks", text_of("the plan is for another number of ranks than there are; launch as many as the strategy says (",
                                          world_text(plan.strategy, world), ")"));
    return plan;
  }

  void check() {
    const Index tensor = plan().strategy.tensor();
    if (plan().training.type != element_type_of<Real>)
      throw Error("engine.type", text_of("the plan is for another element type than the engine; use one of them for both (plan ",
                                         name_of(plan().training.type), ", engine ", name_of(element_type_of<Real>), ")"));
    const CodeSplit split = state_.code.split;
    if (split.ranks != tensor || split.sequence != (plan().graph.sequence && tensor > 1))
      throw Error("engine.tensor",
                  text_of("the code is for another split of layers than the plan; give model_code the plan's tensor ranks and "
                          "sequence (plan ",
                          tensor, ", code ", split.ranks, ")"));
    if (plan().training.optimizer_states != OptimizerRule::num_states)
      throw Error("engine.optimizer",
                  text_of("the plan counts another number of optimizer states than the optimizer keeps; name the optimizer "
                          "in the Recipe (plan ",
                          plan().training.optimizer_states, ", optimizer ", OptimizerRule::num_states, ")"));
    if (state_.is_alone()) return;
    std::vector<std::int64_t> all(std::size_t(communicator().size()));
    const std::int64_t own = std::int64_t(fingerprint(plan()));
    communicator().all_gather(all.data(), &own, 1);
    for (std::size_t r = 0; r < all.size(); ++r)
      if (all[r] != all[0])
        throw Error("engine.plans",
                    text_of("ranks have different plans: model, batch, strategy and recipe must be the same on all (rank 0 and "
                            "rank ",
                            r, " differ)"));
  }

  void begin_step() {
    exchange_.begin_step();
    std::memset(state_.arenas.control.data(), 0, std::size_t(state_.arenas.control.bytes()));
    WalkerType& walker = state_.walker;
    for (std::size_t j = 0; j < plan().joins.size(); ++j)
      for (bool backward : {false, true})
        std::memset(walker.join_sums(j, backward), 0,
                    std::size_t(plan().graph.leaves[std::size_t(plan().joins[j].leaf)].facts.join_elems + 1) * sizeof(double));
    std::fill(walker.touched().begin(), walker.touched().end(), char(0));
    walker.set_stream(options_.seed, std::uint64_t(num_steps_));
    state_.groups.clear_records();
  }

  StepResult finish_step(const Request& request) {
    ControlBlock control(state_.arenas.control.template as<double>());
    ExactSum exact_squares;
    if (plan().strategy.reproducible) exact_squares = exchange_.exact_square_sum();
    const double squares = plan().strategy.reproducible ? exact_squares.value() : exchange_.square_sum();
    control[ControlField::square_sum] = squares;
    control[ControlField::non_finite] = std::isfinite(squares) ? 0 : 1;
    const bool updates_alone = plan().strategy.updates_alone();
    if (updates_alone) {
      control.replica_count(plan(), place().data) = control[ControlField::count];
      control.replica_square_sum(plan(), place().data) = squares;
    }
    control[ControlField::done] = request.done, control[ControlField::stop] = request.stop;
    control[ControlField::idle] = request.idle && place().stage == 0 && place().tensor == 0;
    if (place().tensor == 0) updater_.tell_touched(control);
    double* exact = control.exact(plan());
    if (plan().strategy.reproducible) run_.exact_loss().store(exact), exact_squares.store(exact + ExactSum::num_limbs);
    if (!state_.is_alone()) communicator().all_reduce(state_.arenas.control.template as<double>(), plan().control_elems, Reduction::sum);
    ++num_steps_;
    if (plan().strategy.reproducible) {
      control[ControlField::loss] = ExactSum::load(exact).value();
      control[ControlField::square_sum] = ExactSum::load(exact + ExactSum::num_limbs).value();
    }

    StepResult result;
    result.count = control[ControlField::count];
    result.loss = result.count > 0 ? control[ControlField::loss] / result.count : 0;
    result.finite = control[ControlField::non_finite] == 0;
    result.num_done = Index(control[ControlField::done]), result.stop = control[ControlField::stop] > 0;
    result.rate = request.rate;
    const double own_count = updates_alone ? control.replica_count(plan(), place().data) : result.count;
    const double own_squares = updates_alone ? control.replica_square_sum(plan(), place().data) : control[ControlField::square_sum];
    gradient_scale_ = own_count > 0 ? plan().nominal / own_count : 0;
    result.gradient_norm = std::sqrt(own_squares) * gradient_scale_;
    if (result.count > 0) updater_.require_touched(control, options_.unused);
    if (result.count > 0 && result.finite) update(result);
    state_.store.publish();
    synchronise();
    audit(
        plan(), state_.stage_number(), state_.groups, [&](int m) { return run_.rows(m); }, num_updates_);
    return result;
  }

  // What the policy of the data axis says.
  void synchronise() {
    if (!state_.groups.has(GroupKind::data)) return;
    const SyncStep said = plan().strategy.sync.step(num_updates_);
    for (const SyncEntry& entry : said.entries()) {
      const bool values = entry.what == Shared::parameters;
      for (Index i = 0; i < (values ? 1 : plan().training.optimizer_states); ++i)
        state_.groups[GroupKind::data].all_reduce(values ? parameters() : optimizer_state(i), state_.stage().parameter_elems,
                                                  entry.reduction);
    }
  }

  void update(StepResult& result) {
    UpdateStep step;
    step.rate = result.rate;
    step.gradient_scale = gradient_scale_ * (options_.clip_norm > 0 ? clip_factor(result.gradient_norm, options_.clip_norm) : 1);
    step.number = ++num_updates_;
    if (gradient_scale_ > 0) updater_.apply(step);  // 0: nothing to learn from, for a replica that updates alone
    result.applied = true;
  }

  using WalkerType = typename State::WalkerType;

  OptimizerRule optimizer_;
  EngineOptions options_;
  State state_;
  GradientExchange<State> exchange_;
  MicroBatchRun<State> run_;
  Updater<State, OptimizerRule> updater_;
  Index num_updates_ = 0, num_steps_ = 0;
  double gradient_scale_ = 0;
};

}  // namespace weft
