// SPDX-License-Identifier: Apache-2.0
// The reference trajectories of a GPT-2 with tied head and of a Llama with grouped queries, by 1 to 8 ranks and several micro-batch counts.
#include "run/golden_file.hpp"

using namespace weft;
using namespace weft::test;

namespace {

using Gpt2 = Gpt<GptOptions{.vocabulary = 65, .sequence = 16, .width = 32, .heads = 4, .layers = 2}>;
using TinyLlama = Llama<LlamaOptions{.vocabulary = 48, .width = 32, .heads = 4, .key_value_heads = 2, .hidden = 64, .layers = 2}>;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  if (const std::size_t at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

// What a text model of four heads and four units can be divided into: alone, in pairs, all axes.
std::vector<GoldenStrategy> text_strategies() {
  std::vector<GoldenStrategy> out;
  const auto add = [&](const char* name, const auto&... axes) { out.push_back(golden_strategy(name, mesh(axes...))); };
  add("zero1_4", DataParallel{.ranks = 4, .shard = Shard::optimizer});
  add("zero2_3 of 4", DataParallel{.ranks = 4, .shard = Shard::gradients, .shard_ranks = 2});
  add("zero3_4", DataParallel{.ranks = 4, .shard = Shard::parameters});
  add("pipe2", Pipeline<>{.stages = 2});
  add("pipe2 gpipe", Pipeline<schedule::GPipe>{.stages = 2});
  add("pipe2 interleaved", Pipeline<schedule::Interleaved>{.stages = 2, .chunks = 2});
  add("pipe4 h1", Pipeline<schedule::ZeroBubbleH1>{.stages = 4});
  add("pipe2 h2", Pipeline<schedule::ZeroBubbleH2>{.stages = 2});
  add("pipe2 v", Pipeline<schedule::ZeroBubbleV>{.stages = 2});
  add("tensor2", TensorParallel{.ranks = 2});
  add("tensor4 sequence", TensorParallel{.ranks = 4, .sequence = true});
  add("recompute", Activations{.recompute = Recompute::full});
  add("data2 pipe2 zero3", DataParallel{.ranks = 2, .shard = Shard::parameters}, Pipeline<>{.stages = 2});
  add("data2 pipe2 tensor2", DataParallel{.ranks = 2, .shard = Shard::optimizer}, Pipeline<schedule::ZeroBubbleH1>{.stages = 2},
      TensorParallel{.ranks = 2, .sequence = true});
  add("reproducible", DataParallel{.ranks = 2}, Pipeline<>{.stages = 2}, Reproducible{});
  return out;
}

std::string norm_name(const std::string& path) { return replaced(replaced(path, ".gain", ".weight"), ".shift", ".bias"); }

}  // namespace

TEST_CASE_TEMPLATE("golden_gpt2_is_followed", Real, double, float) {
  const GoldenFile golden("gpt2_tiny");
  const auto lookup = [&](const std::string& kind, std::string path) {
    const bool linear =
        path.ends_with("qkv.weight") || path.ends_with("projection.weight") || path.ends_with("up.weight") || path.ends_with("down.weight");
    for (const auto& [from, to] : {std::pair<std::string, std::string>{"blocks.", "h."},
                                   {"attention.norm", "ln_1"},
                                   {"mlp.norm", "ln_2"},
                                   {"attention.qkv", "attn.c_attn"},
                                   {"attention.projection", "attn.c_proj"},
                                   {"mlp.up", "mlp.c_fc"},
                                   {"mlp.down", "mlp.c_proj"},
                                   {".table", ".weight"}})
      path = replaced(path, from, to);
    if (path.starts_with("norm.")) path = replaced(path, "norm", "ln_f");
    path = kind + "/" + norm_name(path);
    return linear ? golden.transposed(path) : golden[path];
  };
  const AdamW rule{.rate = 1e-2, .beta2 = 0.99, .decay = 0.1, .decay_on = DecayOn::all};
  const Trajectory trajectory{.items = 8, .sequence = 16, .steps = 5, .rate = 1e-2, .clip = 1, .adam = true};
  follow<Gpt2, Real>(golden, trajectory, rule, data_ranks({1, 2, 4, 8}), {1, 2, 8}, lookup);
  follow<Gpt2, Real, 2, 4>(golden, trajectory, rule, text_strategies(), {1}, lookup);
}

TEST_CASE_TEMPLATE("golden_llama_is_followed", Real, double, float) {
  const GoldenFile golden("llama_tiny");
  const auto lookup = [&](const std::string& kind, const std::string& path) {
    const auto joined = [&](const std::string& from,
                            std::initializer_list<const char*> parts) {  // rows of several matrices, one after the other
      std::vector<double> all;
      for (const char* part : parts) {
        const auto& values = golden[kind + "/model." + replaced(replaced(path, "blocks", "layers"), from, part)];
        all.insert(all.end(), values.begin(), values.end());
      }
      return all;
    };
    if (path.ends_with("qkv.weight")) return joined("attention.qkv", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"});
    if (path.ends_with("gate_up.weight")) return joined("mlp.gate_up", {"mlp.gate_proj", "mlp.up_proj"});
    if (path.ends_with("projection.weight")) return joined("attention.projection", {"self_attn.o_proj"});
    if (path.ends_with("down.weight")) return joined("mlp.down", {"mlp.down_proj"});
    if (path.ends_with("attention.norm.gain")) return joined("attention.norm.gain", {"input_layernorm.weight"});
    if (path.ends_with("mlp.norm.gain")) return joined("mlp.norm.gain", {"post_attention_layernorm.weight"});
    if (path == "wte.table") return golden[kind + "/model.embed_tokens.weight"];
    if (path == "norm.gain") return golden[kind + "/model.norm.weight"];
    return golden[kind + "/lm_head.weight"];
  };
  const AdamW rule{.rate = 3e-3, .beta2 = 0.95, .decay = 0.1, .decay_on = DecayOn::all};
  const Trajectory trajectory{.items = 8, .sequence = 12, .steps = 5, .rate = 3e-3, .clip = 1, .adam = true};
  follow<TinyLlama, Real>(golden, trajectory, rule, data_ranks({1, 2, 4, 8}), {1, 2, 8}, lookup);
  follow<TinyLlama, Real, 2, 4>(golden, trajectory, rule, text_strategies(), {2}, lookup);
}
