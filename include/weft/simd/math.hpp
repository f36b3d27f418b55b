// SPDX-License-Identifier: Apache-2.0
// Elementary functions on vector registers. No branches, no tables; NaN in, NaN out.
//
// Largest error over the whole range, in units in the last place of the result, as tests/simd/math_test.cpp measures it:
//
//              float   double
//   exp         1       1       exp(-inf) = 0, exp(inf) = inf; results below 1.7e-38 (float), 3.2e-308 (double) are flushed to 0
//   log         1       1       log(0) = -inf, log(x < 0) = NaN, log(inf) = inf; subnormal arguments are right
//   tanh        3       3       ±1 exactly from |x| = 9.1 (float), 20 (double) on; ±0 kept
//   sigmoid     2.5     2.5     flushed to 0 below -88.7 (float), -709.7 (double)
//   erf         1.5     2       ±1 exactly for large |x|; ±0 kept
//   normal      2.5     3.5     the cumulative distribution for x >= -1; below, the error is under half an ulp of 1
//
// Source: argument reduction by a split ln 2 after W. J. Cody and W. Waite, Software Manual for the Elementary Functions (1980), and
// log through atanh after the same chapter; every polynomial is a minimax fit of our own (Remez exchange in 200-bit arithmetic).
#pragma once

#include <cstdint>
#include <limits>

#include "weft/simd/vector.hpp"

namespace weft::simd {

// What the functions need to know of an IEEE format.
template <class T>
struct Format;
template <>
struct Format<float> {
  using Unsigned = std::uint32_t;
  static constexpr int fraction_bits = 23, bias = 127;
  static constexpr Unsigned sign = 0x80000000u, fraction = 0x007fffffu, one = 0x3f800000u, half_root = 0x3f3504f3u;  // √½
  static constexpr float shifter = 12582912.0f;  // 1.5 · 2^23: adding it rounds to an integer, in the low bits
  static constexpr float ln2_high = 0.693145751953125f, ln2_low = 1.42860682e-6f;  // high: 16 bits, so that k · high is exact
  static constexpr float exp_least = -87.5f, exp_most = 89.0f;                     // from here on the scale is 0, the product infinite
  static constexpr float tanh_most = 9.1f;                                         // from here on tanh rounds to 1
};
template <>
struct Format<double> {
  using Unsigned = std::uint64_t;
  static constexpr int fraction_bits = 52, bias = 1023;
  static constexpr Unsigned sign = 0x8000000000000000u, fraction = 0x000fffffffffffffu, one = 0x3ff0000000000000u,
                            half_root = 0x3fe6a09e667f3bcdu;
  static constexpr double shifter = 6755399441055744.0;                                  // 1.5 · 2^52
  static constexpr double ln2_high = 0x1.62e42fefap-1, ln2_low = 0x1.cf79abc9e3b3ap-40;  // high: 36 bits
  static constexpr double exp_least = -708.5, exp_most = 709.9;
  static constexpr double tanh_most = 20.0;
};

// The register as unsigned integers of the same width.
template <class Isa, class T>
using Bits = typename VectorOf<Isa, typename Format<T>::Unsigned>::type;

template <class Isa, class T>
WEFT_ALWAYS_INLINE inline Vector<Isa, T> absolute(Vector<Isa, T> x) {
  return Vector<Isa, T>(Bits<Isa, T>(x) & ~Format<T>::sign);
}

// |size| with the sign of `sign`; size >= 0.
template <class Isa, class T>
WEFT_ALWAYS_INLINE inline Vector<Isa, T> with_sign(Vector<Isa, T> size, Vector<Isa, T> sign) {
  return Vector<Isa, T>(Bits<Isa, T>(size) | (Bits<Isa, T>(sign) & Format<T>::sign));
}

// x, but at least or at most the bound; NaN passes.
template <class Isa, class T>
WEFT_ALWAYS_INLINE inline Vector<Isa, T> at_least(T bound, Vector<Isa, T> x) {
  const Vector<Isa, T> bounds = broadcast<Isa>(bound);
  return bounds > x ? bounds : x;
}
template <class Isa, class T>
WEFT_ALWAYS_INLINE inline Vector<Isa, T> at_most(T bound, Vector<Isa, T> x) {
  const Vector<Isa, T> bounds = broadcast<Isa>(bound);
  return bounds < x ? bounds : x;
}

// Horner's rule, the coefficient of the highest power first.
template <class Isa, class T, class... Rest>
WEFT_ALWAYS_INLINE inline Vector<Isa, T> polynomial(Vector<Isa, T> x, T first, Rest... rest) {
  Vector<Isa, T> value = broadcast<Isa>(first);
  ((value = value * x + rest), ...);
  return value;
}

// exp(x) = 2^k · (1 + fraction), |fraction| < 0.42; half_scale = 2^(k-1), or 0 for the least k.
template <class Isa, class T>
struct ExpParts {
  Vector<Isa, T> fraction, half_scale;
};

// For x within [exp_least, exp_most]. `fraction` is exp(r) - 1 to an ulp of its own, which keeps tanh exact near 0.
template <class Isa, class T>
WEFT_ALWAYS_INLINE inline ExpParts<Isa, T> exp_parts(Vector<Isa, T> x) {
  using F = Format<T>;
  const Vector<Isa, T> shifted = x * T(1.4426950408889634) + F::shifter;
  const Vector<Isa, T> k = shifted - F::shifter;
  const Vector<Isa, T> r = (x - k * F::ln2_high) - k * F::ln2_low;
  Vector<Isa, T> p;
  if constexpr (sizeof(T) == 4) {  // relative error of r + r² p(r) to exp(r) - 1: 2.4e-10
    p = polynomial<Isa, T>(r, 0.0001991428f, 0.00139410084f, 0.00833327323f, 0.041666355f, 0.166666672f, 0.5f);
  } else {  // 2.7e-19
    p = polynomial<Isa, T>(r, 2.0924404342799056e-09, 2.5109044798125924e-08, 2.755724290912634e-07, 2.7557244182372501e-06,
                           2.4801587360345967e-05, 0.00019841269886157896, 0.0013888888888866969, 0.0083333333333216169,
                           0.041666666666666699, 0.16666666666666677, 0.5);
  }
  const Bits<Isa, T> exponent = Bits<Isa, T>(shifted) + typename F::Unsigned(F::bias - 1);
  return {r + r * r * p, Vector<Isa, T>(exponent << F::fraction_bits)};
}

template <class Isa, class T>
WEFT_ALWAYS_INLINE inline Vector<Isa, T> exp(Vector<Isa, T> x) {
  using F = Format<T>;
  const auto [fraction, half_scale] = exp_parts<Isa, T>(at_most<Isa, T>(F::exp_most, at_least<Isa, T>(F::exp_least, x)));
  return (fraction * T(2) + T(2)) * half_scale;
}

template <class Isa, class T>
WEFT_ALWAYS_INLINE inline Vector<Isa, T> log(Vector<Isa, T> x) {
  using F = Format<T>;
  using V = Vector<Isa, T>;
  using U = typename F::Unsigned;
  constexpr T infinity = std::numeric_limits<T>::infinity(), least = std::numeric_limits<T>::min();
  constexpr T lift = T(U(1) << (F::fraction_bits + 1)), integers = T(U(1) << F::fraction_bits);
  const auto small = x < least;
  const Bits<Isa, T> lifted = Bits<Isa, T>(small ? x * lift : x) + (F::one - F::half_root);
  const V mantissa = V((lifted & F::fraction) + F::half_root);  // [√½, √2)
  // The exponent becomes the low bits of a large power of two: AVX2 converts no 64-bit integers.
  const V biased = V((lifted >> F::fraction_bits) | Bits<Isa, T>(broadcast<Isa>(integers)));
  const V k = biased - (small ? broadcast<Isa>(integers + T(F::bias + F::fraction_bits + 1)) : broadcast<Isa>(integers + T(F::bias)));
  const V f = mantissa - T(1), s = f / (f + T(2)), square = s * s, half = T(0.5) * f * f;
  V p;  // 2 atanh(s) = 2 s + s · s² p(s²)
  if constexpr (sizeof(T) == 4) {
    p = polynomial<Isa, T>(square, 0.298730314f, 0.399774969f, 0.666667759f);
  } else {
    p = polynomial<Isa, T>(square, 0.14797504072925358, 0.15313903840729298, 0.18183569706344407, 0.22222198476849478, 0.28571428743251948,
                           0.39999999999411151, 0.66666666666667351);
  }
  V y = k * F::ln2_high - ((half - (s * (half + square * p) + k * F::ln2_low)) - f);
  y = x == infinity ? x : y;
  y = x == T(0) ? broadcast<Isa>(-infinity) : y;
  return x >= T(0) ? y : broadcast<Isa>(std::numeric_limits<T>::quiet_NaN());
}

// (e^2a - 1) / (e^2a + 1) with a = |x|; e^2a - 1 without cancellation.
template <class Isa, class T>
WEFT_ALWAYS_INLINE inline Vector<Isa, T> tanh(Vector<Isa, T> x) {
  const Vector<Isa, T> size = absolute<Isa, T>(x);
  const auto [fraction, half_scale] = exp_parts<Isa, T>(at_most<Isa, T>(Format<T>::tanh_most, size) * T(2));
  const Vector<Isa, T> scale = half_scale + half_scale, less_one = scale * fraction + (scale - T(1));
  return with_sign<Isa, T>(less_one / (less_one + T(2)), x);
}

template <class Isa, class T>
WEFT_ALWAYS_INLINE inline Vector<Isa, T> sigmoid(Vector<Isa, T> x) {
  return T(1) / (T(1) + exp<Isa, T>(-x));
}

// erfc(z) · exp(z²) for z >= 0, to the relative error 2e-8 (float), 2e-18 (double) before rounding: y · p(y - ½), y = 1 / (1 + 0.3 z).
template <class Isa, class T>
WEFT_ALWAYS_INLINE inline Vector<Isa, T> scaled_erfc(Vector<Isa, T> z) {
  const Vector<Isa, T> y = T(1) / (T(0.3) * z + T(1)), t = y - T(0.5);
  if constexpr (sizeof(T) == 4) {
    return y * polynomial<Isa, T>(t, -0.129541323f, -0.0325054526f, 0.28052479f, 0.653431952f, 0.911283433f, 0.949733853f, 0.795126081f,
                                  0.55304724f, 0.324979931f);
  } else {
    return y * polynomial<Isa, T>(t, 0.0016946833648973404, -0.0026540348812223876, -0.0022372898291791142, 0.0060828858273590429,
                                  0.0015073760609835283, -0.0095915489271645258, -0.00067694805954643519, 0.014554814380781428,
                                  0.0011687533133871437, -0.023424080063341117, -0.0071661041284018919, 0.039117909699618258,
                                  0.033517719139250897, -0.054784449106362806, -0.12322512115419379, -0.02326240582780488,
                                  0.27879040507245495, 0.6528463017689714, 0.91138620869094544, 0.94974939767142585, 0.79512431217731316,
                                  0.55304711351213106, 0.32497992185979685);
  }
}

// erf(z) / z - 1 for |z| <= 1, from z²; relative error of erf 1.2e-9 (float), 1.3e-19 (double) before rounding.
template <class Isa, class T>
WEFT_ALWAYS_INLINE inline Vector<Isa, T> erf_over_argument_less_one(Vector<Isa, T> square) {
  if constexpr (sizeof(T) == 4) {
    return polynomial<Isa, T>(square, 7.88918405e-05f, -0.000802086142f, 0.00518953754f, -0.0268544462f, 0.112836003f, -0.37612626f,
                              0.128379166f);
  } else {
    return polynomial<Isa, T>(square, 5.9606853385209714e-11, -1.1374955736070149e-09, 1.466032872274226e-08, -1.6350396222864617e-07,
                              1.64610084778027e-06, -1.4925595772180906e-05, 0.0001205533113295582, -0.00085483269814255422,
                              0.0052239776248284306, -0.026866170645077875, 0.11283791670954885, -0.37612638903183748, 0.12837916709551259);
  }
}

template <class Isa, class T>
WEFT_ALWAYS_INLINE inline Vector<Isa, T> erf(Vector<Isa, T> x) {
  const Vector<Isa, T> size = absolute<Isa, T>(x), square = x * x;
  const Vector<Isa, T> far = T(1) - exp<Isa, T>(-square) * scaled_erfc<Isa, T>(size);
  return size < T(1) ? x + x * erf_over_argument_less_one<Isa, T>(square) : with_sign<Isa, T>(far, x);
}

// The standard normal distribution up to x, and its density at x: what the exact GELU and its derivative are made of. One exp for both.
template <class Isa, class T>
struct Normal {
  Vector<Isa, T> cumulative, density;
};
template <class Isa, class T>
WEFT_ALWAYS_INLINE inline Normal<Isa, T> normal(Vector<Isa, T> x) {
  using V = Vector<Isa, T>;
  const V z = x * T(0.70710678118654752), size = absolute<Isa, T>(z), half = x * T(0.35355339059327376), square = T(0.5) * x * x;
  const V decay = exp<Isa, T>(-square), tail = T(0.5) * decay * scaled_erfc<Isa, T>(size);
  const V near = T(0.5) + (half + half * erf_over_argument_less_one<Isa, T>(square));
  return {size < T(1) ? near : (x < T(0) ? tail : T(1) - tail), decay * T(0.39894228040143268)};
}

}  // namespace weft::simd
