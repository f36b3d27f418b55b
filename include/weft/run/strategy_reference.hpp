// SPDX-License-Identifier: Apache-2.0
// What check_strategy.hpp holds strategies against: one rank that has the whole batch, or replicas of one rank each that know nothing of
// each other, between which what a policy says is done by hand.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weft/kernel/cpu/gemm.hpp"
#include "weft/optim/adamw.hpp"
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

// Without a policy that lets replicas train alone there is one of them, which has all.
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

}  // namespace checking

}  // namespace weft
