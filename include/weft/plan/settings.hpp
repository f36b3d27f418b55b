// SPDX-License-Identifier: Apache-2.0
// What a plan is made of besides the model and the strategy.
#pragma once

#include "weft/dtype/element_type.hpp"
#include "weft/layer/loss.hpp"
#include "weft/layout/axes.hpp"
#include "weft/schedule/prove.hpp"
#include "weft/strategy/data_parallel.hpp"
#include "weft/strategy/pipeline.hpp"
#include "weft/strategy/recompute.hpp"
#include "weft/strategy/reproducible.hpp"
#include "weft/strategy/synchronisation.hpp"

namespace weft {

// The work of one step. Rows that are fewer at run time (a short last batch, a shorter sequence) need no other plan.
struct Batch {
  Index global = 1;    // sequences (or images) a step, over all ranks
  Index micro = 1;     // sequences that a rank takes through the model at once
  Index sequence = 1;  // tokens a sequence; 1 for images and plain rows
  bool operator==(const Batch&) const = default;
};

// The element type of weights, activations and gradients.
struct Fp32 {
  using Real = float;
  static constexpr ElementType type = ElementType::f32;
};
struct Fp64 {
  using Real = double;
  static constexpr ElementType type = ElementType::f64;
};

// The optimizer's part in the memory: two numbers a parameter, as Adam keeps.
struct TwoMoments {
  static constexpr Index num_states = 2;
};

// How the model is trained. Optimizer: any type with num_states; it must be the optimizer that the trainer gets.
template <class PrecisionType = Fp32, class LossType = SoftmaxCrossEntropy<>, class OptimizerType = TwoMoments>
struct Recipe {
  using Precision = PrecisionType;
  using Loss = LossType;
  using Optimizer = OptimizerType;
};

// A plan that needs more does not compile.
struct Budget {
  Index bytes_per_rank = 0;  // 0: no limit
  bool operator==(const Budget&) const = default;
};

// What an executor needs besides the model: temporary memory for the kernels of one rank.
struct ExecutorFacts {
  Index scratch_bytes = 4 * MiB;
};

// How replicas stay together, if not by summing gradients in every step.
struct SyncData {
  const char* name = "";
  int version = 0;
  bool sums_gradients = true;
  Index every = 1;
  void (*synchronise)(SyncStep&) = nullptr;

  // What is exchanged in a step; number: updates so far, its own among them.
  constexpr SyncStep step(Index number) const {
    SyncStep out(number, every);
    if (synchronise) synchronise(out);
    return out;
  }
  bool operator==(const SyncData&) const = default;
};

// The strategy, lowered. Nothing below plan/ knows another form of it.
struct StrategyData {
  Index ranks = 1;  // of the world: data · pipe · tensor
  AxisList axes{};  // in the order of the mesh; none: all ranks are data ranks
  Index bucket_bytes = 1 * MiB;
  bool overlap = true;
  Shard shard = Shard::none;
  Index shard_ranks = 0;  // data ranks that hold one copy of what is sharded; 0: all
  SyncData sync{};
  bool reproducible = false;  // the same bits for every layout
  bool sequence = false;      // of a tensor axis
  Recompute recompute = Recompute::none;
  bool fits_recompute = false;                         // more is made again as far as the budget needs it
  Index chunks_per_stage = 1;                          // of a pipeline
  Index chunks_asked = 1;                              // what the pipeline says, which its schedule may not take
  const char* schedule_name = "";                      // of a pipeline
  int schedule_version = 0;                            //
  ScheduleTable (*schedule)(ScheduleShape) = nullptr;  // what its stages do, in which order; null: no pipeline
  const ScheduleTable* table = nullptr;                // a table known at start-up only, instead of that; must live until the plan is made
  std::uint64_t table_print = 0;                       // the fingerprint of such a table
  const ProvedSchedule* proved = nullptr;              // facts that the compiler has proved: the plan is made of them, without actions
  ChunkStarts chunk_starts{};                          // the first unit of every chunk, where the user fixes them

  constexpr Index data() const { return axes.size() == 0 ? ranks : axes.extent(Role::batch); }
  constexpr Index stages() const { return axes.extent(Role::layers); }
  constexpr Index tensor() const { return axes.extent(Role::features); }
  constexpr Index shards() const { return shard == Shard::none ? 1 : shard_ranks == 0 ? data() : shard_ranks; }
  constexpr Index replicas() const { return data() / shards(); }  // of what is sharded
  constexpr Shard sharding() const { return shards() > 1 ? shard : Shard::none; }
  // Whether every data rank updates from its own gradients.
  constexpr bool updates_alone() const { return !sync.sums_gradients && data() > 1; }
  constexpr bool shards_gradients() const { return sharding() >= Shard::gradients && !reproducible; }
  constexpr bool shards_parameters() const { return sharding() == Shard::parameters; }
  constexpr RankPlace place(Index rank) const { return axes.size() == 0 ? RankPlace{.data = rank} : axes.place(rank); }
  constexpr Index rank(RankPlace place) const { return axes.size() == 0 ? place.data : axes.rank(place); }
  bool operator==(const StrategyData&) const = default;
};

// The recipe and the model's ends, lowered.
struct TrainingData {
  ElementType type = ElementType::f32;
  Index optimizer_states = 2;
  Features target{};
  Index counts_per_row = 1;
  bool divides_classes = false;  // the loss takes slices of a prediction
  const char* loss_name = "";
};

}  // namespace weft
