// SPDX-License-Identifier: Apache-2.0
// Clipping of gradients by their global norm.
#pragma once

#include <string>

#include "weft/base/error.hpp"

namespace weft {

// What gradients of this global L2 norm are multiplied with, so that it becomes at most `limit`: min(1, limit / (norm + 1e-6)), as
// torch.nn.utils.clip_grad_norm_. norm: over all distinct parameters of all ranks, of the mean loss. NaN for a norm that is NaN, so
// that nothing hides it.
constexpr double clip_factor(double norm, double limit) {
  const double factor = limit / (norm + 1e-6);
  return factor > 1 ? 1 : factor;
}

// Clipping as a setting; norm 0 means none.
struct Clip {
  double norm = 0;

  constexpr double factor(double global_norm) const { return norm > 0 ? clip_factor(global_norm, norm) : 1; }
  bool operator==(const Clip&) const = default;
};

// Errors: weft[optim.clip].
inline void require_valid(const Clip& clip) {
  if (!(clip.norm >= 0))
    throw Error("optim.clip", "the norm to clip at is positive, or 0 for no clipping (given " + std::to_string(clip.norm) + ")");
}

}  // namespace weft
