// SPDX-License-Identifier: Apache-2.0
// A user's own source: item i is the number i, its target −i. Reading item `bad_item` fails.
#pragma once

#include <algorithm>
#include <string>

#include <weft/base/error.hpp>
#include <weft/data/source.hpp>

namespace weft::testing {

struct Numbers {
  using Input = std::int32_t;
  Index count = 0, bad_item = -1;

  Index num_items() const { return count; }
  Index inputs_per_item() const { return 1; }
  Index targets_per_item() const { return 1; }
  Leading leading(Index items) const { return {items, 1, 0}; }
  std::string name() const { return "numbers"; }
  void read(std::uint64_t, Index, std::span<const Index> items, std::int32_t* inputs, std::int32_t* targets) const {
    for (Index item : items) {
      if (item == bad_item) throw Error("numbers.bad", "this one cannot be read");
      *inputs++ = std::int32_t(item), *targets++ = -std::int32_t(item);
    }
  }
};

// Sources that no loader takes: one without read, one whose leading extents are a number.
struct NumbersWithoutRead {
  using Input = std::int32_t;
  Index num_items() const { return 1; }
  Index inputs_per_item() const { return 1; }
  Index targets_per_item() const { return 1; }
  Leading leading(Index items) const { return {items, 1, 0}; }
  std::string name() const { return "none"; }
};
struct NumbersWithoutLeading : Numbers {
  Index leading(Index items) const { return items; }
};

}  // namespace weft::testing
