// SPDX-License-Identifier: Apache-2.0
// What one row of a tensor holds. A row is a token of a sequence or an image; rows are counted at run time, features at compile time.
#pragma once

#include "weft/base/config.hpp"

namespace weft {

enum class Element : char { real, token };

struct Features {
  Index channels = 0, height = 1, width = 1;  // (C, H, W); a vector has height = width = 1
  Element element = Element::real;            // token: one int32 a row

  constexpr Index elems() const { return channels * height * width; }
  constexpr Index plane() const { return height * width; }
  constexpr bool valid() const { return elems() > 0; }
  bool operator==(const Features&) const = default;
};

inline constexpr Features token_features{1, 1, 1, Element::token};

// The leading extents of a call, up to the plan's capacity. rows = batch · sequence; `past` tokens stand before the first (generation).
struct Leading {
  Index batch = 0, sequence = 1, past = 0;
  constexpr Index rows() const { return batch * sequence; }
  bool operator==(const Leading&) const = default;
};

}  // namespace weft
