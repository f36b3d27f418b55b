// SPDX-License-Identifier: Apache-2.0
// The plain implementations as an executor: what the fast kernels are tested against in whole models, and what is read first.
#pragma once

#include "weft/kernel/attention.hpp"
#include "weft/kernel/batch_norm2d.hpp"
#include "weft/kernel/conv2d.hpp"
#include "weft/kernel/divided_cross_entropy.hpp"
#include "weft/kernel/dropout.hpp"
#include "weft/kernel/elementwise.hpp"
#include "weft/kernel/embedding.hpp"
#include "weft/kernel/gelu.hpp"
#include "weft/kernel/layer_norm.hpp"
#include "weft/kernel/linear.hpp"
#include "weft/kernel/mean_squared_error.hpp"
#include "weft/kernel/pool2d.hpp"
#include "weft/kernel/position.hpp"
#include "weft/kernel/relu.hpp"
#include "weft/kernel/rms_norm.hpp"
#include "weft/kernel/rotary.hpp"
#include "weft/kernel/scratch.hpp"
#include "weft/kernel/silu.hpp"
#include "weft/kernel/softmax_cross_entropy.hpp"
#include "weft/kernel/swiglu.hpp"
#include "weft/op/kernels_of.hpp"
#include "weft/simd/isa.hpp"

namespace weft {

// A rank on one thread of the host, by plain loops.
struct Reference {
  static constexpr const char* name = "reference";
};

// Scratch arguments are taken and not used.
struct ReferenceKernels {
  using I = simd::Generic;

  // clang-format off
  template <class R, class X, class B> static void linear_forward(Index rows, Index in, Index out, const R* x, const X* w, const B* b, const R* residual, R* y, kernel::Scratch) { kernel::linear_forward(rows, in, out, x, w, b, residual, y); }
  template <class R> static void linear_backward_input(Index rows, Index in, Index out, const R* dy, const R* w, R* dx, bool accumulate, kernel::Scratch) { kernel::linear_backward_input(rows, in, out, dy, w, dx, accumulate); }
  template <class R> static void linear_backward_weight(Index rows, Index in, Index out, const R* x, const R* dy, R* dw, R* db, kernel::Scratch) { kernel::linear_backward_weight(rows, in, out, x, dy, dw, db); }
  template <class R> static void attention_forward(kernel::AttentionSizes sizes, R scale, const R* q, Index qs, const R* k, const R* v, Index kvs, Index kvb, R* y, Index ys, R* lse, kernel::Scratch) { kernel::attention_forward(sizes, scale, q, qs, k, v, kvs, kvb, y, ys, lse); }
  template <class R> static void attention_backward(kernel::AttentionSizes sizes, R scale, const R* q, Index qs, const R* k, const R* v, Index kvs, Index kvb, const R* y, Index ys, const R* lse, const R* dy, Index dys, R* dq, Index dqs, R* dk, R* dv, Index dkvs, Index dkvb, kernel::Scratch) { kernel::attention_backward(sizes, scale, q, qs, k, v, kvs, kvb, y, ys, lse, dy, dys, dq, dqs, dk, dv, dkvs, dkvb); }
  template <class R> static void conv2d_forward(Index batch, Conv2dSizes sizes, const R* x, const R* w, const R* b, R* y, kernel::Scratch) { kernel::conv2d_forward(batch, sizes, x, w, b, y); }
  template <class R> static void conv2d_backward_input(Index batch, Conv2dSizes sizes, const R* dy, const R* w, R* dx, kernel::Scratch) { kernel::conv2d_backward_input(batch, sizes, dy, w, dx); }
  template <class R> static void conv2d_backward_weight(Index batch, Conv2dSizes sizes, const R* x, const R* dy, R* dw, R* db, kernel::Scratch) { kernel::conv2d_backward_weight(batch, sizes, x, dy, dw, db); }
  template <class... A> static void relu_forward(A... a) { kernel::relu_forward(a...); }
  template <class... A> static void relu_backward(A... a) { kernel::relu_backward(a...); }
  template <class... A> static void silu_forward(A... a) { kernel::silu_forward(a...); }
  template <class... A> static void silu_backward(A... a) { kernel::silu_backward(a...); }
  template <class... A> static void gelu_tanh_forward(A... a) { kernel::gelu_tanh_forward(a...); }
  template <class... A> static void gelu_tanh_backward(A... a) { kernel::gelu_tanh_backward(a...); }
  template <class... A> static void gelu_erf_forward(A... a) { kernel::gelu_erf_forward(a...); }
  template <class... A> static void gelu_erf_backward(A... a) { kernel::gelu_erf_backward(a...); }
  template <class... A> static void swiglu_forward(A... a) { kernel::swiglu_forward(a...); }
  template <class... A> static void swiglu_backward(A... a) { kernel::swiglu_backward(a...); }
  template <class... A> static void layer_norm_forward(A... a) { kernel::layer_norm_forward(a...); }
  template <class... A> static void layer_norm_backward(A... a) { kernel::layer_norm_backward(a...); }
  template <class... A> static void rms_norm_forward(A... a) { kernel::rms_norm_forward(a...); }
  template <class... A> static void rms_norm_backward(A... a) { kernel::rms_norm_backward(a...); }
  template <class... A> static auto softmax_cross_entropy(A... a) { return kernel::softmax_cross_entropy(a...); }
  template <class... A> static auto divided_cross_entropy(A... a) { return kernel::divided_cross_entropy(a...); }
  template <class... A> static auto mean_squared_error(A... a) { return kernel::mean_squared_error(a...); }
  template <class... A> static Index embedding_forward(A... a) { return kernel::embedding_forward(a...); }
  template <class... A> static void embedding_backward(A... a) { kernel::embedding_backward(a...); }
  template <class... A> static void position_forward(A... a) { kernel::position_forward(a...); }
  template <class... A> static void position_backward(A... a) { kernel::position_backward(a...); }
  template <class... A> static void dropout_forward(A... a) { kernel::dropout_forward(a...); }
  template <class... A> static void dropout_backward(A... a) { kernel::dropout_backward(a...); }
  template <class... A> static void add(A... a) { kernel::add(a...); }
  template <class... A> static void copy_columns(A... a) { kernel::copy_columns(a...); }
  template <class... A> static void add_columns(A... a) { kernel::add_columns(a...); }
  template <class... A> static double square_sum(A... a) { return kernel::square_sum(a...); }
  template <class... A> static void rotary_forward(A... a) { kernel::rotary_forward(a...); }
  template <class... A> static void rotary_backward(A... a) { kernel::rotary_backward(a...); }
  template <class... A> static void max_pool2d_forward(A... a) { kernel::max_pool2d_forward(a...); }
  template <class... A> static void max_pool2d_backward(A... a) { kernel::max_pool2d_backward(a...); }
  template <class... A> static void average_pool2d_forward(A... a) { kernel::average_pool2d_forward(a...); }
  template <class... A> static void average_pool2d_backward(A... a) { kernel::average_pool2d_backward(a...); }
  template <class... A> static void batch_norm2d_statistics(A... a) { kernel::batch_norm2d_statistics(a...); }
  template <class... A> static void batch_norm2d_finish(A... a) { kernel::batch_norm2d_finish(a...); }
  template <class... A> static void batch_norm2d_forward(A... a) { kernel::batch_norm2d_forward(a...); }
  template <class... A> static void batch_norm2d_evaluate(A... a) { kernel::batch_norm2d_evaluate(a...); }
  template <class... A> static void batch_norm2d_backward_statistics(A... a) { kernel::batch_norm2d_backward_statistics(a...); }
  template <class... A> static void batch_norm2d_backward(A... a) { kernel::batch_norm2d_backward(a...); }
  // clang-format on

  static kernel::AttentionSizes attention_sizes(Index batch, Index queries, Index keys, Index heads, Index key_value_heads, Index head_size,
                                                bool causal) {
    return {batch, queries, keys, heads, key_value_heads, head_size, causal};
  }
};

template <>
struct KernelsOf<Reference> {
  using type = ReferenceKernels;
};

}  // namespace weft
