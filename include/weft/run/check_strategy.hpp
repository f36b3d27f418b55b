// SPDX-License-Identifier: Apache-2.0
// Whether a strategy computes the training of one rank, in float64: the test that every axis, schedule, sharding rule and policy of a user
// has to pass. As check_gradients.hpp is for layers.
#pragma once

#include <array>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

#include "weft/plan/plan.hpp"
#include "weft/run/check_copies.hpp"
#include "weft/run/strategy_reference.hpp"

namespace weft {

struct StrategyCheck {
  // The largest |difference| / largest |number| of the same tensor (or of losses, norms) on one rank, over steps, tensors and ranks. A
  // tensor that is next to nothing (the gradient of a bias before batch norm) is held against 1/1000 of the largest number of any tensor.
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
    const auto largest_of = [](const std::vector<double>& data) {
      double largest = 1e-300;
      for (const double value : data) largest = std::max(largest, std::abs(value));
      return largest;
    };
    double least = 1e-300;
    for (const auto& tensor : whole) least = std::max(least, 1e-3 * largest_of(tensor.second));
    engine_.state().for_each_held([&](int p, Index repetition, const ParameterSite& site, const auto& held) {
      const auto [data, scale] = data_of(held);
      if (data == nullptr) return;
      const std::string path = path_of(graph, p, repetition);
      const auto known = whole.find(path);
      if (known == whole.end() || known->second.empty()) return out.see(INFINITY, what + path + ": only here" + where_am_i());
      const double largest = std::max(least, largest_of(known->second));
      double worst = 0;
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
