// SPDX-License-Identifier: Apache-2.0
// The binary tree in which sums over micro-batches are folded, whoever has them: leaf i is global micro-batch i; two neighbouring nodes of
// 2^k leaves that begin at a multiple of 2^(k+1) make one; what is left at the end is folded from the right.
#pragma once

#include "weft/base/config.hpp"

namespace weft {

// A node: leaves first … first + count.
struct FoldNode {
  Index first = 0, count = 0;
  constexpr bool joins(const FoldNode& right) const {
    return count == right.count && first + count == right.first && first % (2 * count) == 0;
  }
};

// visit(node) for the largest nodes that lie in leaves [first, end), from the left.
template <class Visit>
constexpr void for_each_node(Index first, Index end, Visit&& visit) {
  while (first < end) {
    Index count = 1;
    while (first % (2 * count) == 0 && first + 2 * count <= end) count *= 2;
    visit(FoldNode{first, count});
    first += count;
  }
}
constexpr Index num_nodes(Index first, Index end) {
  Index count = 0;
  for_each_node(first, end, [&](const FoldNode&) { ++count; });
  return count;
}

// The most nodes that a rank holds at once, and has at the end, when each of `ranks` ranks folds `micros` leaves as they come.
struct FoldSize {
  Index most = 0, last = 0;
};
constexpr FoldSize fold_size(Index ranks, Index micros) {
  FoldSize out;
  Index period = 1;  // what a rank's tree looks like repeats itself
  while (period < micros) period *= 2;
  for (Index rank = 0; rank < ranks && rank < period; ++rank) {
    const Index first = rank * micros, last = num_nodes(first, first + micros);
    out.last = last > out.last ? last : out.last;
    for (Index end = first + 1; end <= first + micros; ++end) {
      const Index nodes = num_nodes(first, end);
      out.most = nodes > out.most ? nodes : out.most;
    }
  }
  return out;
}

}  // namespace weft
