// SPDX-License-Identifier: Apache-2.0
// Softmax attention: the contract, and a plain implementation to test the others against.
#pragma once

#include <cmath>
#include <limits>
#include <string>

#include "weft/base/config.hpp"
#include "weft/base/error.hpp"
#include "weft/kernel/scratch.hpp"

namespace weft::kernel {

// keys = past + queries: the queries are the last tokens of what the keys cover. Causal: query i sees keys 0 … keys − queries + i.
// Head h reads key/value head h / (heads / key_value_heads).
struct AttentionSizes {
  Index batch, queries, keys, heads, key_value_heads, head_size;
  bool causal;

  constexpr Index group() const { return heads / key_value_heads; }  // heads that share a key/value head
  constexpr Index visible(Index query) const { return causal ? keys - queries + query + 1 : keys; }
};

inline void check_attention(const AttentionSizes& sizes) {
  if (sizes.heads <= 0 || sizes.key_value_heads <= 0 || sizes.heads % sizes.key_value_heads != 0) {
    throw Error("attention.groups", "the key/value heads must divide the heads; change one of them (" + std::to_string(sizes.heads) +
                                        " heads, " + std::to_string(sizes.key_value_heads) + " key/value heads)");
  }
  if (sizes.causal && sizes.keys < sizes.queries) {
    throw Error("attention.keys", "causal queries are the last of the keys; pass past + queries keys (" + std::to_string(sizes.queries) +
                                      " queries, " + std::to_string(sizes.keys) + " keys)");
  }
}

// scale · q · k for one query and key.
template <class Real>
inline Real attention_score(Index head_size, Real scale, const Real* q, const Real* k) {
  Real product = 0;
  for (Index d = 0; d < head_size; ++d) product += q[d] * k[d];
  return scale * product;
}

// y = softmax(scale · q kᵀ) v for every head; lse = log Σ exp of the scores, for backward, or null.
// Shapes: q, y (B·queries, H, D) and lse (B·queries, H), row r = b · queries + i; k, v (B, keys, Hkv, D). Row r of q starts at
// q + r · q_row_stride, key j of batch b at k + b · kv_batch_stride + j · kv_row_stride; heads lie side by side in a row. y and lse are
// overwritten, a stride's padding is left alone.
// A score of −∞ weighs nothing; if all that a query sees are −∞, or one is +∞ or NaN, its y is NaN, as in softmax. Without keys, y = 0 and
// lse = −∞.
// Errors: attention.groups, attention.keys.
// Cost: 4 · B · H · queries · keys · D flops, half of it when causal with queries = keys. The scores are never stored.
template <class Real>
inline void attention_forward(AttentionSizes sizes, Real scale, const Real* q, Index q_row_stride, const Real* k, const Real* v,
                              Index kv_row_stride, Index kv_batch_stride, Real* y, Index y_row_stride, Real* lse, Scratch = {}) {
  check_attention(sizes);
  const Index D = sizes.head_size;
  for (Index b = 0; b < sizes.batch; ++b) {
    for (Index i = 0; i < sizes.queries; ++i) {
      for (Index h = 0; h < sizes.heads; ++h) {
        const Index row = b * sizes.queries + i, first_key = b * kv_batch_stride + h / sizes.group() * D, visible = sizes.visible(i);
        const Real* const query = q + row * q_row_stride + h * D;  // (D)
        Real* const out = y + row * y_row_stride + h * D;          // (D)
        const auto score = [&](Index j) { return attention_score(D, scale, query, k + first_key + j * kv_row_stride); };
        Real most = -std::numeric_limits<Real>::infinity();
        for (Index j = 0; j < visible; ++j) most = score(j) > most ? score(j) : most;
        Real total = 0;
        for (Index d = 0; d < D; ++d) out[d] = 0;
        for (Index j = 0; j < visible; ++j) {
          const Real weight = std::exp(score(j) - most);
          total += weight;
          for (Index d = 0; d < D; ++d) out[d] += weight * v[first_key + j * kv_row_stride + d];
        }
        if (visible > 0) {
          for (Index d = 0; d < D; ++d) out[d] /= total;
        }
        if (lse) lse[row * sizes.heads + h] = most + std::log(total);
      }
    }
  }
}

// Gradients of attention_forward from its y and lse; dq, dk, dv are overwritten.
// Shapes: as above; dy and dq like q, dk and dv like k with strides of their own.
// With p = exp(scale · q kᵀ − lse) and Δ = Σ_d dy · y:  dv = pᵀ dy,  ds = p (dy vᵀ − Δ),  dq = scale · ds k,  dk = scale · dsᵀ q.
// dk and dv of a key/value head are sums over its heads in ascending order.
// Errors: attention.groups, attention.keys.
// Cost: 2.5 times the flops of forward; the probabilities are computed anew, never stored.
template <class Real>
inline void attention_backward(AttentionSizes sizes, Real scale, const Real* q, Index q_row_stride, const Real* k, const Real* v,
                               Index kv_row_stride, Index kv_batch_stride, const Real* y, Index y_row_stride, const Real* lse,
                               const Real* dy, Index dy_row_stride, Real* dq, Index dq_row_stride, Real* dk, Real* dv, Index dkv_row_stride,
                               Index dkv_batch_stride, Scratch = {}) {
  check_attention(sizes);
  const Index D = sizes.head_size;
  for (Index b = 0; b < sizes.batch; ++b) {
    for (Index j = 0; j < sizes.keys; ++j) {
      for (Index c = 0; c < sizes.key_value_heads * D; ++c) {
        dk[b * dkv_batch_stride + j * dkv_row_stride + c] = 0;
        dv[b * dkv_batch_stride + j * dkv_row_stride + c] = 0;
      }
    }
    for (Index h = 0; h < sizes.heads; ++h) {
      for (Index i = 0; i < sizes.queries; ++i) {
        const Index row = b * sizes.queries + i, shared = h / sizes.group() * D;
        const Real* const query = q + row * q_row_stride + h * D;   // (D)
        const Real* const out = y + row * y_row_stride + h * D;     // (D)
        const Real* const dout = dy + row * dy_row_stride + h * D;  // (D)
        Real* const dquery = dq + row * dq_row_stride + h * D;      // (D)
        Real delta = 0;
        for (Index d = 0; d < D; ++d) delta += dout[d] * out[d], dquery[d] = 0;
        for (Index j = 0; j < sizes.visible(i); ++j) {
          const Real* const key = k + b * kv_batch_stride + j * kv_row_stride + shared;    // (D)
          const Real* const value = v + b * kv_batch_stride + j * kv_row_stride + shared;  // (D)
          Real* const dkey = dk + b * dkv_batch_stride + j * dkv_row_stride + shared;      // (D)
          Real* const dvalue = dv + b * dkv_batch_stride + j * dkv_row_stride + shared;    // (D)
          const Real p = std::exp(attention_score(D, scale, query, key) - lse[row * sizes.heads + h]);
          Real dp = 0;
          for (Index d = 0; d < D; ++d) dp += dout[d] * value[d];
          const Real ds = scale * p * (dp - delta);
          for (Index d = 0; d < D; ++d) {
            dquery[d] += ds * key[d];
            dkey[d] += ds * query[d];
            dvalue[d] += p * dout[d];
          }
        }
      }
    }
  }
}

}  // namespace weft::kernel
