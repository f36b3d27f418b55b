// SPDX-License-Identifier: Apache-2.0
// Two models of the field as types, under the parameter paths that checkpoint/layouts.hpp maps to Hugging Face's names.
#pragma once

#include <type_traits>

#include "weft/graph/attention_block.hpp"
#include "weft/layer/activation.hpp"
#include "weft/layer/dropout.hpp"
#include "weft/layer/embedding.hpp"
#include "weft/layer/norm.hpp"

namespace weft {

struct GptOptions {
  Index vocabulary = 50257, sequence = 1024, width = 768, heads = 12, layers = 12;
  bool tied = true;  // the head's weight is the embedding's table
  bool bias = true;  // in the linear layers of the blocks
  Number dropout = 0;
  bool operator==(const GptOptions&) const = default;
};

// Without a probability there is no layer at all, so that the layer before can add the residual itself.
// A struct, and the number anew: nvcc loses one that is handed on from alias to alias.
template <GptOptions o, bool = o.dropout.value == 0>
struct GptDropout {
  using type = Sequential<>;
};
template <GptOptions o>
struct GptDropout<o, false> {
  using type = Dropout<Number{o.dropout.value}>;
};

template <GptOptions o, Bias bias>
using GptBlock = Sequential<Named<"attention", Residual<Named<"norm", LayerNorm<o.width>>, CausalAttention<o.width, o.heads, o.heads, bias>,
                                                        typename GptDropout<o>::type>>,
                            Named<"mlp", Residual<Named<"norm", LayerNorm<o.width>>, Named<"up", Linear<o.width, 4 * o.width, bias>>, Gelu,
                                                  Named<"down", Linear<4 * o.width, o.width, bias>>, typename GptDropout<o>::type>>>;

// GPT-2 (Radford et al., 2019): learned positions, pre-norm blocks, tanh-GELU. Logits over the vocabulary for every token.
template <GptOptions o>
using Gpt = Sequential<
    Named<"wte", Embedding<o.vocabulary, o.width>>, Named<"wpe", PositionEmbedding<o.sequence, o.width>>, typename GptDropout<o>::type,
    Named<"blocks", Repeat<o.layers, GptBlock<o, o.bias ? Bias::yes : Bias::no>>>, Named<"norm", LayerNorm<o.width>>,
    Named<"head",
          std::conditional_t<o.tied, Tied<"wte.table", Linear<o.width, o.vocabulary, Bias::no>>, Linear<o.width, o.vocabulary, Bias::no>>>>;

struct LlamaOptions {
  Index vocabulary = 32000, width = 4096, heads = 32, key_value_heads = 32, hidden = 11008, layers = 32;
  bool tied = false;
  Number rotary_base = 10000, epsilon = 1e-5;
  bool operator==(const LlamaOptions&) const = default;
};

template <LlamaOptions o>
using LlamaBlock =
    Sequential<Named<"attention", Residual<Named<"norm", RmsNorm<o.width, o.epsilon>>,
                                           RotaryAttention<o.width, o.heads, o.key_value_heads, o.rotary_base>>>,
               Named<"mlp", Residual<Named<"norm", RmsNorm<o.width, o.epsilon>>, Named<"gate_up", Linear<o.width, 2 * o.hidden, Bias::no>>,
                                     SwiGlu, Named<"down", Linear<o.hidden, o.width, Bias::no>>>>>;

// Llama (Touvron et al., arXiv 2302.13971): RMSNorm, rotary positions, SwiGLU, grouped queries.
template <LlamaOptions o>
using Llama = Sequential<Named<"wte", Embedding<o.vocabulary, o.width>>, Named<"blocks", Repeat<o.layers, LlamaBlock<o>>>,
                         Named<"norm", RmsNorm<o.width, o.epsilon>>,
                         Named<"head", std::conditional_t<o.tied, Tied<"wte.table", Linear<o.width, o.vocabulary, Bias::no>>,
                                                          Linear<o.width, o.vocabulary, Bias::no>>>>;

}  // namespace weft
