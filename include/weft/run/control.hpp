// SPDX-License-Identifier: Apache-2.0
// What ranks tell each other once a step besides gradients: one all-reduce of a few doubles, before anything is applied.
#pragma once

#include <cmath>

#include "weft/plan/make_plan.hpp"

namespace weft {

// Where each number stands. Behind them: for every parameter of a layer that reports what it touched, on how many ranks it took part.
enum class ControlField : int { count, loss, square_sum, non_finite, done, stop, idle, unused };
static_assert(int(ControlField::unused) + 1 == control_fields,
              "weft[control.fields]: the plan counts as many fields as the engine writes; change control_fields");

class ControlBlock {
 public:
  explicit ControlBlock(double* data) : data_(data) {}
  double& operator[](ControlField field) { return data_[int(field)]; }
  double& touched(Index i) { return data_[control_fields + i]; }
  // Of the reproducible mode: the limbs of the loss, then of the square sum.
  double* exact(const PlanData& plan) { return data_ + plan.control_elems - 2 * ExactSum::num_limbs; }
  // Of replicas that update alone, behind everything else: what `count` and `square_sum` are of each.
  double& replica_count(const PlanData& plan, Index replica) { return data_[plan.control_elems - 2 * (plan.strategy.data() - replica)]; }
  double& replica_square_sum(const PlanData& plan, Index replica) {
    return data_[plan.control_elems - 2 * (plan.strategy.data() - replica) + 1];
  }

 private:
  double* data_;
};

// What a step did.
struct StepResult {
  double loss = 0;           // mean over the targets that count, of all ranks; before the update
  double count = 0;          // targets that counted
  double gradient_norm = 0;  // global, of the mean loss, before clipping; of this replica, where replicas update alone
  double rate = 0;           // that was used
  bool applied = false;  // whether parameters were updated (of some replica): not without targets, not with a gradient that is not finite
  bool finite = true;
  Index num_done = 0;  // ranks that have run out of data
  bool stop = false;   // some rank asked to stop
};

}  // namespace weft
