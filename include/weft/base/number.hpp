// SPDX-License-Identifier: Apache-2.0
// A floating-point template argument for compilers that take it only inside a class (clang before 18): Dropout<0.1>.
#pragma once

namespace weft {

struct Number {
  double value = 0;

  constexpr Number(double number) : value(number) {}  // not explicit, and just its member: nvcc spells template values like this
  bool operator==(const Number&) const = default;
};

}  // namespace weft
