// SPDX-License-Identifier: Apache-2.0
// The layouts that weft knows: its own, and those of GPT-2 and Llama in Hugging Face's files. The paths are those of Gpt and Llama in
// weft/graph/models.hpp.
#pragma once

#include "weft/checkpoint/model_file.hpp"

namespace weft::checkpoint {

// The model's own paths and shapes, for any model.
inline Layout path_layout() { return {.title = "weft's own paths", .by_path = true}; }

// Hugging Face's GPT2LMHeadModel and GPT2Model. Its linear layers hold (in, out). The head is usually the table of tokens and then has no
// tensor; if the file has one all the same it must be equal. Masks of attention, which old files hold, are passed over.
inline Layout gpt2_layout() {
  return {.title = "GPT-2",
          .rules = {{"wte.table", "wte.weight"},
                    {"wpe.table", "wpe.weight"},
                    {"blocks.{i}.attention.norm.gain", "h.{i}.ln_1.weight"},
                    {"blocks.{i}.attention.norm.shift", "h.{i}.ln_1.bias"},
                    {"blocks.{i}.attention.qkv.weight", "h.{i}.attn.c_attn.weight", true},
                    {"blocks.{i}.attention.qkv.bias", "h.{i}.attn.c_attn.bias"},
                    {"blocks.{i}.attention.projection.weight", "h.{i}.attn.c_proj.weight", true},
                    {"blocks.{i}.attention.projection.bias", "h.{i}.attn.c_proj.bias"},
                    {"blocks.{i}.mlp.norm.gain", "h.{i}.ln_2.weight"},
                    {"blocks.{i}.mlp.norm.shift", "h.{i}.ln_2.bias"},
                    {"blocks.{i}.mlp.up.weight", "h.{i}.mlp.c_fc.weight", true},
                    {"blocks.{i}.mlp.up.bias", "h.{i}.mlp.c_fc.bias"},
                    {"blocks.{i}.mlp.down.weight", "h.{i}.mlp.c_proj.weight", true},
                    {"blocks.{i}.mlp.down.bias", "h.{i}.mlp.c_proj.bias"},
                    {"norm.gain", "ln_f.weight"},
                    {"norm.shift", "ln_f.bias"},
                    {"head.weight", "lm_head.weight"}},
          .spare = {{"lm_head.weight", "wte.weight"}, {"h.{i}.attn.bias"}, {"h.{i}.attn.masked_bias"}},
          .prefixes = {"transformer."}};
}

// Hugging Face's LlamaForCausalLM. Queries, keys and values are three tensors, gate and up are two. A head that is tied has no tensor, or
// an equal one.
inline Layout llama_layout() {
  return {.title = "Llama",
          .rules = {{"wte.table", "model.embed_tokens.weight"},
                    {"blocks.{i}.attention.norm.gain", "model.layers.{i}.input_layernorm.weight"},
                    {"blocks.{i}.attention.qkv.weight", "model.layers.{i}.self_attn.{q,k,v}_proj.weight", false,
                     "blocks.{i}.attention.projection.weight"},
                    {"blocks.{i}.attention.projection.weight", "model.layers.{i}.self_attn.o_proj.weight"},
                    {"blocks.{i}.mlp.norm.gain", "model.layers.{i}.post_attention_layernorm.weight"},
                    {"blocks.{i}.mlp.gate_up.weight", "model.layers.{i}.mlp.{gate,up}_proj.weight"},
                    {"blocks.{i}.mlp.down.weight", "model.layers.{i}.mlp.down_proj.weight"},
                    {"norm.gain", "model.norm.weight"},
                    {"head.weight", "lm_head.weight"}},
          .spare = {{"lm_head.weight", "model.embed_tokens.weight"}, {"model.layers.{i}.self_attn.rotary_emb.inv_freq"}}};
}

}  // namespace weft::checkpoint
