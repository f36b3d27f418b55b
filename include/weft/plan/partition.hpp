// SPDX-License-Identifier: Apache-2.0
// Cuts a row of costs into contiguous parts so that the largest part is as small as it can be.
#pragma once

#include "weft/base/constexpr_vector.hpp"

namespace weft {

// The first element of each of `parts` non-empty parts; empty if there are fewer elements than parts. Of the cuts with the smallest maximum,
// one that fills parts from the front and leaves none empty.
// Cost: about 60 passes over the costs, whatever the number of parts.
constexpr std::vector<Index> partition(const std::vector<double>& costs, Index parts) {
  const Index n = Index(costs.size());
  if (parts < 1 || n < parts) return {};
  std::vector<Index> starts;
  // Cuts under a bound, into `starts`; the largest part is written to `reached`. false: the bound is too small.
  const auto cut = [&](double bound, double& reached) {
    starts.clear();
    starts.push_back(0);
    double sum = 0;
    reached = 0;
    for (Index i = 0; i < n; ++i) {
      const bool must = n - i <= parts - Index(starts.size());  // each part that is left needs one of the elements that are left
      if (i > 0 && starts.back() != i && (must || sum + costs[std::size_t(i)] > bound)) {
        if (Index(starts.size()) == parts) return false;
        starts.push_back(i), sum = 0;
      }
      sum += costs[std::size_t(i)];
      reached = sum > reached ? sum : reached;
    }
    return reached <= bound && Index(starts.size()) == parts;
  };
  double low = 0, high = 0, reached = 0;
  for (double cost : costs) high += cost;
  high *= 1 + 1e-12;  // sums in another order
  cut(high, reached);
  high = reached;
  for (int i = 0; i < 60 && high > low * (1 + 1e-12); ++i) {
    const double middle = low + (high - low) / 2;
    if (cut(middle, reached))
      high = reached;
    else
      low = middle;
  }
  cut(high, reached);
  return starts;
}

}  // namespace weft
