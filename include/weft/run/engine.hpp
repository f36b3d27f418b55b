// SPDX-License-Identifier: Apache-2.0
// One rank's part in training: runs the steps of a plan, whatever model and strategy it came from.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "weft/comm/recording/recording_communicator.hpp"
#include "weft/op/cpu_kernels.hpp"
#include "weft/optim/optimizer.hpp"
#include "weft/plan/refuse.hpp"
#include "weft/run/audit.hpp"
#include "weft/run/control.hpp"
#include "weft/run/initialise.hpp"
#include "weft/run/walker.hpp"

namespace weft {

enum class UnusedParameters : char { refuse, allow };

struct EngineOptions {
  std::uint64_t seed = 1;
  double clip_norm = 0;                                // 0: no clipping
  UnusedParameters unused = UnusedParameters::refuse;  // a parameter that took no part in a step: an error, or left as it is
  bool poison = false;                                 // for tests: memory is made NaN before it is written
};

// A micro-batch to be filled: input (rows, features) and targets, tokens as int32, the rest as Real. The filler sets `leading` (up to the
// plan's capacity) and the item's place in the global batch.
template <class Real>
struct MicroBatchInput {
  Index number = 0;  // which of this rank's micro-batches in this step
  std::byte *input = nullptr, *targets = nullptr;
  Leading leading{};
  Index first_item = 0;

  std::int32_t* tokens() const { return reinterpret_cast<std::int32_t*>(input); }
  Real* values() const { return reinterpret_cast<Real*>(input); }
  std::int32_t* integer_targets() const { return reinterpret_cast<std::int32_t*>(targets); }
  Real* real_targets() const { return reinterpret_cast<Real*>(targets); }
};

template <class Executor, class RealType, class Communicator, Optimizer OptimizerRule>
class Engine {
 public:
  using Real = RealType;
  using Kernels = typename KernelsOf<Executor>::type;
  using Comm = RecordingCommunicator<Communicator>;

  // Collective: all ranks make their engine of the same plan. Parameters get the layers' own initial values.
  // Errors: weft[engine.ranks], weft[engine.plans] (plans differ between ranks), weft[engine.optimizer], weft[engine.type].
  Engine(PlanData plan, ModelCode<Real> code, Communicator communicator, OptimizerRule optimizer, EngineOptions options = {})
      : plan_(std::move(plan)),
        comm_(std::move(communicator), Index(plan_.ledger.size()) + 8),
        optimizer_(optimizer),
        options_(options),
        arenas_(Arenas::allocate(plan_.memory, true)),
        walker_(plan_, code, arenas_),
        code_(code) {
    require_valid(plan_);
    weft::require_valid(optimizer_);
    check();
    walker_.set_poison(options.poison);
    requests_.reserve(plan_.buckets.size());
    make_decay_ranges();
    initialise(options.seed, RuleOfLayers{});
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  template <class Rule>
  void initialise(std::uint64_t seed, Rule&& rule) {
    weft::initialise(plan_.graph, seed, parameters(), buffers(), rule);
  }

  // One step of the global batch: this rank's micro-batches (may be none), gradients summed over ranks, update.
  // fill(MicroBatchInput<Real>&) is called once a micro-batch, in order. rate: of this update. done, stop: told to all ranks.
  // Communication: plan().ledger, audited. Allocates nothing after the first call.
  template <class Fill>
  StepResult step(Index num_micros, Fill&& fill, double rate, bool done = false, bool stop = false) {
    if (plan_.depth < num_micros && !plan_.joins.empty())
      throw Error("engine.micro_batches",
                  "a layer joins micro-batches, so the plan holds a fixed number of them; plan a larger Batch::global (holds " +
                      std::to_string(plan_.depth) + ", given " + std::to_string(num_micros) + ")");
    begin_step();
    const int last = int(plan_.joins.size());
    for (int s = 0; s <= last; ++s) {
      const Segment segment{s - 1, s};
      for (Index m = 0; m < num_micros; ++m) {
        if (s == 0) take_input(m, fill, true);
        const MicroBatch micro = micro_batch(m, true);
        walker_.forward(segment, micro);
        if (s == last) {
          add_loss(micro, true);
          run_backward(segment, micro, m + 1 == num_micros);
        } else {
          walker_.join_sums(std::size_t(s), false)[join_elems(s)] += double(micro.leading.rows());
        }
      }
      if (s == last)
        finish_backward(segment);
      else
        meet(s, false);
    }
    for (int s = last - 1; s >= 0; --s) {
      meet(s, true);
      const Segment segment{s - 1, s};
      for (Index m = 0; m < num_micros; ++m) run_backward(segment, micro_batch(m, true), m + 1 == num_micros);
      finish_backward(segment);
    }
    return finish_step(rate, done, stop);
  }

  // The sums of the loss over one micro-batch, without training: no communication.
  template <class Fill>
  kernel::LossSum evaluate(Fill&& fill) {
    take_input(0, fill, false);
    const MicroBatch micro = micro_batch(0, false);
    walker_.forward({-1, int(plan_.joins.size())}, micro);
    return run_loss(micro, nullptr);
  }

  // The model's output for one micro-batch: (rows, features), valid until the next call.
  template <class Fill>
  const Real* predict(Fill&& fill) {
    take_input(0, fill, false);
    walker_.forward({-1, int(plan_.joins.size())}, micro_batch(0, false));
    return walker_.prediction(0);
  }

  const PlanData& plan() const { return plan_; }
  Comm& communicator() { return comm_; }
  const OptimizerRule& optimizer() const { return optimizer_; }
  EngineOptions& options() { return options_; }
  const Arenas& arenas() const { return arenas_; }
  Walker<Kernels, Real>& walker() { return walker_; }
  Index num_updates() const { return num_updates_; }
  void set_num_updates(Index updates) { num_updates_ = updates; }
  Index num_steps() const { return num_steps_; }
  void set_num_steps(Index steps) { num_steps_ = steps; }

  Real* parameters() const { return arenas_.parameters.template as<Real>(); }
  Real* buffers() const { return arenas_.buffers.template as<Real>(); }
  Real* gradients() const { return arenas_.gradients.template as<Real>(); }  // of the last step: sums / nominal, see gradient_scale()
  double gradient_scale() const { return gradient_scale_; }                  // times this: the gradient of the mean loss, before clipping
  Real* optimizer_state(Index i) const { return arenas_.optimizer.template as<Real>() + i * state_stride(); }

  // Calls visit(path, facts, data, gradient or null) for every parameter and buffer, ties once.
  template <class Visit>
  void for_each_parameter(Visit&& visit) const {
    for (int p = 0; p < int(plan_.graph.parameters.size()); ++p) {
      const ParameterSite& site = plan_.graph.parameters[std::size_t(p)];
      if (site.owner != p) continue;
      for (Index repetition = 0; repetition < plan_.graph.frame_of(site).count; ++repetition) {
        const Index first = plan_.graph.first_elem(p, repetition);
        const bool buffer = site.facts.kind == ParameterKind::buffer;
        visit(path_of(plan_.graph, p, repetition), site.facts, (buffer ? buffers() : parameters()) + first,
              buffer ? nullptr : gradients() + first);
      }
    }
  }

 private:
  struct DecayRange {
    Index first = 0, elems = 0;
    bool decayed = false;
  };

  Index state_stride() const { return arenas_.parameters.bytes() / Index(sizeof(Real)); }
  Index join_elems(int join) const { return plan_.graph.leaves[std::size_t(plan_.joins[std::size_t(join)].leaf)].facts.join_elems; }
  bool alone() const { return plan_.strategy.ranks == 1; }

  void check() {
    if (comm_.size() != int(plan_.strategy.ranks))
      throw Error("engine.ranks", "the plan is for another number of ranks than there are; launch as many as the strategy says (plan " +
                                      std::to_string(plan_.strategy.ranks) + ", communicator " + std::to_string(comm_.size()) + ")");
    if (plan_.training.type != element_type_of<Real>)
      throw Error("engine.type", std::string("the plan is for another element type than the engine; use one of them for both (plan ") +
                                     name_of(plan_.training.type) + ", engine " + name_of(element_type_of<Real>) + ")");
    if (plan_.training.optimizer_states != OptimizerRule::num_states)
      throw Error("engine.optimizer",
                  "the plan counts another number of optimizer states than the optimizer keeps; name the optimizer in the Recipe (plan " +
                      std::to_string(plan_.training.optimizer_states) + ", optimizer " + std::to_string(OptimizerRule::num_states) + ")");
    if (alone()) return;
    std::vector<std::int64_t> all(std::size_t(comm_.size()));
    const std::int64_t own = std::int64_t(fingerprint(plan_));
    comm_.all_gather(all.data(), &own, 1);
    for (std::size_t r = 0; r < all.size(); ++r)
      if (all[r] != all[0])
        throw Error("engine.plans",
                    "ranks have different plans: model, batch, strategy and recipe must be the same on all (rank 0 and rank " +
                        std::to_string(r) + " differ)");
  }

  void make_decay_ranges() {
    decayed_.clear();
    const GraphData& graph = plan_.graph;
    for (const FrameSite& frame : graph.frames)
      for (Index repetition = 0; repetition < frame.count; ++repetition)
        for (int l = frame.first_leaf; l < frame.first_leaf + frame.num_leaves; ++l) {
          const LeafSite& leaf = graph.leaves[std::size_t(l)];
          for (int p = leaf.first_parameter; p < leaf.first_parameter + leaf.facts.parameters.size(); ++p) {
            const ParameterSite& site = graph.parameters[std::size_t(p)];
            if (site.owner != p || site.facts.kind == ParameterKind::buffer) continue;
            add_range({graph.first_elem(p, repetition), round_up(site.facts.elems(), parameter_alignment_elems),
                       optimizer_.decays(site.facts.kind == ParameterKind::weight || site.facts.kind == ParameterKind::embedding)});
          }
        }
  }
  void add_range(DecayRange range) {
    if (!decayed_.empty() && decayed_.back().decayed == range.decayed && decayed_.back().first + decayed_.back().elems == range.first)
      decayed_.back().elems += range.elems;
    else
      decayed_.push_back(range);
  }

  void begin_step() {
    std::memset(arenas_.gradients.data(), 0, std::size_t(arenas_.gradients.bytes()));
    std::memset(arenas_.control.data(), 0, std::size_t(arenas_.control.bytes()));
    for (std::size_t j = 0; j < plan_.joins.size(); ++j)
      for (bool backward : {false, true})
        std::memset(walker_.join_sums(j, backward), 0, std::size_t(join_elems(int(j)) + 1) * sizeof(double));
    std::fill(walker_.touched().begin(), walker_.touched().end(), char(0));
    walker_.set_stream(options_.seed, std::uint64_t(num_steps_));
    micros_.clear();
    requests_.clear();
    next_bucket_ = 0;
    comm_.clear();
  }

  template <class Fill>
  void take_input(Index m, Fill& fill, bool training) {
    MicroBatchInput<Real> micro;
    const Index slot = training ? m % plan_.depth : 0;
    micro.number = m, micro.input = walker_.input(slot), micro.targets = walker_.targets(slot);
    micro.leading = {plan_.batch.micro, plan_.batch.sequence, 0};
    fill(micro);
    const Leading leading = micro.leading;
    if (leading.batch < 0 || leading.sequence < 1 || leading.rows() > plan_.rows || leading.sequence > plan_.batch.sequence ||
        leading.past != 0)
      throw Error("engine.capacity", "a micro-batch is larger than the plan's; fill fewer or plan more (given " +
                                         std::to_string(leading.batch) + " x " + std::to_string(leading.sequence) + ", capacity " +
                                         std::to_string(plan_.batch.micro) + " x " + std::to_string(plan_.batch.sequence) + ")");
    if (!training) micros_.clear();
    micros_.push_back({leading, micro.first_item, slot, training});
  }
  MicroBatch micro_batch(Index m, bool training) const {
    MicroBatch micro = micros_[std::size_t(m)];
    micro.training = training;
    return micro;
  }

  kernel::LossSum run_loss(const MicroBatch& micro, Real* gradient) {
    LossCall<Real> call{micro.leading.rows(), walker_.prediction(micro.slot), walker_.targets(micro.slot), 1 / plan_.nominal, gradient};
    code_.loss(call);
    return {call.loss, call.count};
  }
  void add_loss(const MicroBatch& micro, bool training) {
    const kernel::LossSum sum = run_loss(micro, training ? walker_.prediction_gradient(micro.slot) : nullptr);
    ControlBlock control(arenas_.control.template as<double>());
    control[ControlField::loss] += sum.loss, control[ControlField::count] += double(sum.count);
  }

  void run_backward(Segment segment, const MicroBatch& micro, bool last) {
    if (segment.first >= 0) walker_.join_sums(std::size_t(segment.first), true)[join_elems(segment.first)] += double(micro.leading.rows());
    walker_.backward(segment, micro, [&](Index u, int i) {
      if (alone()) return;
      if (last && plan_.strategy.overlap) start_buckets(walker_.watermark(u, i));
      if (next_bucket_ > 0) comm_.progress();
    });
  }
  void start_buckets(Index complete_from) {
    for (; next_bucket_ < plan_.buckets.size() && plan_.buckets[next_bucket_].first >= complete_from; ++next_bucket_) {
      const Bucket& bucket = plan_.buckets[next_bucket_];
      requests_.push_back(comm_.start_all_reduce(gradients() + bucket.first, bucket.elems, Reduction::sum, Index(next_bucket_)));
    }
  }
  // Also for a rank that had nothing to do: it takes part in everything, with zeros.
  void finish_backward(Segment segment) {
    if (alone()) return;
    if (segment.first < 0)
      start_buckets(0);
    else if (plan_.strategy.overlap) {
      const JoinSite& site = plan_.joins[std::size_t(segment.first)];
      start_buckets(walker_.watermark(site.unit, site.op + 1));
    }
  }
  // All micro-batches of all ranks have given their sums to a join.
  void meet(int join, bool backward) {
    double* sums = walker_.join_sums(std::size_t(join), backward);
    if (!alone()) comm_.all_reduce(sums, join_elems(join) + 1, Reduction::sum, join);
    if (!backward) walker_.joined(std::size_t(join), sums[join_elems(join)]);
  }

  StepResult finish_step(double rate, bool done, bool stop) {
    for (auto& request : requests_) comm_.wait(request);
    requests_.clear();
    ControlBlock control(arenas_.control.template as<double>());
    const Index part = round_up(divide_up(plan_.graph.parameter_elems, plan_.strategy.ranks), parameter_alignment_elems);
    const Index first = std::min(part * comm_.rank(), plan_.graph.parameter_elems),
                elems = std::min(part, plan_.graph.parameter_elems - first);
    const double squares = Kernels::square_sum(elems, static_cast<const Real*>(gradients() + first));
    control[ControlField::square_sum] = squares;
    control[ControlField::non_finite] = std::isfinite(squares) ? 0 : 1;
    control[ControlField::done] = done, control[ControlField::stop] = stop, control[ControlField::idle] = micros_.empty();
    tell_touched(control);
    if (!alone()) comm_.all_reduce(arenas_.control.template as<double>(), plan_.control_elems, Reduction::sum);
    audit(plan_, comm_.rank(), comm_.records(), comm_.num_calls());
    ++num_steps_;

    StepResult result;
    result.count = control[ControlField::count];
    result.loss = result.count > 0 ? control[ControlField::loss] / result.count : 0;
    result.finite = control[ControlField::non_finite] == 0;
    result.num_done = Index(control[ControlField::done]), result.stop = control[ControlField::stop] > 0;
    result.rate = rate;
    gradient_scale_ = result.count > 0 ? plan_.nominal / result.count : 0;
    result.gradient_norm = std::sqrt(control[ControlField::square_sum]) * gradient_scale_;
    if (result.count > 0) require_touched(control);
    if (result.count > 0 && result.finite) update(result);
    return result;
  }

  void update(StepResult& result) {
    UpdateStep step;
    step.rate = result.rate;
    step.gradient_scale = gradient_scale_ * (options_.clip_norm > 0 ? clip_factor(result.gradient_norm, options_.clip_norm) : 1);
    step.number = ++num_updates_;
    const auto apply = [&](const DecayRange& range) {
      Real* states[OptimizerRule::num_states + 1]{};
      for (Index s = 0; s < OptimizerRule::num_states; ++s) states[s] = optimizer_state(s) + range.first;
      optimizer_.template update<typename Kernels::I>(range.elems, parameters() + range.first,
                                                      static_cast<const Real*>(gradients() + range.first),
                                                      static_cast<Real* const*>(states), range.decayed ? optimizer_.decay : 0.0, step);
    };
    if (unused_.empty()) {
      for (const DecayRange& range : decayed_) apply(range);
    } else {  // rare: some parameters are left exactly as they are
      for (const DecayRange& range : decayed_) {
        Index at = range.first;
        for (const DecayRange& hole : unused_) {
          if (hole.first < at || hole.first >= range.first + range.elems) continue;
          apply({at, hole.first - at, range.decayed});
          at = hole.first + hole.elems;
        }
        apply({at, range.first + range.elems - at, range.decayed});
      }
    }
    result.applied = true;
  }

  // ── parameters whose use depends on the data ──
  template <class Visit>
  void for_each_reporting(Visit&& visit) const {
    Index number = 0;
    for (int l = 0; l < int(plan_.graph.leaves.size()); ++l) {
      const LeafSite& leaf = plan_.graph.leaves[std::size_t(l)];
      if (!leaf.facts.reports_touched) continue;
      for (Index repetition = 0; repetition < plan_.graph.frames[std::size_t(leaf.frame)].count; ++repetition)
        for (int p = 0; p < leaf.facts.parameters.size(); ++p, ++number)
          visit(number, leaf.first_parameter + p, repetition, walker_.first_touched(l) + repetition * leaf.facts.parameters.size() + p);
    }
  }
  void tell_touched(ControlBlock& control) {
    for_each_reporting([&](Index number, int, Index, Index flag) { control.touched(number) = walker_.touched()[std::size_t(flag)]; });
  }
  // Errors: weft[engine.unused], on all ranks in the same step, with the names.
  void require_touched(ControlBlock& control) {
    unused_.clear();
    const double working = double(comm_.size()) - control[ControlField::idle];
    std::string names;
    for_each_reporting([&](Index number, int parameter, Index repetition, Index flag) {
      const ParameterSite& site = plan_.graph.parameters[std::size_t(parameter)];
      if (site.facts.kind == ParameterKind::buffer || control.touched(number) >= working) return;
      if (options_.unused == UnusedParameters::refuse) {
        names += (names.empty() ? "" : ", ") + path_of(plan_.graph, parameter, repetition) + " on " +
                 std::to_string(int(working - control.touched(number))) + " of " + std::to_string(int(working)) + " ranks" +
                 (walker_.touched()[std::size_t(flag)] ? "" : ", rank " + std::to_string(comm_.rank()) + " among them");
      } else if (control.touched(number) == 0 && site.owner == parameter) {
        unused_.push_back({plan_.graph.first_elem(parameter, repetition), round_up(site.facts.elems(), parameter_alignment_elems), false});
      }
    });
    std::sort(unused_.begin(), unused_.end(), [](const DecayRange& a, const DecayRange& b) { return a.first < b.first; });
    if (!names.empty())
      throw Error(
          "engine.unused",
          "parameters took no part in a step; remove them, or say EngineOptions::unused = allow to leave them as they are (" + names + ")");
  }

  PlanData plan_;
  Comm comm_;
  OptimizerRule optimizer_;
  EngineOptions options_;
  Arenas arenas_;
  mutable Walker<Kernels, Real> walker_;
  ModelCode<Real> code_;
  std::vector<DecayRange> decayed_, unused_;
  std::vector<MicroBatch> micros_;
  std::vector<typename Comm::Request> requests_;
  std::size_t next_bucket_ = 0;
  Index num_updates_ = 0, num_steps_ = 0;
  double gradient_scale_ = 0;
};

}  // namespace weft
