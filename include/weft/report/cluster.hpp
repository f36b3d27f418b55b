// SPDX-License-Identifier: Apache-2.0
// A machine as numbers: what a device computes and holds, how fast links are, and what kernels and collectives cost on it.
#pragma once

#include "weft/layout/call.hpp"

namespace weft {

struct Link {
  double bytes_per_second = 0;  // of one device, in each direction
  double latency_seconds = 0;   // of one message
};

// How near kernels come to the peaks.
struct KernelFacts {
  double product_fraction = 0.8;      // of the arithmetic peak: a matrix product's inner loop
  double memory_fraction = 0.85;      // of the memory's bandwidth: reading and writing in order
  double attention_fraction = 0.5;    // of the arithmetic peak: tiled attention
  double launch_seconds = 4e-6;       // of every kernel
  Index tile = 128;                   // a product is cut into tiles of 2·tile x tile or smaller; each is the work of one unit
  Index tile_start_k = 128;           // what starting and ending a tile costs, in steps of k
  Index units = 108;                  // that work on tiles side by side: a last round that is not full costs a whole one
  double collective_fraction = 0.15;  // of a device, that a collective takes from kernels that run beside it
};

struct Cluster {
  const char* name = "";
  Index devices_per_node = 8;
  Index device_bytes = 0;
  double memory_bytes_per_second = 0;
  double flops_f64 = 0, flops_f32 = 0, flops_f16 = 0;  // a second, of a device; f16: of bfloat16 too
  KernelFacts kernels{};
  Link inside{}, between{};  // nodes

  constexpr bool is_complete(ElementType type) const {
    return devices_per_node > 0 && memory_bytes_per_second > 0 && flops(type) > 0 && inside.bytes_per_second > 0 &&
           between.bytes_per_second > 0;
  }
  constexpr double flops(ElementType type) const {
    return type == ElementType::f64 ? flops_f64 : type == ElementType::f32 ? flops_f32 : flops_f16;
  }
};

// ── collectives ──

// Between which a call runs: how many ranks on how many nodes, and the slowest link that it has to use. A ring through the group passes
// every link at the same time, so it goes at the pace of the slowest.
struct Route {
  Index ranks = 1, nodes = 1;
  Link link{};
};

constexpr Index rounds_of_two(Index ranks) {
  Index rounds = 0;
  while ((Index(1) << rounds) < ranks) ++rounds;
  return rounds;
}

// bytes: of the whole buffer (all_reduce, broadcast, message), of all parts together (reduce_scatter, all_gather). The better of ring, and
// recursive halving and doubling (Thakur et al., 2005).
constexpr double collective_seconds(Operation operation, double bytes, const Route& route) {
  if (route.ranks <= 1) return 0;
  const double p = double(route.ranks), latency = route.link.latency_seconds, move = bytes / route.link.bytes_per_second;
  const double lg = double(rounds_of_two(route.ranks)), ring = (p - 1) * latency, tree = lg * latency;
  const double start = ring < tree ? ring : tree;
  switch (operation) {
    case Operation::all_reduce: return 2 * start + 2 * move * (p - 1) / p;
    case Operation::reduce_scatter:
    case Operation::all_gather:
    case Operation::all_to_all: return start + move * (p - 1) / p;
    case Operation::broadcast:
    case Operation::reduce: return lg * (latency + move);
    case Operation::send:
    case Operation::receive: return latency + move;
    case Operation::barrier: return 2 * lg * latency;
    case Operation::split: break;
  }
  return 0;
}

// ── kernels ──

constexpr double streaming_seconds(const Cluster& cluster, double bytes) {
  return bytes <= 0 ? 0 : cluster.kernels.launch_seconds + bytes / (cluster.memory_bytes_per_second * cluster.kernels.memory_fraction);
}

// `count` products (m, k)·(k, n) in one launch that moves `bytes` at least. The best of a few tiles, and of cutting k where tiles are few.
constexpr double product_seconds(const Cluster& cluster, ElementType type, double count, Index m, Index n, Index k, double bytes) {
  const KernelFacts& facts = cluster.kernels;
  const double unit_flops = cluster.flops(type) * facts.product_fraction / double(facts.units);
  double best = 0;
  for (int shape = 0; shape < 4; ++shape) {
    // 2t x t, t x 2t, t x t, t x t/2: the smaller a tile, the less often what it loads is used.
    const Index rows = shape == 0 ? 2 * facts.tile : facts.tile;
    const Index columns = shape == 1 ? 2 * facts.tile : shape == 3 ? facts.tile / 2 : facts.tile;
    const double fraction = shape < 2 ? 1 : shape == 2 ? 0.9 : 0.75;
    for (Index parts = 1; parts == 1 || (parts <= 8 && k / parts >= 2 * facts.tile_start_k); parts *= 2) {
      const Index tiles = Index(count) * divide_up(m, rows) * divide_up(n, columns) * parts;
      const double seconds = double(divide_up(tiles, facts.units)) * 2 * double(rows) * double(columns) *
                             (double(divide_up(k, parts)) + double(facts.tile_start_k)) / (unit_flops * fraction);
      if (best == 0 || seconds < best) best = seconds;
    }
  }
  const double moving = bytes / (cluster.memory_bytes_per_second * facts.memory_fraction);
  return facts.launch_seconds + (best > moving ? best : moving);
}

namespace clusters {

// NVIDIA's Selene in 2021: DGX A100 80GB nodes of 8, one 200 Gb/s HDR link a device. Peaks and memory are the data sheet's.
//
// product_fraction and tile_start_k are fitted: least squares over the throughputs of the 1.7 B, 18.4 B, 76.1 B and 529.6 B models in
// Narayanan et al., arXiv 2104.04473, table 1, which come out within 4 % (tests/report/published_times_test.cpp). Those rows hardly
// depend on the rest, which is what such nodes are known for: memory read in order at 85 % of its peak; rings over NVLink at 210 of
// 300 GB/s; launches of 5 µs; a collective that takes 16 of 108 multiprocessors. Links between nodes carry 17 of 25 GB/s: then what
// ZeRO-3 gathers and scatters for 175 B, 1.05 TB, takes a little less than the 66 s a step which table 2 shows at 768 and at 1536
// devices alike, where nothing else can be the limit.
inline constexpr Cluster a100_selene{.name = "A100 80GB, 8 a node, HDR",
                                     .devices_per_node = 8,
                                     .device_bytes = 80'000'000'000,
                                     .memory_bytes_per_second = 2039e9,
                                     .flops_f64 = 19.5e12,
                                     .flops_f32 = 19.5e12,
                                     .flops_f16 = 312e12,
                                     .kernels = {.product_fraction = 0.665,
                                                 .memory_fraction = 0.85,
                                                 .attention_fraction = 0.5,
                                                 .launch_seconds = 5e-6,
                                                 .tile = 128,
                                                 .tile_start_k = 112,
                                                 .units = 108,
                                                 .collective_fraction = 0.15},
                                     .inside = {210e9, 5e-6},
                                     .between = {17e9, 8e-6}};

}  // namespace clusters

}  // namespace weft
