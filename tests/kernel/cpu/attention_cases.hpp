// SPDX-License-Identifier: Apache-2.0
// A problem of attention that is solved by the reference and by the tiled kernels, for the tests of the latter.
#pragma once

#include <weft/kernel/cpu/attention.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <vector>

#include <weft/kernel/attention.hpp>

namespace attention_cases {

using namespace weft;
using namespace weft::kernel;

struct NoProducts {};  // attention multiplies by itself
struct Alignment {
  alignas(alignment_bytes) std::byte bytes[alignment_bytes];
};
inline const std::unique_ptr<Alignment[]> arena(new Alignment[cpu_scratch_bytes / alignment_bytes]);
inline const Scratch scratch{arena[0].bytes, cpu_scratch_bytes};

inline double noise(Index i) { return std::sin(double(i) * 12.9898 + double(i % 97) * 78.233); }

// Every operand with rows wider than needed: what lies between them must survive.
template <class Real>
struct Problem {
  static constexpr Real guard = Real(-77.25);
  AttentionSizes sizes;
  Index q_stride, kv_stride, kv_batch, y_stride, dkv_stride, dkv_batch;
  Real scale;
  std::vector<Real> q, kv, y, lse, dy, dq, dkv;
  Index v_offset;

  Problem(AttentionSizes s, Index padding, double amplitude = 1.0) : sizes(s) {
    const Index D = s.head_size, shared = s.key_value_heads * D;
    q_stride = s.heads * D + padding, y_stride = s.heads * D + 2 * padding;
    kv_stride = 2 * shared + padding, dkv_stride = 2 * shared + 3 * padding, v_offset = shared;
    kv_batch = (s.keys + 1) * kv_stride, dkv_batch = s.keys * dkv_stride + padding;
    scale = Real(1 / std::sqrt(double(D)));
    fill(q, s.batch * s.queries * q_stride, 1, amplitude), fill(kv, s.batch * kv_batch, 2, amplitude);
    fill(dy, s.batch * s.queries * y_stride, 3, 1.0);
    y.assign(std::size_t(s.batch * s.queries * y_stride), guard), lse.assign(std::size_t(s.batch * s.queries * s.heads), guard);
    dq.assign(q.size(), guard), dkv.assign(std::size_t(s.batch * dkv_batch), guard);
  }
  static void fill(std::vector<Real>& values, Index count, Index seed, double amplitude) {
    values.resize(std::size_t(count));
    for (Index i = 0; i < count; ++i) values[std::size_t(i)] = Real(amplitude * noise(i + 1009 * seed));
  }

  void reference() {
    kernel::attention_forward(sizes, scale, q.data(), q_stride, kv.data(), kv.data() + v_offset, kv_stride, kv_batch, y.data(), y_stride,
                              lse.data(), scratch);
  }
  void reference_backward() {
    kernel::attention_backward(sizes, scale, q.data(), q_stride, kv.data(), kv.data() + v_offset, kv_stride, kv_batch, y.data(), y_stride,
                               lse.data(), dy.data(), y_stride, dq.data(), q_stride, dkv.data(), dkv.data() + v_offset, dkv_stride,
                               dkv_batch, scratch);
  }
  template <class Isa = simd::Native>
  void tiled(Scratch with = scratch) {
    cpu::attention_forward<NoProducts, Isa>(sizes, scale, q.data(), q_stride, kv.data(), kv.data() + v_offset, kv_stride, kv_batch,
                                            y.data(), y_stride, lse.data(), with);
  }
  template <class Isa = simd::Native>
  void tiled_backward(Scratch with = scratch) {
    cpu::attention_backward<NoProducts, Isa>(sizes, scale, q.data(), q_stride, kv.data(), kv.data() + v_offset, kv_stride, kv_batch,
                                             y.data(), y_stride, lse.data(), dy.data(), y_stride, dq.data(), q_stride, dkv.data(),
                                             dkv.data() + v_offset, dkv_stride, dkv_batch, with);
  }
};

// The largest difference; padding must be equal in both.
template <class Real>
double difference(const std::vector<Real>& a, const std::vector<Real>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(double(a[i]) - double(b[i]));
    if (!(d <= most)) most = d;
  }
  return most;
}

template <class Real>
constexpr double tolerance = sizeof(Real) == 8 ? 1e-12 : 2e-5;

template <class Real, class Isa = simd::Native>
void check_against_reference(AttentionSizes sizes, Index padding) {
  CAPTURE(sizes.batch);
  CAPTURE(sizes.queries);
  CAPTURE(sizes.keys);
  CAPTURE(sizes.heads);
  CAPTURE(sizes.key_value_heads);
  CAPTURE(sizes.head_size);
  CAPTURE(sizes.causal);
  Problem<Real> expected(sizes, padding), actual(sizes, padding);
  expected.reference(), actual.template tiled<Isa>();
  CHECK(difference(actual.y, expected.y) < tolerance<Real>);
  CHECK(difference(actual.lse, expected.lse) < tolerance<Real>);
  expected.reference_backward(), actual.template tiled_backward<Isa>();
  CHECK(difference(actual.dq, expected.dq) < 4 * tolerance<Real>);
  CHECK(difference(actual.dkv, expected.dkv) < 20 * tolerance<Real>);  // sums over queries and the heads of a group
}

}  // namespace attention_cases
