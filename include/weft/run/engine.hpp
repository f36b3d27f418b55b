// SPDX-License-Identifier: Apache-2.0
// One rank's part in training: runs the steps of a plan, whatever model and strategy it came from.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "weft/op/cpu_kernels.hpp"
#include "weft/optim/optimizer.hpp"
#include "weft/plan/refuse.hpp"
#include "weft/run/audit.hpp"
#include "weft/run/control.hpp"
#include "weft/run/initialise.hpp"
#include "weft/run/unit_store.hpp"
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
  using WalkerType = Walker<Kernels, Real, Comm>;

  // Collective: all ranks make their engine of the same plan. Parameters get the layers' own initial values.
  // Errors: weft[engine.ranks], weft[engine.plans] (plans differ between ranks), weft[engine.optimizer], weft[engine.type].
  Engine(PlanData plan, ModelCode<Real> code, Communicator communicator, OptimizerRule optimizer, EngineOptions options = {})
      : plan_(std::move(plan)),
        groups_(std::move(communicator), valid(plan_), num_calls(plan_) + 8),
        place_(plan_.strategy.place(groups_.world().rank() % int(plan_.strategy.ranks))),
        optimizer_(optimizer),
        options_(options),
        arenas_(Arenas::allocate(stage().memory, true)),
        walker_(plan_, int(place_.stage), code, arenas_),
        store_(plan_, int(place_.stage), arenas_, walker_, groups_),
        code_(code) {
    weft::require_valid(optimizer_);
    check();
    walker_.set_poison(options.poison);
    if (groups_.has(GroupKind::tensor)) walker_.set_tensor_group(&groups_[GroupKind::tensor]);
    requests_.reserve(stage().buckets.size());
    left_.assign(plan_.chunks.size(), 0);
    make_decay_ranges();
    initialise(options.seed, RuleOfLayers{});
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Draws all parameters anew. Collective where parameters are sharded.
  template <class Rule>
  void initialise(std::uint64_t seed, Rule&& rule) {
    for_each_held([&](int p, Index repetition, const ParameterSite& site, Real* data, Index first, Index elems) {
      const InitialValue initial = rule(path_of(plan_.graph, p, repetition), site.facts);
      if (site.split.dimension >= 0) std::fill_n(data, elems, Real(0));  // padding
      for_each_stretch(site, plan_.graph.tensor_ranks, place_.tensor, [&](Index own, Index whole, Index count) {
        const Index from = std::max(own, first), to = std::min(own + count, first + elems);
        if (from < to) weft::initialise(p, repetition, seed, whole + (from - own), to - from, data + (from - first), initial);
      });
    });
    refresh();
  }

  // To be called on all ranks after parameters were written from outside: whoever keeps copies gets them.
  void refresh() {
    if (plan_.strategy.shards_parameters()) store_.publish();
  }

  // One step of the global batch: this rank's micro-batches (may be none), gradients summed over ranks, update.
  // fill(MicroBatchInput<Real>&) is called once a micro-batch, in order; ranks that work on the same micro-batch (stages of a pipeline,
  // a tensor group) are given the same. rate: of this update. done, stop: told to all ranks.
  // Communication: for_each_call of plan/ledger.hpp, audited. Allocates nothing after the first call.
  template <class Fill>
  StepResult step(Index num_micros, Fill&& fill, double rate, bool done = false, bool stop = false) {
    if (num_micros > (lockstep() ? plan_.micros : plan_.joins.empty() ? num_micros : plan_.depth))
      throw Error("engine.micro_batches",
                  text_of("a layer joins micro-batches, or ranks go through them together, so the plan holds a fixed number of them; plan a "
                          "larger Batch::global (holds ",
                          plan_.micros, ", given ", num_micros, ")"));
    begin_step(num_micros);
    if (!plan_.joins.empty()) {
      run_segments(fill);
    } else if (stage().actions.empty()) {
      for (int m = 0; m < int(lockstep() ? plan_.micros : num_micros); ++m) {
        run_forward({ActionKind::forward, 0, m}, fill);
        run_backward({ActionKind::backward, 0, m}, fill);
      }
    } else {
      run_schedule(fill);
    }
    return finish_step(rate, done, stop);
  }

  // The sums of the loss over one micro-batch, without training. Where ranks work on a micro-batch together, all of them call this, and the
  // one that has the loss (of the first tensor rank) gets it; the others get zeros. Without that: no communication.
  template <class Fill>
  kernel::LossSum evaluate(Fill&& fill) {
    const MicroBatch last = run_prediction(fill);
    if (!walker_.has_loss()) return {0, 0};
    const kernel::LossSum sum = run_loss(last, nullptr);
    return place_.tensor == 0 ? sum : kernel::LossSum{0, 0};
  }

  // The model's output for one micro-batch: (rows, features), valid until the next call; null on a stage without it.
  template <class Fill>
  const Real* predict(Fill&& fill) {
    const MicroBatch last = run_prediction(fill);
    return walker_.has_loss() ? walker_.prediction(last) : nullptr;
  }

  const PlanData& plan() const { return plan_; }
  Comm& communicator() { return groups_.world(); }
  Groups<Communicator>& groups() { return groups_; }
  UnitStore<Real, WalkerType, Communicator>& store() { return store_; }
  const RankPlace& place() const { return place_; }
  const StageData& stage() const { return plan_.stages[std::size_t(place_.stage)]; }
  // Whether ranks go through a fixed number of micro-batches together; one that has fewer goes through empty ones.
  bool lockstep() const { return plan_.streams() || plan_.strategy.shards_gradients() || plan_.strategy.tensor() > 1; }
  const OptimizerRule& optimizer() const { return optimizer_; }
  EngineOptions& options() { return options_; }
  const Arenas& arenas() const { return arenas_; }
  WalkerType& walker() { return walker_; }
  Index num_updates() const { return num_updates_; }
  void set_num_updates(Index updates) { num_updates_ = updates; }
  Index num_steps() const { return num_steps_; }
  void set_num_steps(Index steps) { num_steps_ = steps; }

  Real* parameters() const { return arenas_.parameters.template as<Real>(); }
  Real* buffers() const { return arenas_.buffers.template as<Real>(); }
  Real* gradients() const { return arenas_.gradients.template as<Real>(); }  // of the last step: sums / nominal, see gradient_scale()
  double gradient_scale() const { return gradient_scale_; }                  // times this: the gradient of the mean loss, before clipping
  Real* optimizer_state(Index i) const { return arenas_.optimizer.template as<Real>() + i * state_stride(); }

  // Calls visit(path, facts, data, gradient or null) for every parameter and buffer that this rank's stage owns, ties once. Where gradients
  // or parameters are sharded they are not whole anywhere: see run/collect.hpp.
  template <class Visit>
  void for_each_parameter(Visit&& visit) const {
    for (int p = 0; p < int(plan_.graph.parameters.size()); ++p) {
      const ParameterSite& site = plan_.graph.parameters[std::size_t(p)];
      if (site.owner != p) continue;
      for (Index repetition = 0; repetition < plan_.graph.frame_of(site).count; ++repetition) {
        if (plan_.stage_of_unit(plan_.owner_unit(p, repetition)) != int(place_.stage)) continue;
        const Index first = plan_.first_elem(int(place_.stage), p, repetition);
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

  static const PlanData& valid(const PlanData& plan) {
    require_valid(plan);
    return plan;
  }
  // An upper bound of the calls that a rank makes in any group.
  static Index num_calls(const PlanData& plan) {
    Index most = 0;
    for (int s = 0; s < int(plan.stages.size()); ++s) {
      Index calls = 0;
      for_each_call(plan, s, [&](const LedgerEntry&) { ++calls; });
      most = std::max(most, calls);
    }
    return most;
  }

  Index state_stride() const {
    return plan_.training.optimizer_states == 0 ? 0 : arenas_.optimizer.bytes() / plan_.training.optimizer_states / Index(sizeof(Real));
  }
  Index join_elems(int join) const { return plan_.graph.leaves[std::size_t(plan_.joins[std::size_t(join)].leaf)].facts.join_elems; }
  bool alone() const { return plan_.strategy.ranks == 1; }
  bool has_data_group() const { return groups_.has(GroupKind::data); }
  bool buckets_overlap() const { return plan_.strategy.overlap && plan_.strategy.sharding() == Shard::none && has_data_group(); }

  // visit(parameter, repetition, site, data, first, elems): the elements first … first + elems of a parameter or buffer, which this rank
  // keeps at `data`: owned or as a guest, whole or its shard.
  template <class Visit>
  void for_each_held(Visit&& visit) {
    const int stage_number = int(place_.stage);
    for (int p = 0; p < int(plan_.graph.parameters.size()); ++p) {
      const ParameterSite& site = plan_.graph.parameters[std::size_t(p)];
      if (site.owner != p) continue;
      for (Index repetition = 0; repetition < plan_.graph.frame_of(site).count; ++repetition) {
        const Index first = plan_.first_elem(stage_number, p, repetition), elems = site.facts.elems();
        if (first < 0) continue;
        if (site.facts.kind == ParameterKind::buffer) {
          visit(p, repetition, site, buffers() + first, Index(0), elems);
        } else if (!plan_.strategy.shards_parameters()) {
          visit(p, repetition, site, parameters() + first, Index(0), elems);
        } else {
          for (const Block& block : store_.blocks()) {
            const Index own = block.first + store_.own_first(block);
            const Index from = std::max(first, own), to = std::min(first + elems, own + store_.own_elems(block));
            if (from < to && first >= block.first && first < block.first + block.elems)
              visit(p, repetition, site, store_.own_parameters(block) + (from - own), from - first, to - from);
          }
        }
      }
    }
  }

  void check() {
    if (groups_.world().size() != int(plan_.strategy.ranks))
      throw Error("engine.ranks", "the plan is for another number of ranks than there are; launch as many as the strategy says (plan " +
                                      std::to_string(plan_.strategy.ranks) + ", communicator " + std::to_string(groups_.world().size()) + ")");
    if (plan_.training.type != element_type_of<Real>)
      throw Error("engine.type", std::string("the plan is for another element type than the engine; use one of them for both (plan ") +
                                     name_of(plan_.training.type) + ", engine " + name_of(element_type_of<Real>) + ")");
    if (code_.split.ranks != plan_.strategy.tensor() || code_.split.sequence != (plan_.graph.sequence && plan_.strategy.tensor() > 1))
      throw Error("engine.tensor", text_of("the code is for another split of layers than the plan; give model_code the plan's tensor ranks and sequence (plan ",
                                           plan_.strategy.tensor(), ", code ", code_.split.ranks, ")"));
    if (plan_.training.optimizer_states != OptimizerRule::num_states)
      throw Error("engine.optimizer",
                  "the plan counts another number of optimizer states than the optimizer keeps; name the optimizer in the Recipe (plan " +
                      std::to_string(plan_.training.optimizer_states) + ", optimizer " + std::to_string(OptimizerRule::num_states) + ")");
    if (alone()) return;
    std::vector<std::int64_t> all(std::size_t(groups_.world().size()));
    const std::int64_t own = std::int64_t(fingerprint(plan_));
    groups_.world().all_gather(all.data(), &own, 1);
    for (std::size_t r = 0; r < all.size(); ++r)
      if (all[r] != all[0])
        throw Error("engine.plans",
                    "ranks have different plans: model, batch, strategy and recipe must be the same on all (rank 0 and rank " +
                        std::to_string(r) + " differ)");
  }

  // By place in the stage's arena, as if it were whole. counted_: what this rank's part of the norm is made of: of a tensor group, the first
  // rank counts what all have.
  void make_decay_ranges() {
    decayed_.clear(), counted_.clear();
    const auto add = [&](int p, Index first) {
      const ParameterSite& site = plan_.graph.parameters[std::size_t(p)];
      add_range({first, round_up(site.facts.elems(), parameter_alignment_elems),
                 optimizer_.decays(site.facts.kind == ParameterKind::weight || site.facts.kind == ParameterKind::embedding)});
    };
    for (const Block& block : store_.blocks()) {
      if (block.guest >= 0) {
        const GuestData& guest = stage().guests[std::size_t(block.guest)];
        add(guest.parameter, guest.first_elem + plan_.graph.parameters[std::size_t(guest.parameter)].offset);
        continue;
      }
      const UnitData& unit = plan_.units[std::size_t(block.unit)];
      const FrameSite& frame = plan_.graph.frames[std::size_t(unit.frame)];
      for (int l = frame.first_leaf; l < frame.first_leaf + frame.num_leaves; ++l) {
        const LeafSite& leaf = plan_.graph.leaves[std::size_t(l)];
        for (int p = leaf.first_parameter; p < leaf.first_parameter + leaf.facts.parameters.size(); ++p) {
          const ParameterSite& site = plan_.graph.parameters[std::size_t(p)];
          if (site.owner != p || site.facts.kind == ParameterKind::buffer) continue;
          add(p, unit.first_parameter_elem + site.offset);
          if (site.split.dimension < 0 && place_.tensor != 0) continue;
          const DecayRange range{unit.first_parameter_elem + site.offset, round_up(site.facts.elems(), parameter_alignment_elems), true};
          if (!counted_.empty() && counted_.back().first + counted_.back().elems == range.first)
            counted_.back().elems += range.elems;
          else
            counted_.push_back(range);
        }
      }
    }
  }
  void add_range(DecayRange range) {
    if (!decayed_.empty() && decayed_.back().decayed == range.decayed && decayed_.back().first + decayed_.back().elems == range.first)
      decayed_.back().elems += range.elems;
    else
      decayed_.push_back(range);
  }

  void begin_step(Index num_micros) {
    std::memset(arenas_.gradients.data(), 0, std::size_t(arenas_.gradients.bytes()));
    store_.clear_resident_gradients();
    std::memset(arenas_.control.data(), 0, std::size_t(arenas_.control.bytes()));
    for (std::size_t j = 0; j < plan_.joins.size(); ++j)
      for (bool backward : {false, true})
        std::memset(walker_.join_sums(j, backward), 0, std::size_t(join_elems(int(j)) + 1) * sizeof(double));
    std::fill(walker_.touched().begin(), walker_.touched().end(), char(0));
    walker_.set_stream(options_.seed, std::uint64_t(num_steps_));
    num_micros_ = num_micros;
    micros_.clear();
    micros_.reserve(std::size_t(std::max(plan_.micros, num_micros)));
    std::fill(left_.begin(), left_.end(), stage().actions.empty() ? (lockstep() ? plan_.micros : num_micros) : plan_.micros);
    requests_.clear();
    next_bucket_ = 0;
    groups_.clear_records();
  }

  template <class Fill>
  void take_input(Fill& fill, bool training) {
    MicroBatchInput<Real> micro;
    const Index m = Index(micros_.size());
    const Index slot = training ? m % stage().input_depth : 0;
    if (training && m >= num_micros_) {
      micros_.push_back({.leading = {0, plan_.batch.sequence, 0}, .input_slot = slot, .training = true});
      return;
    }
    micro.number = m, micro.input = walker_.input(slot), micro.targets = walker_.targets(slot);
    micro.leading = {plan_.batch.micro, plan_.batch.sequence, 0};
    fill(micro);
    const Leading leading = micro.leading;
    if (leading.batch < 0 || leading.sequence < 1 || leading.rows() > plan_.rows || leading.sequence > plan_.batch.sequence ||
        leading.past != 0)
      throw Error("engine.capacity", "a micro-batch is larger than the plan's; fill fewer or plan more (given " +
                                         std::to_string(leading.batch) + " x " + std::to_string(leading.sequence) + ", capacity " +
                                         std::to_string(plan_.batch.micro) + " x " + std::to_string(plan_.batch.sequence) + ")");
    micros_.push_back({.leading = leading, .first_item = micro.first_item, .input_slot = slot, .training = training});
  }
  // Micro-batch m on its way through a chunk; reads up to it where that has not been done.
  template <class Fill>
  MicroBatch micro_batch(const Action& action, Fill& fill) {
    while (Index(micros_.size()) <= action.micro) take_input(fill, true);
    return micro_batch(action.chunk, action.micro);
  }
  MicroBatch micro_batch(int chunk, Index m) const {
    MicroBatch micro = micros_[std::size_t(m)];
    micro.chunk = chunk;
    micro.slot = m % plan_.chunks[std::size_t(chunk)].depth;
    micro.message_slot = m % plan_.chunks[std::size_t(chunk)].input_depth;
    micro.gradient_slot = m % plan_.chunks[std::size_t(chunk)].gradient_depth;
    micro.weight_slot = m % plan_.chunks[std::size_t(chunk)].weight_depth;
    return micro;
  }

  kernel::LossSum run_loss(const MicroBatch& micro, Real* gradient) {
    LossCall<Real> call{micro.leading.rows(), walker_.prediction(micro), walker_.targets(micro.input_slot), 1 / plan_.nominal, gradient};
    if (plan_.divides_classes())
      call.group = {int(place_.tensor), arenas_.loss.template as<double>(), &groups_[GroupKind::tensor],
                    [](void* group, double* data, Index count, Reduction reduction) {
                      static_cast<Comm*>(group)->all_reduce(data, count, reduction);
                    }};
    code_.loss(call);
    return {call.loss, call.count};
  }
  void add_loss(const MicroBatch& micro) {
    const kernel::LossSum sum = run_loss(micro, walker_.prediction_gradient(micro));
    if (place_.tensor != 0) return;
    ControlBlock control(arenas_.control.template as<double>());
    control[ControlField::loss] += sum.loss, control[ControlField::count] += double(sum.count);
  }

  // ── without a join: one chunk after the other ──
  bool is_last_chunk(int chunk) const { return chunk + 1 == int(plan_.chunks.size()); }
  bool is_here(int chunk) const { return plan_.chunks[std::size_t(chunk)].stage == int(place_.stage); }

  template <class Fill>
  void run_forward(const Action& action, Fill& fill) {
    const MicroBatch micro = micro_batch(action, fill);
    walker_.forward(whole_, micro, [&](Index u) { store_.gather(u); });
    if (is_last_chunk(action.chunk))
      add_loss(micro);
    else if (is_here(action.chunk + 1))  // handed over, without a message
      copy_rows(micro, action.chunk + 1, walker_.chunk_output(micro), walker_.chunk_input(micro_batch(action.chunk + 1, action.micro)));
  }

  // All of backward, or one of its parts.
  template <class Fill>
  void run_backward(const Action& action, Fill& fill) {
    const MicroBatch micro = micro_batch(action, fill);
    const ChunkData& chunk = plan_.chunks[std::size_t(action.chunk)];
    const bool last = action.kind != ActionKind::backward_input && --left_[std::size_t(action.chunk)] == 0;
    const auto before = [&](Index u) {
      if (action.kind != ActionKind::backward_weight && u > chunk.first_unit) store_.gather(u - 1);
      store_.open_gradients(u);
    };
    const auto after = [&](Index u, int i) {
      if (i == 0 && plan_.strategy.shards_gradients() && action.kind != ActionKind::forward) {
        if (!plan_.is_shared(u)) sum_over_tensor(u);
        store_.scatter(u, add_gradients_);
      }
      if (last && buckets_overlap()) start_buckets(action.chunk, walker_.watermark(u, i));
      if (next_bucket_ > 0) groups_[GroupKind::data].progress();
    };
    if (action.kind != ActionKind::backward_weight) store_.gather(chunk.end_unit - 1);
    if (action.kind == ActionKind::backward_weight) return walker_.backward_weight(micro, before, after);
    if (action.kind == ActionKind::backward_input)
      walker_.backward_input(micro, before, after);
    else
      walker_.backward(whole_, micro, before, after);
    if (action.chunk > 0 && is_here(action.chunk - 1))
      copy_rows(micro, action.chunk, walker_.chunk_input_gradient(micro),
                walker_.chunk_gradient(micro_batch(action.chunk - 1, action.micro)));
  }

  void copy_rows(const MicroBatch& micro, int chunk, const Real* from, Real* to) {
    std::memcpy(to, from, std::size_t(chunk_input_rows(plan_, chunk, micro.leading.rows()) * chunk_input(plan_, chunk).elems()) * sizeof(Real));
  }

  // Messages that stand side by side in the schedule go out as one exchange.
  template <class Fill>
  void run_schedule(Fill& fill) {
    if constexpr (requires(Comm & comm) { comm.exchange({}, {}); }) {
      const std::vector<Action>& actions = stage().actions;
      for (std::size_t i = 0; i < actions.size();) {
        FixedVector<Outgoing, max_exchange_messages> sends;
        FixedVector<Incoming, max_exchange_messages> receives;
        for (; i < actions.size() && is_message(actions[i].kind); ++i) add_message(actions[i], sends, receives, fill);
        if (sends.size() + receives.size() > 0)
          groups_[GroupKind::pipe].exchange({sends.begin(), sends.end()}, {receives.begin(), receives.end()});
        if (i == actions.size()) break;
        const Action& action = actions[i++];
        if (action.kind == ActionKind::forward)
          run_forward(action, fill);
        else
          run_backward(action, fill);
      }
    } else {
      throw Error("engine.messages", "a pipeline needs a communicator that sends and receives; see CanSendReceive of comm/concept.hpp");
    }
  }
  template <class Sends, class Receives, class Fill>
  void add_message(const Action& action, Sends& sends, Receives& receives, Fill& fill) {
    const MicroBatch micro = micro_batch(action, fill);
    const bool gradient = action.kind == ActionKind::send_backward || action.kind == ActionKind::receive_backward;
    const bool is_behind = action.kind == ActionKind::send_forward || action.kind == ActionKind::receive_backward;  // concerns chunk + 1
    const int tensor_of = action.chunk + is_behind;
    const int peer = plan_.chunks[std::size_t(is_behind ? action.chunk + 1 : action.chunk - 1)].stage;
    const Index count = chunk_input_rows(plan_, tensor_of, micro.leading.rows()) * chunk_input(plan_, tensor_of).elems();
    const Index tag = message_tag(plan_, tensor_of, action.micro, gradient);
    switch (action.kind) {
      case ActionKind::send_forward: return sends.push(outgoing(walker_.chunk_output(micro), count, peer, tag));
      case ActionKind::send_backward: return sends.push(outgoing(walker_.chunk_input_gradient(micro), count, peer, tag));
      case ActionKind::receive_forward: return receives.push(incoming(walker_.chunk_input(micro), count, peer, tag));
      default: return receives.push(incoming(walker_.chunk_gradient(micro), count, peer, tag));
    }
  }

  // Forward only, through all chunks in order.
  template <class Fill>
  MicroBatch run_prediction(Fill& fill) {
    micros_.clear();
    take_input(fill, false);
    MicroBatch micro = micros_[0];
    for (int c = 0; c < int(plan_.chunks.size()); ++c) {
      if (!is_here(c)) continue;
      micro.chunk = c;
      if (c > 0 && !is_here(c - 1)) pass_message(false, plan_.chunks[std::size_t(c - 1)].stage, micro, c, walker_.chunk_input(micro));
      walker_.forward({-1, int(plan_.joins.size())}, micro, [&](Index u) { store_.gather(u); });
      if (is_last_chunk(c)) break;
      const Index elems = chunk_input_rows(plan_, c + 1, micro.leading.rows()) * chunk_input(plan_, c + 1).elems();
      MicroBatch next = micro;
      next.chunk = c + 1;
      if (is_here(c + 1))
        std::memcpy(walker_.chunk_input(next), walker_.chunk_output(micro), std::size_t(elems) * sizeof(Real));
      else
        pass_message(true, plan_.chunks[std::size_t(c + 1)].stage, micro, c + 1, const_cast<Real*>(walker_.chunk_output(micro)));
    }
    micro.chunk = int(plan_.chunks.size()) - 1;
    return micro;
  }
  void pass_message(bool sends, int peer, const MicroBatch& micro, int chunk, Real* data) {
    const Index count = chunk_input_rows(plan_, chunk, micro.leading.rows()) * chunk_input(plan_, chunk).elems();
    if constexpr (requires(Comm & comm) { comm.exchange({}, {}); }) {
      if (sends)
        groups_[GroupKind::pipe].send(static_cast<const Real*>(data), count, peer);
      else
        groups_[GroupKind::pipe].receive(data, count, peer);
    }
  }

  // ── with joins: all micro-batches through a segment, then the next ──
  template <class Fill>
  void run_segments(Fill& fill) {
    const int last = int(plan_.joins.size());
    const auto nothing = [](Index) {};
    for (int s = 0; s <= last; ++s) {
      const Segment segment{s - 1, s};
      for (Index m = 0; m < num_micros_; ++m) {
        const MicroBatch micro = micro_batch(Action{ActionKind::forward, 0, int(m)}, fill);
        walker_.forward(segment, micro, nothing);
        if (s == last) {
          add_loss(micro);
          run_segment_backward(segment, micro, m + 1 == num_micros_);
        } else {
          walker_.join_sums(std::size_t(s), false)[join_elems(s)] += double(micro.leading.rows());
        }
      }
      if (s == last)
        finish_segment(segment);
      else
        meet(s, false);
    }
    for (int s = last - 1; s >= 0; --s) {
      meet(s, true);
      const Segment segment{s - 1, s};
      for (Index m = 0; m < num_micros_; ++m) run_segment_backward(segment, micro_batch(0, m), m + 1 == num_micros_);
      finish_segment(segment);
    }
  }
  void run_segment_backward(Segment segment, const MicroBatch& micro, bool last) {
    if (segment.first >= 0) walker_.join_sums(std::size_t(segment.first), true)[join_elems(segment.first)] += double(micro.leading.rows());
    walker_.backward(
        segment, micro, [](Index) {},
        [&](Index u, int i) {
          if (last && buckets_overlap()) start_buckets(0, walker_.watermark(u, i));
          if (next_bucket_ > 0) groups_[GroupKind::data].progress();
        });
  }
  // Also for a rank that had nothing to do: it takes part in everything, with zeros.
  void finish_segment(Segment segment) {
    if (segment.first < 0 || !buckets_overlap()) return;
    const JoinSite& site = plan_.joins[std::size_t(segment.first)];
    start_buckets(0, walker_.watermark(site.unit, site.op + 1));
  }
  // All micro-batches of all ranks have given their sums to a join.
  void meet(int join, bool backward) {
    double* sums = walker_.join_sums(std::size_t(join), backward);
    if (has_data_group()) groups_[GroupKind::data].all_reduce(sums, join_elems(join) + 1, Reduction::sum, join);
    if (!backward) walker_.joined(std::size_t(join), sums[join_elems(join)]);
  }

  // ── gradients, update ──
  // Starts the buckets of a chunk whose gradients are complete from an element of the arena on.
  void start_buckets(int chunk, Index complete_from) {
    const std::vector<Bucket>& buckets = stage().buckets;
    while (next_bucket_ < buckets.size() && buckets[next_bucket_].chunk == chunk && buckets[next_bucket_].first >= complete_from)
      start_bucket();
  }
  void start_bucket() {
    const Bucket& bucket = stage().buckets[next_bucket_];
    requests_.push_back(
        groups_[GroupKind::data].start_all_reduce(gradients() + bucket.first, bucket.elems, Reduction::sum, Index(next_bucket_)));
    ++next_bucket_;
  }
  void sum_gradients() {
    if (plan_.strategy.sharding() == Shard::none) {
      while (has_data_group() && next_bucket_ < stage().buckets.size()) start_bucket();
      for (auto& request : requests_) groups_[GroupKind::data].wait(request);
      requests_.clear();
      sum_rest_over_tensor();
    } else {
      sum_rest_over_tensor();
      store_.scatter_rest([](Index count, const Real* from, Real* to) { std::memcpy(to, from, std::size_t(count) * sizeof(Real)); });
    }
    for (std::size_t t = 0; t < plan_.ties.size(); ++t) {
      if (!plan_.ties[t].contains(int(place_.stage))) continue;
      for (const Block& block : store_.blocks()) {
        const bool guest = block.guest >= 0 && stage().guests[std::size_t(block.guest)].parameter == plan_.ties[t].parameter;
        if (guest || (block.guest < 0 && block.unit == plan_.ties[t].unit))
          groups_.tie(t).all_reduce(store_.own_gradients(block), store_.own_elems(block), Reduction::sum, Index(t));
      }
    }
  }
  // Gradients that are summands within the tensor group: of a unit; of all that are not divided a micro-batch at a time.
  void sum_over_tensor(Index u) {
    for (const Stretch& stretch : plan_.summed)
      if (stretch.frame == plan_.units[std::size_t(u)].frame)
        groups_[GroupKind::tensor].all_reduce(walker_.unit_gradients(u) + stretch.first, stretch.elems, Reduction::sum, u + 1);
  }
  void sum_rest_over_tensor() {
    if (plan_.summed.empty()) return;
    for (int c : stage().chunks)
      for (Index u = plan_.chunks[std::size_t(c)].first_unit; u < plan_.chunks[std::size_t(c)].end_unit; ++u)
        if (!plan_.strategy.shards_gradients() || plan_.is_shared(u)) sum_over_tensor(u);
  }
  // Of this rank's part of the gradient, so that the parts of all ranks are the whole once.
  double square_sum() const {
    if (place_.data / store_.shards() != 0 && store_.shards() > 1) return 0;  // a replica of what others count
    double sum = 0;
    const auto add = [&](Index count, const Real* data) { sum += Kernels::square_sum(count, data); };
    // Without shards, every data rank has the whole gradient and counts its part of it.
    const Index owned = stage().guests.empty() ? stage().parameter_elems : stage().guests[0].first_elem;
    const Index part = round_up(divide_up(owned, plan_.strategy.data()), parameter_alignment_elems), own = part * place_.data;
    for (const DecayRange& range : counted_) {
      if (store_.shards() == 1) {
        const Index from = std::max(range.first, own), to = std::min(range.first + range.elems, std::min(own + part, owned));
        if (from < to) add(to - from, gradients() + from);
        continue;
      }
      for (const Block& block : store_.blocks()) {
        const Index first = block.first + store_.own_first(block);
        const Index from = std::max(range.first, first), to = std::min(range.first + range.elems, first + store_.own_elems(block));
        if (from < to && block.guest < 0) add(to - from, store_.own_gradients(block) + (from - first));
      }
    }
    return sum;
  }

  StepResult finish_step(double rate, bool done, bool stop) {
    sum_gradients();
    ControlBlock control(arenas_.control.template as<double>());
    const double squares = square_sum();
    control[ControlField::square_sum] = squares;
    control[ControlField::non_finite] = std::isfinite(squares) ? 0 : 1;
    control[ControlField::done] = done, control[ControlField::stop] = stop;
    control[ControlField::idle] = num_micros_ == 0 && place_.stage == 0 && place_.tensor == 0;
    if (place_.tensor == 0) tell_touched(control);
    if (!alone()) groups_.world().all_reduce(arenas_.control.template as<double>(), plan_.control_elems, Reduction::sum);
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
    store_.publish();
    audit(plan_, int(place_.stage), groups_, [&](int m) { return micros_[std::size_t(m)].leading.rows(); });
    return result;
  }

  void update(StepResult& result) {
    UpdateStep step;
    step.rate = result.rate;
    step.gradient_scale = gradient_scale_ * (options_.clip_norm > 0 ? clip_factor(result.gradient_norm, options_.clip_norm) : 1);
    step.number = ++num_updates_;
    const auto apply = [&](const DecayRange& range) {
      if (store_.shards() == 1) return apply_rule(range, range.first, parameters() + range.first, gradients() + range.first, step);
      for (const Block& block : store_.blocks()) {  // its own part of each
        const Index own = block.first + store_.own_first(block);
        const Index from = std::max(range.first, own), to = std::min(range.first + range.elems, own + store_.own_elems(block));
        if (from < to)
          apply_rule({from, to - from, range.decayed}, store_.state_first(block) + from - own, store_.own_parameters(block) + (from - own),
                     store_.own_gradients(block) + (from - own), step);
      }
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

  void apply_rule(const DecayRange& range, Index state, Real* parameters, const Real* gradients, const UpdateStep& step) const {
    Real* states[OptimizerRule::num_states + 1]{};
    for (Index s = 0; s < OptimizerRule::num_states; ++s) states[s] = optimizer_state(s) + state;
    optimizer_.template update<typename Kernels::I>(range.elems, parameters, gradients, static_cast<Real* const*>(states),
                                                    range.decayed ? optimizer_.decay : 0.0, step);
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
    const double working = double(plan_.strategy.data()) - control[ControlField::idle];
    std::string names;
    for_each_reporting([&](Index number, int parameter, Index repetition, Index flag) {
      const ParameterSite& site = plan_.graph.parameters[std::size_t(parameter)];
      if (site.facts.kind == ParameterKind::buffer || control.touched(number) >= working) return;
      if (options_.unused == UnusedParameters::refuse) {
        names += (names.empty() ? "" : ", ") + path_of(plan_.graph, parameter, repetition) + " on " +
                 std::to_string(int(working - control.touched(number))) + " of " + std::to_string(int(working)) + " ranks" +
                 (walker_.touched()[std::size_t(flag)] ? "" : ", rank " + std::to_string(groups_.world().rank()) + " among them");
      } else if (control.touched(number) == 0 && site.owner == parameter) {
        const Index first = plan_.first_elem(int(place_.stage), parameter, repetition);
        if (first >= 0) unused_.push_back({first, round_up(site.facts.elems(), parameter_alignment_elems), false});
      }
    });
    std::sort(unused_.begin(), unused_.end(), [](const DecayRange& a, const DecayRange& b) { return a.first < b.first; });
    if (!names.empty())
      throw Error(
          "engine.unused",
          "parameters took no part in a step; remove them, or say EngineOptions::unused = allow to leave them as they are (" + names + ")");
  }

  PlanData plan_;
  Groups<Communicator> groups_;
  RankPlace place_;
  OptimizerRule optimizer_;
  EngineOptions options_;
  Arenas arenas_;
  mutable WalkerType walker_;
  UnitStore<Real, WalkerType, Communicator> store_;
  ModelCode<Real> code_;
  std::vector<DecayRange> decayed_, counted_, unused_;
  std::vector<MicroBatch> micros_;
  std::vector<Index> left_;  // by chunk: backwards that are still to come in this step
  std::vector<typename Comm::Request> requests_;
  std::size_t next_bucket_ = 0;
  Index num_micros_ = 0, num_updates_ = 0, num_steps_ = 0;
  double gradient_scale_ = 0;
  static constexpr Segment whole_{-1, 0};
  static constexpr auto add_gradients_ = [](Index count, const Real* from, Real* to) { Kernels::add(count, from, static_cast<const Real*>(to), to); };
};

}  // namespace weft
