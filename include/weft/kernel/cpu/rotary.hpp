// SPDX-License-Identifier: Apache-2.0
// Rotary positions on the CPU; contracts in weft/kernel/rotary.hpp.
//
// Cosines and sines are computed once a position and pair, for all batches and heads. Those of positions that are multiples of
// rotary_anchor come from the library; a position in between is reached by turning on from there, one position at a time, in double
// (an error of about 1e-15 a turn). The anchors do not move with `past`, so a position has the same bits wherever a sequence starts.
#pragma once

#include <algorithm>
#include <cmath>

#include "weft/kernel/rotary.hpp"
#include "weft/simd/vector.hpp"

namespace weft::kernel::cpu {

inline constexpr Index rotary_anchor = 32;
inline constexpr Index rotary_pairs = 256;  // whose angles are in work at once: all of a head's up to 512 features

// Cosine and sine of the angles of up to rotary_pairs pairs, position after position.
class RotaryAngles {
 public:
  RotaryAngles(Index first_pair, Index pairs, Index head_size, double theta) : pairs_(pairs) {
    for (Index i = 0; i < pairs; ++i) {
      frequency_[i] = rotary_frequency(first_pair + i, head_size, theta);
      step_cosine_[i] = std::cos(frequency_[i]), step_sine_[i] = std::sin(frequency_[i]);
    }
  }

  void start(Index position) {
    const Index anchor = position / rotary_anchor * rotary_anchor;
    for (Index i = 0; i < pairs_; ++i) {
      const double angle = double(anchor) * frequency_[i];
      cosine_[i] = std::cos(angle), sine_[i] = std::sin(angle);
    }
    for (position_ = anchor; position_ < position; ++position_) turn();
  }
  void next() {
    if ((position_ + 1) % rotary_anchor == 0) {
      start(position_ + 1);
    } else {
      turn(), ++position_;
    }
  }
  const double* cosine() const { return cosine_; }
  const double* sine() const { return sine_; }

 private:
  void turn() {
    for (Index i = 0; i < pairs_; ++i) {
      const double cosine = cosine_[i] * step_cosine_[i] - sine_[i] * step_sine_[i];
      sine_[i] = sine_[i] * step_cosine_[i] + cosine_[i] * step_sine_[i];
      cosine_[i] = cosine;
    }
  }

  Index pairs_, position_ = 0;
  double frequency_[rotary_pairs], step_cosine_[rotary_pairs], step_sine_[rotary_pairs], cosine_[rotary_pairs], sine_[rotary_pairs];
};

// first, second (pairs) = first · cosine − second · sine, second · cosine + first · sine.
template <class Isa, class Real>
inline void turn_pairs(Index pairs, const Real* cosine, const Real* sine, Real* first, Real* second) {
  constexpr Index lanes = simd::lanes<Isa, Real>;
  Index i = 0;
  for (; i + lanes <= pairs; i += lanes) {
    const auto c = simd::load<Isa>(cosine + i), s = simd::load<Isa>(sine + i);
    const auto a = simd::load<Isa>(static_cast<const Real*>(first + i)), b = simd::load<Isa>(static_cast<const Real*>(second + i));
    simd::store<Isa>(first + i, a * c - b * s);
    simd::store<Isa>(second + i, b * c + a * s);
  }
  for (; i < pairs; ++i) {
    const Real a = first[i], b = second[i];
    first[i] = a * cosine[i] - b * sine[i];
    second[i] = b * cosine[i] + a * sine[i];
  }
}

template <class Isa, class Real>
inline void rotate_pairs(Index batch, Index sequence, Index past, Index heads, Index head_size, Index row_stride, double theta,
                         double direction, Real* x) {
  check_rotary(head_size);
  const Index half = head_size / 2;
  Real cosine[rotary_pairs], sine[rotary_pairs];
  for (Index first_pair = 0; first_pair < half; first_pair += rotary_pairs) {
    const Index pairs = std::min(rotary_pairs, half - first_pair);
    RotaryAngles angles(first_pair, pairs, head_size, theta);
    for (Index s = 0; s < sequence; ++s) {
      if (s == 0)
        angles.start(past);
      else
        angles.next();
      for (Index i = 0; i < pairs; ++i) cosine[i] = Real(angles.cosine()[i]), sine[i] = Real(direction * angles.sine()[i]);
      for (Index b = 0; b < batch; ++b) {
        for (Index h = 0; h < heads; ++h) {
          Real* const pair = x + (b * sequence + s) * row_stride + h * head_size + first_pair;
          turn_pairs<Isa>(pairs, cosine, sine, pair, pair + half);
        }
      }
    }
  }
}

// Errors: rotary.head_size.
template <class Isa, class Real>
inline void rotary_forward(Index batch, Index sequence, Index past, Index heads, Index head_size, Index row_stride, double theta, Real* x) {
  rotate_pairs<Isa>(batch, sequence, past, heads, head_size, row_stride, theta, 1.0, x);
}
template <class Isa, class Real>
inline void rotary_backward(Index batch, Index sequence, Index past, Index heads, Index head_size, Index row_stride, double theta,
                            Real* dx) {
  rotate_pairs<Isa>(batch, sequence, past, heads, head_size, row_stride, theta, -1.0, dx);
}

}  // namespace weft::kernel::cpu
