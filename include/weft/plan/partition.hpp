// SPDX-License-Identifier: Apache-2.0
// Cuts a row of costs into contiguous parts so that the largest part is as small as it can be.
#pragma once

#include "weft/base/constexpr_vector.hpp"

namespace weft {

// The first element of each of `parts` non-empty parts; empty if there are fewer elements than parts. Of the cuts with the smallest
// maximum, one whose parts are about equal: of equal costs, counts differ by at most one. Cost: about 60 passes over the costs, whatever
// the number of parts.
constexpr std::vector<Index> partition(const std::vector<double>& costs, Index parts) {
  const Index n = Index(costs.size());
  if (parts < 1 || n < parts) return {};
  // How few parts under a bound the elements from each on make; more than n: an element is larger than the bound.
  const auto fewest_parts = [&](double bound, std::vector<Index>& from) {
    from = filled(n + 1, n + 1);
    from[std::size_t(n)] = 0;
    double sum = 0;
    for (Index i = n, end = n; i-- > 0;) {  // the first part from i on reaches to `end`
      sum += costs[std::size_t(i)];
      for (; end > i && sum > bound; --end) sum -= costs[std::size_t(end - 1)];
      if (end > i) from[std::size_t(i)] = 1 + from[std::size_t(end)];
    }
  };
  std::vector<Index> from;
  double low = 0, high = 0, total = 0;
  for (double cost : costs) low = cost > low ? cost : low, total += cost;
  high = total * (1 + 1e-12);  // sums in another order
  for (int i = 0; i < 60 && high > low * (1 + 1e-12); ++i) {
    const double middle = low + (high - low) / 2;
    fewest_parts(middle, from);
    (from[0] <= parts ? high : low) = middle;
  }
  const double bound = high * (1 + 1e-12);
  fewest_parts(bound, from);
  std::vector<Index> starts{0};
  double left = total, sum = 0;  // of the open part and those behind it; of the open part so far
  for (Index i = 0; i < n; ++i) {
    const Index open = parts - Index(starts.size()) + 1;  // parts from the open one on
    const double cost = costs[std::size_t(i)], target = left / double(open);
    const bool may_close = i > starts.back() && open > 1 && from[std::size_t(i)] <= open - 1;
    const bool must_close = n - i <= open - 1 || sum + cost > bound;
    if (may_close && (must_close || sum + cost - target > target - sum)) left -= sum, sum = 0, starts.push_back(i);
    sum += cost;
  }
  return starts;
}

}  // namespace weft
