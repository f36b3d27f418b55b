// SPDX-License-Identifier: Apache-2.0
// The meshes that a model can be trained on with so many ranks: every one is planned, those that a plan refuses or that do not fit are kept
// with the rule that they break, the others are simulated and ranked.
#pragma once

#include <cstdio>
#include <string>

#include "weft/plan/plan.hpp"
#include "weft/report/describe.hpp"
#include "weft/report/simulate.hpp"
#include "weft/schedule/interleaved.hpp"
#include "weft/schedule/zero_bubble.hpp"

namespace weft {

// A schedule that pipelines may have; any type of schedule/table.hpp.
struct ScheduleChoice {
  const char* name = "";
  int version = 0;
  Index chunks = 1;
  ScheduleTable (*table)(ScheduleShape) = nullptr;
  bool operator==(const ScheduleChoice&) const = default;
};
template <PipelineSchedule Schedule>
constexpr ScheduleChoice schedule_choice(Index chunks = 1) {
  return {Schedule::name, Schedule::version, chunks_per_stage<Schedule>(chunks), &schedule_table<Schedule>};
}

// What a search may try. Lists that are empty stand for everything that there is.
struct SearchConstraints {
  Index global = 1, sequence = 1;              // the batch
  FixedVector<Index, 8> micros{};              // sequences of a micro-batch; empty: 1, 2, 4, 8
  Index most_tensor = 0, most_stages = 0;      // ranks along an axis; 0: a node's devices, and the model's units
  FixedVector<bool, 2> sequences{};            // whether what tensor ranks do not divide by features is divided by rows
  FixedVector<Shard, 4> shards{};              // of data ranks
  FixedVector<Recompute, 3> recomputes{};      // of blocks
  FixedVector<ScheduleChoice, 8> schedules{};  // empty: 1F1B, interleaved with 2 and 4 chunks, zero bubble H1 and V
  Index bucket_bytes = 64 * MiB;               // of gradients
  Index bytes_per_rank = 0;                    // 0: the device's memory
  Convention convention{};                     // without a name: as planned
};

struct SearchCandidate {
  Index data = 1, stages = 1, tensor = 1, micro = 1;
  bool sequence = false;
  Shard shard = Shard::none;
  Recompute recompute = Recompute::none;
  ScheduleChoice schedule{};
  bool operator==(const SearchCandidate&) const = default;

  // As mesh(DataParallel, Pipeline, TensorParallel, Activations) is lowered.
  constexpr StrategyData strategy(Index bucket_bytes) const {
    StrategyData out;
    out.ranks = data * stages * tensor;
    out.axes.push(Role::batch, data), out.axes.push(Role::layers, stages), out.axes.push(Role::features, tensor);
    out.bucket_bytes = bucket_bytes, out.shard = shard, out.sequence = sequence, out.recompute = recompute;
    if (stages == 1) return out;
    out.chunks_per_stage = schedule.chunks, out.schedule = schedule.table;
    out.schedule_name = schedule.name, out.schedule_version = schedule.version;
    return out;
  }
};

struct SearchRow {
  SearchCandidate candidate{};
  PlanFault fault{};  // why it was refused; over_budget: bytes found and wanted
  double step_seconds = 0, compute_seconds = 0, bubble_seconds = 0, exposed_seconds = 0, optimizer_seconds = 0;
  double memory_bytes = 0, model_flops_per_rank = 0;
};

struct SearchResult {
  std::vector<SearchRow> ranked{};   // the fastest first; of equal ones, the one that needs less memory
  std::vector<SearchRow> refused{};  // in the order of the search
};

template <class Model, class RecipeType = Recipe<>>
class Search {
 public:
  constexpr Search(const Cluster& cluster, Index ranks, const SearchConstraints& constraints)
      : cluster_(cluster),
        ranks_(ranks),
        constraints_(constraints),
        whole_(lower<Model>(constraints.sequence)),
        training_(lower_recipe<RecipeType>(whole_)) {
    if (constraints_.micros.empty())
      for (Index micro : {1, 2, 4, 8}) constraints_.micros.push(micro);
    if (constraints_.sequences.empty()) constraints_.sequences.push(false), constraints_.sequences.push(true);
    if (constraints_.shards.empty())
      for (Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::parameters}) constraints_.shards.push(shard);
    if (constraints_.recomputes.empty())
      for (Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) constraints_.recomputes.push(recompute);
    if (constraints_.schedules.empty()) {
      constraints_.schedules.push(schedule_choice<schedule::OneForwardOneBackward>());
      for (Index chunks : {2, 4}) constraints_.schedules.push(schedule_choice<schedule::Interleaved>(chunks));
      constraints_.schedules.push(schedule_choice<schedule::ZeroBubbleH1>());
      constraints_.schedules.push(schedule_choice<schedule::ZeroBubbleV>());
    }
    if (constraints_.most_tensor == 0) constraints_.most_tensor = cluster.devices_per_node;
    if (constraints_.most_stages == 0) constraints_.most_stages = whole_.num_units;
    if (constraints_.bytes_per_rank == 0) constraints_.bytes_per_rank = cluster.device_bytes;
  }

  constexpr SearchResult run() {
    SearchCandidate c;
    for (c.tensor = 1; c.tensor <= constraints_.most_tensor; ++c.tensor)
      for (const bool sequence : constraints_.sequences) {
        c.sequence = sequence;
        if (ranks_ % c.tensor != 0 || (c.tensor == 1 && sequence != constraints_.sequences[0])) continue;
        graph_ = split_graph(whole_, c.tensor, sequence && c.tensor > 1, training_.divides_classes);
        if (c.tensor == 1) c.sequence = false;
        for (c.stages = 1; c.stages <= constraints_.most_stages; ++c.stages) {
          if (ranks_ / c.tensor % c.stages != 0) continue;
          c.data = ranks_ / c.tensor / c.stages;
          for_each_setting(c);
        }
      }
    return out_;
  }

 private:
  // Settings that make no difference to a mesh are taken once.
  constexpr void for_each_setting(SearchCandidate c) {
    for (const Index micro : constraints_.micros)
      for (const Shard shard : constraints_.shards)
        for (const Recompute recompute : constraints_.recomputes)
          for (const ScheduleChoice& schedule : constraints_.schedules) {
            if (c.data == 1 && shard != constraints_.shards[0]) continue;
            if (c.stages == 1 && !(schedule == constraints_.schedules[0])) continue;
            c.micro = micro, c.shard = c.data == 1 ? Shard::none : shard, c.recompute = recompute;
            c.schedule = c.stages == 1 ? ScheduleChoice{} : schedule;
            try_one(c);
          }
  }

  constexpr void try_one(const SearchCandidate& candidate) {
    SearchRow row{candidate};
    const Batch batch{.global = constraints_.global, .micro = candidate.micro, .sequence = constraints_.sequence};
    const PlanData plan = make_plan(graph_, candidate.strategy(constraints_.bucket_bytes), batch, training_);
    row.fault = plan.fault;
    if (row.fault.rule == PlanRule::none) simulate_one(plan, row);
    if (row.fault.rule != PlanRule::none)
      out_.refused.push_back(row);
    else
      insert(row);
  }
  constexpr void simulate_one(const PlanData& plan, SearchRow& row) const {
    const bool as_said = *constraints_.convention.name == 0;
    // What does not fit is not worth simulating.
    row.memory_bytes = as_said ? double(plan.memory.total()) : 0;
    for (int s = 0; !as_said && s < int(plan.stages.size()); ++s) {
      const double bytes = convention_memory(plan, s, constraints_.convention).total();
      row.memory_bytes = bytes > row.memory_bytes ? bytes : row.memory_bytes;
    }
    if (row.memory_bytes > double(constraints_.bytes_per_rank)) {
      row.fault = {.rule = PlanRule::over_budget, .found = Index(row.memory_bytes), .wanted = constraints_.bytes_per_rank};
      return;
    }
    const Simulation simulation = Simulator(plan, cluster_, as_said ? as_planned(plan) : constraints_.convention).run();
    row.step_seconds = simulation.step_seconds, row.compute_seconds = simulation.compute_seconds;
    row.bubble_seconds = simulation.bubble_seconds, row.exposed_seconds = simulation.exposed();
    row.optimizer_seconds = simulation.optimizer_seconds, row.model_flops_per_rank = simulation.model_flops_per_rank();
  }
  constexpr void insert(const SearchRow& row) {
    const auto before = [](const SearchRow& a, const SearchRow& b) {
      return a.step_seconds < b.step_seconds || (a.step_seconds == b.step_seconds && a.memory_bytes < b.memory_bytes);
    };
    out_.ranked.push_back(row);
    for (std::size_t i = out_.ranked.size() - 1; i > 0 && before(row, out_.ranked[i - 1]); --i)
      out_.ranked[i] = out_.ranked[i - 1], out_.ranked[i - 1] = row;
  }

  const Cluster& cluster_;
  Index ranks_;
  SearchConstraints constraints_;
  GraphData whole_{}, graph_{};
  TrainingData training_{};
  SearchResult out_{};
};

// Communication of a step, memory and legality are those of the plans; the order is that of simulate(). A small search is a constant
// expression.
template <class Model, class RecipeType = Recipe<>>
constexpr SearchResult search(const Cluster& cluster, Index ranks, const SearchConstraints& constraints) {
  return Search<Model, RecipeType>(cluster, ranks, constraints).run();
}

// "4 data x 2 pipe x 8 tensor by rows, micro 2, 1f1b, zero 1, full recompute"
inline std::string describe(const SearchCandidate& candidate) {
  const char* recomputes[] = {"", ", selective recompute", ", full recompute"};
  std::string out = text_of(candidate.data, " data x ", candidate.stages, " pipe x ", candidate.tensor, " tensor",
                            candidate.sequence ? " by rows" : "", ", micro ", candidate.micro);
  if (candidate.stages > 1) out += text_of(", ", candidate.schedule.name);
  if (candidate.stages > 1 && candidate.schedule.chunks > 1) out += text_of(" of ", candidate.schedule.chunks, " chunks");
  if (candidate.shard != Shard::none) out += text_of(", zero ", int(candidate.shard));
  return out + recomputes[int(candidate.recompute)];
}

// The fastest, and how many were refused by which rule, with an example of each.
inline std::string describe(const SearchResult& result, std::size_t rows = 10) {
  std::string out = text_of(result.ranked.size(), " meshes can be trained, ", result.refused.size(), " are refused\n");
  char line[192];
  for (std::size_t i = 0; i < rows && i < result.ranked.size(); ++i) {
    const SearchRow& row = result.ranked[i];
    std::snprintf(line, sizeof line, "%3zu. %10s %9s %6.1f TFLOP/s a rank, bubble %4.1f %%, waiting %4.1f %%  ", i + 1,
                  seconds_text(row.step_seconds).c_str(), volume_text(row.memory_bytes).c_str(), row.model_flops_per_rank / 1e12,
                  100 * row.bubble_seconds / row.step_seconds, 100 * row.exposed_seconds / row.step_seconds);
    out += line + describe(row.candidate) + "\n";
  }
  std::vector<PlanRule> known;
  for (const SearchRow& first : result.refused) {
    bool is_new = true;
    for (PlanRule rule : known) is_new &= rule != first.fault.rule;
    if (!is_new) continue;
    known.push_back(first.fault.rule);
    std::size_t count = 0;
    for (const SearchRow& row : result.refused) count += row.fault.rule == first.fault.rule;
    const std::string text = rule_text(first.fault.rule);
    out += text_of(count, " refused by ", text.substr(0, text.find(':')), ", such as ", describe(first.candidate), "\n");
  }
  return out;
}

}  // namespace weft
