// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy over classes that the ranks of a group have in slices; exact, also where the classes do not divide.
#pragma once

#include <cmath>

#include "weft/base/config.hpp"
#include "weft/kernel/loss_sum.hpp"
#include "weft/layout/call.hpp"

namespace weft::kernel {

// The contract of softmax_cross_entropy for logits (rows, own), the classes rank · own … of `classes` (beyond them: padding, which takes no
// part and gets no gradient). group: rank, workspace (rows, 4) and all_reduce(double*, count, Reduction). Every rank gets the whole sum.
// Communication: the rows' largest logits (rows doubles, maximum); then Σ exp, the target's logit and Σ logits (3 · rows doubles, sum).
template <class Real, class Group>
LossSum divided_cross_entropy(Index rows, Index own, Index classes, const Real* logits, const std::int32_t* targets, std::int32_t ignored,
                              double smoothing, double scale, Real* dlogits, const Group& group) {
  const Index first = group.rank * own, left = classes - first;
  const Index width = left < 0 ? 0 : left < own ? left : own;
  double* most = group.workspace;  // (rows)
  double* sums = most + rows;      // (rows, 3)
  for (Index r = 0; r < rows; ++r) {
    most[r] = -1e300;
    for (Index c = 0; c < width; ++c) most[r] = !(double(logits[r * own + c]) <= most[r]) ? double(logits[r * own + c]) : most[r];
  }
  group.all_reduce(most, rows, Reduction::maximum);
  for (Index r = 0; r < rows; ++r) {
    double* sum = sums + 3 * r;
    sum[0] = sum[1] = sum[2] = 0;
    for (Index c = 0; c < width; ++c) {
      const double above = double(logits[r * own + c]) - most[r];
      sum[0] += std::exp(above), sum[2] += above;
    }
    const Index target = targets[r] - first;
    if (target >= 0 && target < width) sum[1] = double(logits[r * own + target]) - most[r];
  }
  group.all_reduce(sums, 3 * rows, Reduction::sum);
  LossSum out;
  for (Index r = 0; r < rows; ++r) {
    const double* sum = sums + 3 * r;
    const bool counts = targets[r] != ignored;
    if (counts) {
      ++out.count;
      out.loss += std::log(sum[0]) - (1 - smoothing) * sum[1] - smoothing * sum[2] / double(classes);
    }
    for (Index c = 0; dlogits && c < own; ++c) {
      if (!counts || c >= width) {
        dlogits[r * own + c] = 0;
        continue;
      }
      const double probability = std::exp(double(logits[r * own + c]) - most[r]) / sum[0];
      const double wanted = (first + c == targets[r] ? 1 - smoothing : 0.0) + smoothing / double(classes);
      dlogits[r * own + c] = Real(scale * (probability - wanted));
    }
  }
  return out;
}

}  // namespace weft::kernel
