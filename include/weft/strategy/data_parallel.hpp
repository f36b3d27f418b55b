// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/layout/mesh.hpp"

namespace weft {

// What data ranks divide among them instead of each keeping all of it: nothing; optimizer states; gradients too; parameters too
// (Rajbhandari et al., arXiv 1910.02054, stages 1 to 3). Each includes the ones before.
enum class Shard : char { none, optimizer, gradients, parameters };

// Every rank works on its part of the global batch with all of the model (or of its part in a pipeline or tensor group); gradients are
// summed over the ranks. The result does not depend on `ranks` and `shard`, to rounding.
// Communication a step, for P parameters of a rank: none: P elements all-reduced in buckets, in the order in which backward makes them
// ready, started while backward goes on (`overlap`). optimizer: P reduce-scattered, P all-gathered. gradients: P reduce-scattered a
// micro-batch, P all-gathered. parameters: as gradients, and P all-gathered in forward and in backward of every micro-batch. With
// shard_ranks, these are of neighbours; what a rank then has of the gradients is all-reduced across the groups. And one control all-reduce
// of a few doubles. Requires: weft[batch.divides], weft[data.shard_ranks].
struct DataParallel {
  static constexpr const char* name = "data";
  static constexpr Role role = Role::batch;

  Index ranks = 1;
  Index bucket_bytes = 1 * MiB;  // a tensor that is larger is a bucket of its own
  bool overlap = true;           // false: all buckets after backward; the same bits
  Shard shard = Shard::none;
  Index shard_ranks = 0;  // hybrid: neighbours that divide one copy, replicated by ranks / shard_ranks such groups; 0: all ranks

  constexpr Index size() const { return ranks; }
  constexpr DataParallel with_size(Index extent) const {
    DataParallel out = *this;
    out.ranks = extent;
    return out;
  }
  bool operator==(const DataParallel&) const = default;
};

}  // namespace weft
