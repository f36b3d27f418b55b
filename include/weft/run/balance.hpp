// SPDX-License-Identifier: Apache-2.0
// Work by measured speed: ranks that are faster get more of the global batch. The loss is a sum over targets divided by their number, so
// unequal shares change who computes what and nothing else.
#pragma once

#include <cmath>
#include <vector>

#include "weft/base/config.hpp"
#include "weft/base/error.hpp"

namespace weft {

// Shares of `items` in proportion to `speeds` (items a second): whole numbers that add up to `items`, by largest remainder; the lower rank
// first among equals. Every rank computes the same from the same speeds. Errors: weft[balance.speed] for a speed that is not positive.
inline std::vector<Index> shares_by_speed(Index items, const std::vector<double>& speeds) {
  double total = 0;
  for (std::size_t r = 0; r < speeds.size(); ++r) {
    if (!(speeds[r] > 0) || !std::isfinite(speeds[r]))
      throw Error("balance.speed", "a speed is a positive number of items a second; measure a step in which every rank works (rank " +
                                       std::to_string(r) + ": " + std::to_string(speeds[r]) + ")");
    total += speeds[r];
  }
  std::vector<Index> shares;
  std::vector<double> rests;
  Index given = 0;
  for (double speed : speeds) {
    const double exact = double(items) * speed / total;
    shares.push_back(Index(exact)), rests.push_back(exact - std::floor(exact));
    given += shares.back();
  }
  for (; given < items; ++given) {
    std::size_t most = 0;
    for (std::size_t r = 1; r < rests.size(); ++r)
      if (rests[r] > rests[most]) most = r;
    ++shares[most], rests[most] = -1;
  }
  return shares;
}

// Collective: tells everybody everybody's speed, and returns the shares of the next steps. items, seconds: what this rank worked lately.
template <class Communicator>
std::vector<Index> balance(Communicator& communicator, Index global_items, Index items, double seconds) {
  const double own = items > 0 && seconds > 0 ? double(items) / seconds : 0;
  std::vector<double> speeds(std::size_t(communicator.size()));
  communicator.all_gather(speeds.data(), &own, 1);
  return shares_by_speed(global_items, speeds);
}

}  // namespace weft
