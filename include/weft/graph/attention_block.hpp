// SPDX-License-Identifier: Apache-2.0
// The usual compositions around attention, with the names that checkpoints use.
#pragma once

#include "weft/graph/nodes.hpp"
#include "weft/layer/attention.hpp"
#include "weft/layer/linear.hpp"

namespace weft {

constexpr AttentionOptions attention_options(Index features, Index heads, Index key_value_heads, bool causal) {
  return {heads, key_value_heads, features / heads, causal};
}

// Projection to q, k, v · attention · projection back. Parameters qkv.weight ((H + 2·Hkv)·D, C), projection.weight (C, H·D), biases.
template <Index C, Index H, Index KeyValueHeads = H, Bias bias = Bias::yes, bool causal = true>
using SelfAttention = Sequential<Named<"qkv", Linear<C, attention_options(C, H, KeyValueHeads, causal).packed_width(), bias>>,
                                 Attention<attention_options(C, H, KeyValueHeads, causal)>, Named<"projection", Linear<C, C, bias>>>;

template <Index C, Index H, Index KeyValueHeads = H, Bias bias = Bias::yes>
using CausalAttention = SelfAttention<C, H, KeyValueHeads, bias, true>;

// The same with rotary positions on q and k, without biases: Llama's.
template <Index C, Index H, Index KeyValueHeads = H, Number base = 10000.0>
using RotaryAttention = Sequential<Named<"qkv", Linear<C, attention_options(C, H, KeyValueHeads, true).packed_width(), Bias::no>>,
                                   Rotary<attention_options(C, H, KeyValueHeads, true), Number{base.value}>,  // not `base`: nvcc loses it
                                   Attention<attention_options(C, H, KeyValueHeads, true)>, Named<"projection", Linear<C, C, Bias::no>>>;

}  // namespace weft
