// SPDX-License-Identifier: Apache-2.0
// Normalisation by the root of the mean square on vector registers; contracts in weft/kernel/rms_norm.hpp.
#pragma once

#include <cmath>

#include "weft/kernel/cpu/lanes.hpp"

namespace weft::kernel::cpu {

template <class Isa, class Real>
inline void rms_norm_forward(Index rows, Index width, Real epsilon, const Real* x, const Real* gain, Real* y, Real* rstd) {
  for (Index r = 0; r < rows; ++r) {
    const Real* row = x + r * width;  // (width)
    const Real square = row_sums<1, Isa, Real>(width,
                                               [=](Index i, auto count, auto& total) WEFT_ALWAYS_INLINE {
                                                 const auto value = get<Isa>(row + i, count);
                                                 total[0] += value * value;
                                               })
                            .value[0] /
                        Real(width);
    const Real inverse = Real(1) / std::sqrt(square + epsilon);
    rstd[r] = inverse;
    map<Isa>(width, row, gain, y + r * width, [=](auto value, auto gains) WEFT_ALWAYS_INLINE { return value * inverse * gains; });
  }
}

// `NumRows` rows at once, so that dgain is read and written once for all of them; it is added to in the order of the rows.
template <Index NumRows, class Isa, class Real>
inline void rms_norm_backward_rows(Index width, const Real* x, const Real* gain, const Real* rstd, const Real* dy, Real* dx, Real* dgain,
                                   bool accumulate) {
  Real product_average[NumRows];
  for (Index r = 0; r < NumRows; ++r) {
    const Real *row = x + r * width, *gradient = dy + r * width;
    const auto sums = row_sums<1, Isa, Real>(width, [=](Index i, auto count, auto& total) WEFT_ALWAYS_INLINE {
      total[0] += get<Isa>(gradient + i, count) * get<Isa>(gain + i, count) * get<Isa>(row + i, count);
    });
    product_average[r] = sums.value[0] * rstd[r] / Real(width);
  }
  for_lanes<Isa, Real>(width, [&](Index i, auto count) WEFT_ALWAYS_INLINE {
    auto dgains = get<Isa>(static_cast<const Real*>(dgain + i), count);
    const auto gains = get<Isa>(gain + i, count);
    for (Index r = 0; r < NumRows; ++r) {
      const auto gradient = get<Isa>(dy + r * width + i, count), normal = get<Isa>(x + r * width + i, count) * rstd[r];
      dgains += gradient * normal;
      if (dx) {
        Real* out = dx + r * width + i;
        const auto value = rstd[r] * (gradient * gains - normal * product_average[r]);
        put<Isa>(out, accumulate ? get<Isa>(static_cast<const Real*>(out), count) + value : value, count);
      }
    }
    put<Isa>(dgain + i, dgains, count);
  });
}

template <class Isa, class Real>
inline void rms_norm_backward(Index rows, Index width, const Real* x, const Real* gain, const Real* rstd, const Real* dy, Real* dx,
                              Real* dgain, bool accumulate) {
  constexpr Index group = 4;
  Index r = 0;
  for (; r + group <= rows; r += group) {
    rms_norm_backward_rows<group, Isa>(width, x + r * width, gain, rstd + r, dy + r * width, dx ? dx + r * width : dx, dgain, accumulate);
  }
  for (; r < rows; ++r) {
    rms_norm_backward_rows<1, Isa>(width, x + r * width, gain, rstd + r, dy + r * width, dx ? dx + r * width : dx, dgain, accumulate);
  }
}

}  // namespace weft::kernel::cpu
