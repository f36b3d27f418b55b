// SPDX-License-Identifier: Apache-2.0
// Whether a strategy computes the training of one rank, in float64: the test that every axis, schedule, sharding rule and policy of a user
// has to pass. As check_gradients.hpp is for layers.
#pragma once

#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "weft/kernel/cpu/gemm.hpp"
#include "weft/optim/adamw.hpp"
#include "weft/plan/plan.hpp"
#include "weft/run/check_copies.hpp"
#include "weft/run/engine.hpp"
#include "weft/run/launch.hpp"

namespace weft {

struct StrategyCheckOptions {
  Index steps = 3;
  std::uint64_t seed = 1;
  double rate = 0.01;      // of AdamW, whose epsilon is large: else it moves by the sign of gradients that are next to nothing
  double clip_norm = 0.1;  // so small that it mostly clips; 0: no clipping
  LaunchOptions launch{};
};

struct StrategyCheck {
  // The largest |difference| / largest |number| of the same tensor (or of losses, norms) on one rank, over steps, tensors and ranks.
  struct Difference {
    double worst = 0;
    std::string where{};

    void see(double difference, const std::string& what) {
      if (!(difference <= worst) && worst == worst) worst = difference, where = what;
    }
  };
  Difference losses, norms, gradients, parameters, states;  // states: of the optimizer
  std::string error{};   // what a rank threw while training: also weft[audit.…], a call that the ledger does not have
  std::string copies{};  // ranks that are to hold the same bits and do not: weft[copies.differ]
  std::string memory{};  // arenas that were not used to their last byte; not looked at unless fill gives whole micro-batches
  Index num_ranks = 0;
  Index num_calls = 0;  // of all ranks in all steps, compared with the ledger

  double worst() const {
    Difference all;
    for (const Difference* each : {&losses, &norms, &gradients, &parameters, &states}) all.see(each->worst, each->where);
    return all.worst;
  }
  bool passes(double tolerance = 1e-10) const { return error.empty() && copies.empty() && memory.empty() && worst() <= tolerance; }
  // All of it, a line each.
  std::string text() const {
    std::string out = text_of(num_ranks, " ranks, ", num_calls, " calls\n");
    const auto add = [&](const char* what, const Difference& each) {
      char number[32];
      std::snprintf(number, sizeof number, "%.2g", each.worst);
      out += text_of(what, " differ by ", std::string_view(number), each.where.empty() ? "" : " at ", each.where, "\n");
    };
    add("losses", losses), add("norms", norms), add("gradients", gradients), add("parameters", parameters), add("optimizer states", states);
    for (const std::string* each : {&error, &copies, &memory})
      if (!each->empty()) out += *each + "\n";
    return out;
  }
};

namespace checking {

using Rule = AdamW;
using CheckEngine = Engine<Cpu<kernel::cpu::Builtin>, double, ThreadCommunicator, Rule>;
using Kernels = CheckEngine::Kernels;
using Tensors = std::map<std::string, std::vector<double>>;  // by path

inline Tensors tensors_of(CheckEngine& engine, Collected what) {
  Tensors out;
  for (auto& tensor : engine.collect(what).tensors) out[tensor.path] = std::move(tensor.data);
  return out;
}

// Steps of a batch of which `fill(micro, step)` gives any part by the place that it is told.
template <class Fill>
StepResult step_from(CheckEngine& engine, Index first_item, Index step, Fill& fill, const StrategyCheckOptions& options,
                     bool* whole = nullptr) {
  const Batch& batch = engine.plan().batch;
  return engine.step(
      engine.plan().micros,
      [&](MicroBatchInput<double>& micro) {
        micro.first_item = first_item + micro.number * batch.micro;
        fill(micro, step);
        if (whole) *whole &= micro.leading.rows() == engine.plan().rows;
      },
      options.rate);
}

// Replicas that know nothing of each other, each on one rank, and what a policy says done by hand. Without a policy one of them has all.
struct Reference {
  std::vector<double> losses;                      // by step
  std::vector<std::vector<double>> norms;          // by step and replica
  std::vector<std::vector<Tensors>> gradients;     // by step and replica
  std::vector<Tensors> parameters, first, second;  // at the end, by replica
  std::vector<Tensors> initial;                    // as layers and seed say
  WholeModel<double> start;                        // moved a little, so that values of zero or one hide nothing
  Index items = 0;                                 // of a replica

  template <class Fill>
  Reference(const PlanData& plan, const ModelCode<double>& code, Index replicas, const SyncData& sync, Fill& fill,
            const StrategyCheckOptions& options)
      : items(plan.batch.global) {
    std::vector<std::unique_ptr<ThreadWorld>> worlds;
    std::vector<std::unique_ptr<CheckEngine>> engines;
    for (Index r = 0; r < replicas; ++r) {
      worlds.push_back(std::make_unique<ThreadWorld>(1));
      engines.push_back(
          std::make_unique<CheckEngine>(plan, code, worlds.back()->communicator(0), rule_of(options), engine_options(options)));
      initial.push_back(tensors_of(*engines.back(), Collected::values));
    }
    start = moved(*engines[0], options.seed);
    for (auto& engine : engines) engine->distribute(start);
    for (Index step = 0; step < options.steps; ++step) {
      double loss = 0, count = 0;
      norms.emplace_back(), gradients.emplace_back();
      for (Index r = 0; r < replicas; ++r) {
        CheckEngine& engine = *engines[std::size_t(r)];
        const StepResult result = step_from(engine, r * items, step, fill, options);
        loss += result.loss * result.count, count += result.count;
        norms.back().push_back(result.gradient_norm);
        gradients.back().push_back(tensors_of(engine, Collected::gradients));
      }
      losses.push_back(count > 0 ? loss / count : 0);
      const SyncStep said = sync.step(engines[0]->num_updates());
      for (const SyncEntry& entry : said.entries())
        for (Index s = 0; s < (entry.what == Shared::parameters ? 1 : Rule::num_states); ++s) average(engines, entry.what, s);
    }
    for (auto& engine : engines) {
      parameters.push_back(tensors_of(*engine, Collected::values));
      first.push_back(tensors_of(*engine, Collected::first_state));
      second.push_back(tensors_of(*engine, Collected(int(Collected::first_state) + 1)));
    }
  }

  static Rule rule_of(const StrategyCheckOptions& options) { return Rule{.rate = options.rate, .epsilon = 1e-3}; }
  static EngineOptions engine_options(const StrategyCheckOptions& options) {
    return {.seed = options.seed, .clip_norm = options.clip_norm, .unused = UnusedParameters::allow, .poison = true};
  }

 private:
  static void average(const std::vector<std::unique_ptr<CheckEngine>>& engines, Shared what, Index state) {
    const auto data_of = [&](CheckEngine& engine) {
      return what == Shared::parameters ? engine.parameters() : engine.optimizer_state(state);
    };
    for (Index e = 0; e < engines[0]->plan().stages[0].parameter_elems; ++e) {
      double sum = 0;
      for (const auto& engine : engines) sum += data_of(*engine)[e];
      for (const auto& engine : engines) data_of(*engine)[e] = sum / double(engines.size());
    }
  }
  static WholeModel<double> moved(CheckEngine& engine, std::uint64_t seed) {
    WholeModel<double> model = engine.collect();
    const random::Stream noise{.seed = seed, .purpose = random::Purpose::initial_weights, .step = 1, .layer = 0};
    std::uint64_t drawn = 0;
    std::vector<double> moves;
    for (auto& tensor : model.tensors) {
      moves.resize(tensor.data.size());
      random::fill_normal(noise, drawn, Index(moves.size()), 0, 0.1, moves.data());
      for (std::size_t e = 0; e < moves.size() && tensor.facts.kind != ParameterKind::buffer; ++e) tensor.data[e] += moves[e];
      drawn += moves.size();
    }
    return model;
  }
};

// What one rank finds; the numbers of all ranks are put together under a mutex.
class RankCheck {
 public:
  RankCheck(CheckEngine& engine, const Reference& reference, std::size_t replica)
      : engine_(engine), reference_(reference), replica_(replica) {}

  void compare_result(const StepResult& result, std::size_t step) {
    const std::string where = text_of("step ", step, where_am_i());
    found.losses.see(relative(result.loss, reference_.losses[step]), where);
    found.norms.see(relative(result.gradient_norm, reference_.norms[step][replica_]), where);
    compare(found.gradients, reference_.gradients[step][replica_], text_of("step ", step, ", "), [&](const auto& held) {
      return std::pair{static_cast<const double*>(held.gradient), engine_.gradient_scale()};
    });
    for (const auto& comm : engine_.state().groups.all()) found.num_calls += comm.num_calls();
  }
  void compare_initial() { compare_values(reference_.initial[replica_], "initial value of "); }
  void compare_end() {
    compare_values(reference_.parameters[replica_], "");
    for (Index s = 0; s < Rule::num_states; ++s)
      compare(found.states, s == 0 ? reference_.first[replica_] : reference_.second[replica_], text_of("state ", s, " of "),
              [&](const auto& held) {
                return std::pair{held.state >= 0 ? static_cast<const double*>(engine_.optimizer_state(s) + held.state) : nullptr, 1.0};
              });
  }

  StrategyCheck found{};

 private:
  static double relative(double a, double b) { return a == b ? 0 : std::abs(a - b) / std::abs(b); }
  std::string where_am_i() const { return text_of(", rank ", engine_.communicator().rank()); }

  void compare_values(const Tensors& whole, const char* what) {
    compare(found.parameters, whole, what, [](const auto& held) { return std::pair{static_cast<const double*>(held.data), 1.0}; });
  }
  // Every element that this rank has, whoever else has it. data_of(held): where they lie, and their scale.
  template <class DataOf>
  void compare(StrategyCheck::Difference& out, const Tensors& whole, const std::string& what, DataOf&& data_of) {
    const GraphData& graph = engine_.plan().graph;
    engine_.state().for_each_held([&](int p, Index repetition, const ParameterSite& site, const auto& held) {
      const auto [data, scale] = data_of(held);
      if (data == nullptr) return;
      const std::string path = path_of(graph, p, repetition);
      const auto known = whole.find(path);
      if (known == whole.end() || known->second.empty()) return out.see(INFINITY, what + path + ": only here" + where_am_i());
      double largest = 1e-300, worst = 0;
      for (const double value : known->second) largest = std::max(largest, std::abs(value));
      for_each_stretch(site, graph.tensor_ranks, engine_.place().tensor,
                       [&, data = data, scale = scale](Index own, Index place, Index count) {
                         const Index from = std::max(own, held.first), to = std::min(own + count, held.first + held.elems);
                         for (Index i = from; i < to; ++i) {
                           const double difference = std::abs(data[i - held.first] * scale - known->second[std::size_t(place + i - own)]);
                           if (!(difference <= worst)) worst = difference;
                         }
                       });
      out.see(worst / largest, what + path + where_am_i());
    });
  }

  CheckEngine& engine_;
  const Reference& reference_;
  std::size_t replica_;
};

// By stage and arena: the most that a rank of the stage has used (slices of a tensor group may differ in size), and what there is.
struct UsedMemory {
  struct Used {
    Index measured = 0, planned = 0;
  };
  std::vector<std::array<Used, ShadowMemory::num_arenas>> stages;

  void see(Index stage, const ShadowMemory& shadow) {
    stages.resize(std::max(stages.size(), std::size_t(stage + 1)));
    for (std::size_t a = 0; a < ShadowMemory::num_arenas; ++a) {
      Used& used = stages[std::size_t(stage)][a];
      used = {std::max(used.measured, shadow.used_bytes(a)), shadow.size_of(a)};
    }
  }
  std::string text() const {
    constexpr const char* names[] = {"activations", "live", "boundaries", "workspace", "messages", "inputs"};
    std::string out;
    for (std::size_t s = 0; s < stages.size(); ++s)
      for (std::size_t a = 0; a < ShadowMemory::num_arenas; ++a)
        if (const Used& used = stages[s][a]; used.measured != used.planned)
          out +=
              text_of(out.empty() ? "memory: " : "; ", names[a], " of stage ", s, ", ", used.measured, " of ", used.planned, " bytes used");
    return out;
  }
};

}  // namespace checking

// Trains Model on the strategy's ranks, as threads, and on one rank, and compares on every rank everything that it holds. Replicas whose
// policy lets them train alone are compared with as many models of one rank, between which the policy is done by hand.
// strategy: a mesh, or what lower_strategy made of one. tensor_ranks: its tensor degree, if that is more than 1.
// fill(MicroBatchInput<double>&, step) gives the items of the step's global batch from micro.first_item on, micro.leading.batch of them,
// and is called by several threads: what it gives may depend on nothing but micro.first_item and step. Dropout and the like are compared
// too. Not looked at: heap allocations, time. Cost: the plan, and 2 · steps steps. Errors: what plan_at_start refuses, weft[code.tensor],
// and what one rank throws; what ranks throw is the result's `error`.
template <class Model, class Loss, Index... tensor_ranks, class Strategy, class Fill>
StrategyCheck check_strategy(const Strategy& strategy, const Batch& batch, Fill&& fill, const StrategyCheckOptions& options = {}) {
  using TestRecipe = Recipe<Fp64, Loss, checking::Rule>;
  const PlanData plan = plan_at_start<Model, TestRecipe>(strategy, batch);
  const Index replicas = plan.strategy.updates_alone() ? plan.strategy.data() : 1;
  const auto code = model_code_for<checking::Kernels, double, Model, Loss, tensor_ranks...>(plan.strategy.tensor(), plan.strategy.sequence);
  Batch own = batch;
  own.global /= replicas;
  const checking::Reference reference(plan_at_start<Model, TestRecipe>(mesh(), own), model_code<checking::Kernels, double, Model, Loss>(),
                                      replicas, plan.strategy.sync, fill, options);
  StrategyCheck check;
  check.num_ranks = plan.strategy.ranks;
  checking::UsedMemory memory;
  bool all_whole = true;
  std::mutex mutex;
  try {
    launch(
        int(plan.strategy.ranks),
        [&](ThreadCommunicator& comm) {
          using checking::Reference;
          checking::CheckEngine engine(plan, code, comm, Reference::rule_of(options), Reference::engine_options(options));
          checking::RankCheck rank(engine, reference, std::size_t(replicas > 1 ? engine.place().data : 0));
          rank.compare_initial();
          engine.distribute(reference.start);
          ShadowMemory shadow(engine.arenas());
          engine.state().walker.set_shadow(&shadow);
          bool whole = true;
          for (Index step = 0; step < options.steps; ++step) {
            shadow.forget();
            const Index first_item = engine.place().data * (batch.global / plan.strategy.data());
            rank.compare_result(checking::step_from(engine, first_item, step, fill, options, &whole), std::size_t(step));
          }
          engine.state().walker.set_shadow(nullptr);
          rank.compare_end();
          try {
            check_copies(engine);
          } catch (const Error& error) {  // thrown by all ranks alike
            if (error.id() != "copies.differ") throw;
            rank.found.copies = error.what();
          }
          const std::lock_guard lock(mutex);
          StrategyCheck& found = rank.found;
          check.losses.see(found.losses.worst, found.losses.where), check.norms.see(found.norms.worst, found.norms.where);
          check.gradients.see(found.gradients.worst, found.gradients.where), check.states.see(found.states.worst, found.states.where);
          check.parameters.see(found.parameters.worst, found.parameters.where);
          check.copies = found.copies, check.num_calls += found.num_calls;
          memory.see(engine.place().stage, shadow), all_whole &= whole;
        },
        options.launch);
    if (all_whole) check.memory = memory.text();
  } catch (const std::exception& error) { check.error = error.what(); }
  return check;
}

}  // namespace weft
