// SPDX-License-Identifier: Apache-2.0
// Layer normalisation on vector registers; contracts in weft/kernel/layer_norm.hpp.
#pragma once

#include <cmath>

#include "weft/kernel/cpu/lanes.hpp"

namespace weft::kernel::cpu {

// Three passes over a row, which stays in the first-level cache: the sum, the squares about the mean, the result.
template <class Isa, class Real>
inline void layer_norm_forward(Index rows, Index width, Real epsilon, const Real* x, const Real* gain, const Real* shift, Real* y,
                               Real* mean, Real* rstd) {
  for (Index r = 0; r < rows; ++r) {
    const Real* row = x + r * width;  // (width)
    Real* out = y + r * width;        // (width)
    const Real average =
        row_sums<1, Isa, Real>(width, [=](Index i, auto count, auto& total) WEFT_ALWAYS_INLINE { total[0] += get<Isa>(row + i, count); })
            .value[0] /
        Real(width);
    const Real variance = row_sums<1, Isa, Real>(width,
                                                 [=](Index i, auto count, auto& total) WEFT_ALWAYS_INLINE {
                                                   const auto difference = get<Isa>(row + i, count, average) - average;
                                                   total[0] += difference * difference;
                                                 })
                              .value[0] /
                          Real(width);
    const Real inverse = Real(1) / std::sqrt(variance + epsilon);
    mean[r] = average;
    rstd[r] = inverse;
    for_lanes<Isa, Real>(width, [=](Index i, auto count) WEFT_ALWAYS_INLINE {
      put<Isa>(out + i, (get<Isa>(row + i, count) - average) * inverse * get<Isa>(gain + i, count) + get<Isa>(shift + i, count), count);
    });
  }
}

// `NumRows` rows at once, so that dgain and dshift are read and written once for all of them; they are added in the order of the rows.
template <Index NumRows, class Isa, class Real>
inline void layer_norm_backward_rows(Index width, const Real* x, const Real* gain, const Real* mean, const Real* rstd, const Real* dy,
                                     Real* dx, Real* dgain, Real* dshift, bool accumulate) {
  Real average[NumRows], product_average[NumRows];
  for (Index r = 0; r < NumRows; ++r) {
    const Real *row = x + r * width, *gradient = dy + r * width, center = mean[r], inverse = rstd[r];
    const auto sums = row_sums<2, Isa, Real>(width, [=](Index i, auto count, auto& total) WEFT_ALWAYS_INLINE {
      const auto g = get<Isa>(gradient + i, count) * get<Isa>(gain + i, count);
      total[0] += g;
      total[1] += g * (get<Isa>(row + i, count, center) - center);
    });
    average[r] = sums.value[0] / Real(width);
    product_average[r] = sums.value[1] * inverse / Real(width);
  }
  for_lanes<Isa, Real>(width, [&](Index i, auto count) WEFT_ALWAYS_INLINE {
    auto dgains = get<Isa>(static_cast<const Real*>(dgain + i), count), dshifts = get<Isa>(static_cast<const Real*>(dshift + i), count);
    const auto gains = get<Isa>(gain + i, count);
    for (Index r = 0; r < NumRows; ++r) {
      const auto gradient = get<Isa>(dy + r * width + i, count), normal = (get<Isa>(x + r * width + i, count) - mean[r]) * rstd[r];
      dgains += gradient * normal;
      dshifts += gradient;
      if (dx) {
        Real* out = dx + r * width + i;
        const auto value = rstd[r] * (gradient * gains - average[r] - normal * product_average[r]);
        put<Isa>(out, accumulate ? get<Isa>(static_cast<const Real*>(out), count) + value : value, count);
      }
    }
    put<Isa>(dgain + i, dgains, count);
    put<Isa>(dshift + i, dshifts, count);
  });
}

template <class Isa, class Real>
inline void layer_norm_backward(Index rows, Index width, const Real* x, const Real* gain, const Real* mean, const Real* rstd,
                                const Real* dy, Real* dx, Real* dgain, Real* dshift, bool accumulate) {
  constexpr Index group = 4;
  Index r = 0;
  for (; r + group <= rows; r += group) {
    layer_norm_backward_rows<group, Isa>(width, x + r * width, gain, mean + r, rstd + r, dy + r * width, dx ? dx + r * width : dx, dgain,
                                         dshift, accumulate);
  }
  for (; r < rows; ++r) {
    layer_norm_backward_rows<1, Isa>(width, x + r * width, gain, mean + r, rstd + r, dy + r * width, dx ? dx + r * width : dx, dgain,
                                     dshift, accumulate);
  }
}

}  // namespace weft::kernel::cpu
