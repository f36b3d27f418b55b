// SPDX-License-Identifier: Apache-2.0
// What a loader reads from: numbered items, each with inputs and targets of fixed size. A user's own data set joins by this concept.
#pragma once

#include <concepts>
#include <span>
#include <string>

#include "weft/data/batches.hpp"
#include "weft/data/order.hpp"
#include "weft/shape/features.hpp"

namespace weft::data {

//   using Input = std::int32_t (tokens) or float, double (values)
//   num_items(), inputs_per_item(), targets_per_item()
//   leading(n)                                     the leading extents of a micro-batch of n items
//   read(seed, epoch, items, inputs, targets)      inputs (n, inputs_per_item), targets (n, targets_per_item) of the items named
//   name()                                         for messages
// One thread at a time reads from an object; a copy of it, which shares the data, may be read by another thread at the same time.
template <class S>
concept ItemSource = std::copy_constructible<S> && requires(const S& source, Index number, std::uint64_t seed, std::span<const Index> items,
                                                            typename S::Input* inputs, std::int32_t* targets) {
  { source.num_items() } -> std::convertible_to<Index>;
  { source.inputs_per_item() } -> std::convertible_to<Index>;
  { source.targets_per_item() } -> std::convertible_to<Index>;
  { source.leading(number) } -> std::same_as<Leading>;
  { source.name() } -> std::convertible_to<std::string>;
  source.read(seed, number, items, inputs, targets);
};

// Reads the items at `place` and puts their numbers into `items`, which has room for them.
template <ItemSource Source>
void read_micro_batch(const Source& source, Order order, const MicroBatchPlace& place, std::span<Index> items,
                      typename Source::Input* inputs, std::int32_t* targets) {
  const std::span<Index> used = items.first(std::size_t(place.items));
  items_in_order(order, place.seed, place.epoch, source.num_items(), place.first, used);
  source.read(place.seed, place.epoch, used, inputs, targets);
}

}  // namespace weft::data
