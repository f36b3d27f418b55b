// SPDX-License-Identifier: Apache-2.0
// What an update rule is told besides its own settings.
#pragma once

#include "weft/base/config.hpp"

namespace weft {

// One applied update. A step that is skipped (no targets, a gradient that is not finite) is none and has no number.
struct UpdateStep {
  double rate = 0;            // of this update: the rule's rate times the schedule's factor
  double gradient_scale = 1;  // what gradients are multiplied with before anything else: the divisor of the mean, and clipping
  Index number = 1;           // 1 for the first applied update
};

// Which parameters are decayed: weights (of products, convolutions and tables), or also biases and the gains and shifts of norms, as
// torch.optim does when it is given all parameters in one group.
enum class DecayOn : char { weights, all };

}  // namespace weft
