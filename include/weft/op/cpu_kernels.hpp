// SPDX-License-Identifier: Apache-2.0
// The kernels of the CPU executor under the names that layers call. One line an operation; the contracts are in weft/kernel/<op>.hpp.
#pragma once

#include "weft/exec/cpu/executor.hpp"
#include "weft/kernel/cpu/attention.hpp"
#include "weft/kernel/cpu/batch_norm2d.hpp"
#include "weft/kernel/cpu/conv2d.hpp"
#include "weft/kernel/cpu/dropout.hpp"
#include "weft/kernel/cpu/elementwise.hpp"
#include "weft/kernel/cpu/embedding.hpp"
#include "weft/kernel/cpu/gelu.hpp"
#include "weft/kernel/cpu/layer_norm.hpp"
#include "weft/kernel/cpu/linear.hpp"
#include "weft/kernel/cpu/mean_squared_error.hpp"
#include "weft/kernel/cpu/pool2d.hpp"
#include "weft/kernel/cpu/position.hpp"
#include "weft/kernel/cpu/relu.hpp"
#include "weft/kernel/cpu/rms_norm.hpp"
#include "weft/kernel/cpu/rotary.hpp"
#include "weft/kernel/cpu/silu.hpp"
#include "weft/kernel/cpu/softmax_cross_entropy.hpp"
#include "weft/kernel/cpu/swiglu.hpp"
#include "weft/kernel/divided_cross_entropy.hpp"
#include "weft/op/kernels_of.hpp"

namespace weft {

template <class Executor>
struct CpuKernels {
  using P = typename Executor::Products;
  using I = typename Executor::Isa;

  // clang-format off
  template <class... A> static void linear_forward(A... a) { kernel::cpu::linear_forward<P, I>(a...); }
  template <class... A> static void linear_backward_input(A... a) { kernel::cpu::linear_backward_input<P, I>(a...); }
  template <class... A> static void linear_backward_weight(A... a) { kernel::cpu::linear_backward_weight<P, I>(a...); }
  template <class... A> static void relu_forward(A... a) { kernel::cpu::relu_forward<I>(a...); }
  template <class... A> static void relu_backward(A... a) { kernel::cpu::relu_backward<I>(a...); }
  template <class... A> static void silu_forward(A... a) { kernel::cpu::silu_forward<I>(a...); }
  template <class... A> static void silu_backward(A... a) { kernel::cpu::silu_backward<I>(a...); }
  template <class... A> static void gelu_tanh_forward(A... a) { kernel::cpu::gelu_tanh_forward<I>(a...); }
  template <class... A> static void gelu_tanh_backward(A... a) { kernel::cpu::gelu_tanh_backward<I>(a...); }
  template <class... A> static void gelu_erf_forward(A... a) { kernel::cpu::gelu_erf_forward<I>(a...); }
  template <class... A> static void gelu_erf_backward(A... a) { kernel::cpu::gelu_erf_backward<I>(a...); }
  template <class... A> static void swiglu_forward(A... a) { kernel::cpu::swiglu_forward<I>(a...); }
  template <class... A> static void swiglu_backward(A... a) { kernel::cpu::swiglu_backward<I>(a...); }
  template <class... A> static void layer_norm_forward(A... a) { kernel::cpu::layer_norm_forward<I>(a...); }
  template <class... A> static void layer_norm_backward(A... a) { kernel::cpu::layer_norm_backward<I>(a...); }
  template <class... A> static void rms_norm_forward(A... a) { kernel::cpu::rms_norm_forward<I>(a...); }
  template <class... A> static void rms_norm_backward(A... a) { kernel::cpu::rms_norm_backward<I>(a...); }
  template <class... A> static auto softmax_cross_entropy(A... a) { return kernel::cpu::softmax_cross_entropy<I>(a...); }
  template <class... A> static auto divided_cross_entropy(A... a) { return kernel::divided_cross_entropy(a...); }
  template <class... A> static auto mean_squared_error(A... a) { return kernel::cpu::mean_squared_error<I>(a...); }
  template <class... A> static Index embedding_forward(A... a) { return kernel::cpu::embedding_forward<I>(a...); }
  template <class... A> static void embedding_backward(A... a) { kernel::cpu::embedding_backward<I>(a...); }
  template <class... A> static void position_forward(A... a) { kernel::cpu::position_forward<I>(a...); }
  template <class... A> static void position_backward(A... a) { kernel::cpu::position_backward<I>(a...); }
  template <class... A> static void dropout_forward(A... a) { kernel::cpu::dropout_forward<I>(a...); }
  template <class... A> static void dropout_backward(A... a) { kernel::cpu::dropout_backward<I>(a...); }
  template <class... A> static void add(A... a) { kernel::cpu::add<I>(a...); }
  template <class... A> static void copy_columns(A... a) { kernel::cpu::copy_columns<I>(a...); }
  template <class... A> static void add_columns(A... a) { kernel::cpu::add_columns<I>(a...); }
  template <class... A> static double square_sum(A... a) { return kernel::cpu::square_sum<I>(a...); }
  template <class... A> static void attention_forward(A... a) { kernel::cpu::attention_forward<P, I>(a...); }
  template <class... A> static void attention_backward(A... a) { kernel::cpu::attention_backward<P, I>(a...); }
  template <class... A> static void rotary_forward(A... a) { kernel::cpu::rotary_forward<I>(a...); }
  template <class... A> static void rotary_backward(A... a) { kernel::cpu::rotary_backward<I>(a...); }
  template <class... A> static void conv2d_forward(A... a) { kernel::cpu::conv2d_forward<P, I>(a...); }
  template <class... A> static void conv2d_backward_input(A... a) { kernel::cpu::conv2d_backward_input<P, I>(a...); }
  template <class... A> static void conv2d_backward_weight(A... a) { kernel::cpu::conv2d_backward_weight<P, I>(a...); }
  template <class... A> static void max_pool2d_forward(A... a) { kernel::cpu::max_pool2d_forward<I>(a...); }
  template <class... A> static void max_pool2d_backward(A... a) { kernel::cpu::max_pool2d_backward<I>(a...); }
  template <class... A> static void average_pool2d_forward(A... a) { kernel::cpu::average_pool2d_forward<I>(a...); }
  template <class... A> static void average_pool2d_backward(A... a) { kernel::cpu::average_pool2d_backward<I>(a...); }
  template <class... A> static void batch_norm2d_statistics(A... a) { kernel::cpu::batch_norm2d_statistics<I>(a...); }
  template <class... A> static void batch_norm2d_finish(A... a) { kernel::cpu::batch_norm2d_finish<I>(a...); }
  template <class... A> static void batch_norm2d_forward(A... a) { kernel::cpu::batch_norm2d_forward<I>(a...); }
  template <class... A> static void batch_norm2d_evaluate(A... a) { kernel::cpu::batch_norm2d_evaluate<I>(a...); }
  template <class... A> static void batch_norm2d_backward_statistics(A... a) { kernel::cpu::batch_norm2d_backward_statistics<I>(a...); }
  template <class... A> static void batch_norm2d_backward(A... a) { kernel::cpu::batch_norm2d_backward<I>(a...); }
  // clang-format on

  static kernel::AttentionSizes attention_sizes(Index batch, Index queries, Index keys, Index heads, Index key_value_heads, Index head_size,
                                                bool causal) {
    return {batch, queries, keys, heads, key_value_heads, head_size, causal};
  }
};

template <class ProductsPolicy, class IsaTag>
struct KernelsOf<Cpu<ProductsPolicy, IsaTag>> {
  using type = CpuKernels<Cpu<ProductsPolicy, IsaTag>>;
};

}  // namespace weft
