// SPDX-License-Identifier: Apache-2.0
// Sums of doubles without rounding, so that they do not depend on the order, nor on who added what (after Kulisch's long accumulator).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "weft/base/config.hpp"

namespace weft {

// A fixed-point number that spans the range of double, in limbs of 32 bits; what exceeds 32 bits of a limb is carried later.
class ExactSum {
 public:
  static constexpr int num_limbs = 68;  // bits from 2^-1074 on, and room for 2^60 summands

  // Not finite: the sum is not a number from then on.
  void add(double x) {
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
    const int exponent = int(bits >> 52 & 0x7ff);
    if (exponent == 0x7ff) {
      is_finite_ = false;
      return;
    }
    const std::uint64_t fraction = bits & ((std::uint64_t(1) << 52) - 1);
    const std::uint64_t mantissa = exponent == 0 ? fraction : fraction | std::uint64_t(1) << 52;
    const int shift = exponent == 0 ? 0 : exponent - 1, limb = shift / 32, within = shift % 32;
    const std::int64_t sign = bits >> 63 ? -1 : 1;
    const std::uint64_t low = mantissa << within, high = within == 0 ? 0 : mantissa >> (64 - within);
    limbs_[limb] += sign * std::int64_t(low & 0xffffffffu);
    limbs_[limb + 1] += sign * std::int64_t(low >> 32);
    limbs_[limb + 2] += sign * std::int64_t(high);
    if (++num_pending_ == max_pending) carry();
  }

  // As doubles, whose sums over up to 2^20 ranks are exact.
  void store(double* out) {
    carry();
    for (int i = 0; i < num_limbs; ++i) out[i] = is_finite_ ? double(limbs_[i]) : std::numeric_limits<double>::quiet_NaN();
  }
  static ExactSum load(const double* stored) {
    ExactSum sum;
    for (int i = 0; i < num_limbs; ++i) {
      if (!std::isfinite(stored[i])) sum.is_finite_ = false;
      sum.limbs_[i] = std::isfinite(stored[i]) ? std::int64_t(stored[i]) : 0;
    }
    return sum;
  }

  // The nearest double.
  double value() {
    if (!is_finite_) return std::numeric_limits<double>::quiet_NaN();
    carry();
    const bool negative = limbs_[num_limbs - 1] < 0;
    if (negative) {
      for (std::int64_t& limb : limbs_) limb = -limb;
      carry();
    }
    int top = num_limbs - 1;
    while (top > 1 && limbs_[top] == 0) --top;
    // 64 bits from the highest on, the last of them set if anything follows: the conversion to double then rounds once.
    const std::uint64_t two = std::uint64_t(limbs_[top]) << 32 | std::uint64_t(limbs_[top - 1]);
    if (two == 0) return 0;
    const int free = std::countl_zero(two);
    const std::uint64_t next = top > 1 ? std::uint64_t(limbs_[top - 2]) : 0;
    std::uint64_t window = two << free, rest = next;
    if (free > 0 && free <= 32) window |= next >> (32 - free), rest = next & ((std::uint64_t(1) << (32 - free)) - 1);
    if (free > 32) window |= next << (free - 32), rest = 0;
    for (int i = top - 3; i >= 0; --i) rest |= std::uint64_t(limbs_[i]);
    const double result = std::ldexp(double(window | (rest != 0)), 32 * (top - 1) - free - 1074);
    if (negative) {
      for (std::int64_t& limb : limbs_) limb = -limb;
      carry();
    }
    return negative ? -result : result;
  }

 private:
  // All limbs but the last into 0 … 2^32 - 1.
  void carry() {
    std::int64_t over = 0;
    for (int i = 0; i + 1 < num_limbs; ++i) {
      const std::int64_t all = limbs_[i] + over;
      limbs_[i] = std::int64_t(std::uint64_t(all) & 0xffffffffu);
      over = (all - limbs_[i]) / (std::int64_t(1) << 32);
    }
    limbs_[num_limbs - 1] += over;
    num_pending_ = 0;
  }

  static constexpr int max_pending = 1 << 29;
  std::int64_t limbs_[num_limbs]{};
  int num_pending_ = 0;
  bool is_finite_ = true;
};

}  // namespace weft
