// SPDX-License-Identifier: Apache-2.0
// Gradient buckets: contiguous ranges of the arena from its end to its start, which is the order in which backward completes them.
#pragma once

#include "weft/plan/plan_data.hpp"

namespace weft {

// By op: the first element, within its unit's parameters, of the gradients that are complete once backward has passed this op.
constexpr std::vector<Index> gradient_watermarks(const GraphData& graph) {
  std::vector<Index> out = filled(Index(graph.ops.size()), Index(0));
  for (const FrameSite& frame : graph.frames) {
    Index complete = frame.parameter_elems;
    for (int i = frame.num_ops; i-- > 0;) {
      const std::size_t at = std::size_t(frame.first_op + i);
      if (graph.ops[at].kind == OpKind::leaf) {
        const LeafSite& leaf = graph.leaves[std::size_t(graph.ops[at].leaf)];
        for (int p = leaf.first_parameter; p < leaf.first_parameter + leaf.facts.parameters.size(); ++p) {
          const ParameterSite& site = graph.parameters[std::size_t(p)];
          if (site.owner == p && site.facts.kind != ParameterKind::buffer && site.offset < complete) complete = site.offset;
        }
      }
      out[at] = complete;
    }
  }
  return out;
}

// A bucket is closed when the next tensor would make it larger than bucket_bytes; so its size is at most that, or one tensor. Chunks come
// in the order in which backward completes them; guests are complete at the end.
constexpr std::vector<Bucket> make_buckets(const GraphData& graph, const std::vector<UnitData>& units, const std::vector<ChunkData>& chunks,
                                           const std::vector<int>& order, const StageData& stage, Index bucket_bytes, Index real_bytes) {
  std::vector<Bucket> out;
  Bucket open{};
  Index payload = 0;  // bytes without alignment
  const auto close = [&](Index first) {
    open.elems += open.first - first, open.first = first;
    if (open.elems > 0) out.push_back(open);
    open = {first, 0, open.chunk}, payload = 0;
  };
  for (int c : order) {
    const ChunkData& chunk = chunks[std::size_t(c)];
    const UnitData& last = units[std::size_t(chunk.end_unit - 1)];
    open = {last.first_parameter_elem + last.parameter_elems, 0, c}, payload = 0;
    for (Index u = chunk.end_unit; u-- > chunk.first_unit;) {
      const UnitData& unit = units[std::size_t(u)];
      const FrameSite& frame = graph.frames[std::size_t(unit.frame)];
      for (int l = frame.num_leaves; l-- > 0;) {
        const LeafSite& leaf = graph.leaves[std::size_t(frame.first_leaf + l)];
        for (int p = leaf.first_parameter + leaf.facts.parameters.size(); p-- > leaf.first_parameter;) {
          const ParameterSite& site = graph.parameters[std::size_t(p)];
          if (site.owner != p || site.facts.kind == ParameterKind::buffer || site.facts.elems() == 0) continue;
          const Index bytes = site.facts.elems() * real_bytes;
          const Index end = unit.first_parameter_elem + site.offset + round_up(site.facts.elems(), parameter_alignment_elems);
          if (payload > 0 && payload + bytes > bucket_bytes) close(end);
          payload += bytes;
        }
      }
    }
    close(units[std::size_t(chunk.first_unit)].first_parameter_elem);
  }
  for (const GuestData& guest : stage.guests) out.push_back({guest.first_elem, guest.elems, -1});
  return out;
}

}  // namespace weft
