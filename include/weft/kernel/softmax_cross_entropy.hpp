// SPDX-License-Identifier: Apache-2.0
// Softmax and cross-entropy in one: the contract, and a plain implementation to test the others against.
#pragma once

#include <cmath>

#include "weft/base/config.hpp"
#include "weft/kernel/loss_sum.hpp"

namespace weft::kernel {

// Per row that counts, with p = softmax(logits) and q = (1 - smoothing) · one-hot(target) + smoothing / classes: the loss -Σ q log p, and
// dlogits = scale · (p - q). Rows whose target is `ignored` add nothing and get 0.
// Shapes: logits, dlogits (rows, classes); targets (rows), each `ignored` or within [0, classes).
// dlogits may be logits, and null where only the loss is wanted. Finite logits of any size give finite results: the largest of the row is
// subtracted first. A logit of -infinity is a class that cannot be: p = 0, and it must not be the target (loss infinity) unless that is
// meant; with smoothing > 0 the loss is infinite. A row of nothing but -infinity, or with +infinity or NaN, gives NaN. Source: label
// smoothing as in C. Szegedy et al., arXiv 1512.00567.
template <class Real>
inline LossSum softmax_cross_entropy(Index rows, Index classes, const Real* logits, const std::int32_t* targets, std::int32_t ignored,
                                     Real smoothing, Real scale, Real* dlogits) {
  LossSum sum;
  for (Index r = 0; r < rows; ++r) {
    const Real* row = logits + r * classes;  // (V)
    if (targets[r] == ignored) {
      for (Index c = 0; dlogits && c < classes; ++c) dlogits[r * classes + c] = Real(0);
      continue;
    }
    Real most = row[0];
    for (Index c = 1; c < classes; ++c) most = row[c] > most ? row[c] : most;
    double total = 0, logits_sum = 0;
    for (Index c = 0; c < classes; ++c) {
      total += std::exp(double(row[c]) - double(most));
      logits_sum += double(row[c]) - double(most);
    }
    const double log_total = std::log(total), at_target = double(row[targets[r]]) - double(most);
    sum.loss += log_total - (1 - double(smoothing)) * at_target;
    if (smoothing != Real(0)) sum.loss -= double(smoothing) * logits_sum / double(classes);
    ++sum.count;
    for (Index c = 0; dlogits && c < classes; ++c) {
      const double probability = std::exp(double(row[c]) - double(most)) / total;
      const double wanted = (c == targets[r] ? 1 - double(smoothing) : 0.0) + double(smoothing) / double(classes);
      dlogits[r * classes + c] = Real(double(scale) * (probability - wanted));
    }
  }
  return sum;
}

}  // namespace weft::kernel
