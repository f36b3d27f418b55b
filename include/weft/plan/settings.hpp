// SPDX-License-Identifier: Apache-2.0
// What a plan is made of besides the model and the strategy.
#pragma once

#include "weft/dtype/element_type.hpp"
#include "weft/layer/loss.hpp"

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

// The strategy, lowered. Nothing below plan/ knows another form of it.
struct StrategyData {
  Index ranks = 1;
  Index bucket_bytes = 1 * MiB;
  bool overlap = true;
  bool operator==(const StrategyData&) const = default;
};

// The recipe and the model's ends, lowered.
struct TrainingData {
  ElementType type = ElementType::f32;
  Index optimizer_states = 2;
  Features target{};
  Index counts_per_row = 1;
  const char* loss_name = "";
};

}  // namespace weft
