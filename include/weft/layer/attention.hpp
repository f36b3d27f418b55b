// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/base/number.hpp"
#include "weft/layer/facts.hpp"

namespace weft {

struct AttentionOptions {
  Index heads = 1, key_value_heads = 1, head_size = 1;
  bool causal = true;

  constexpr Index query_width() const { return heads * head_size; }
  constexpr Index key_value_width() const { return key_value_heads * head_size; }
  constexpr Index packed_width() const { return query_width() + 2 * key_value_width(); }
  // Of one rank: its heads, and the key/value heads that they share.
  constexpr AttentionOptions part(Index ranks) const {
    return {heads / ranks, key_value_heads < ranks ? 1 : key_value_heads / ranks, head_size, causal};
  }
  bool operator==(const AttentionOptions&) const = default;
};

// By heads. Where there are fewer key/value heads than ranks, neighbours have copies of one, and each its share of the heads that use it.
constexpr SplitRule attention_split(const AttentionOptions& options) {
  SplitRule rule = split_rule(SplitKind::features, options.heads);
  rule.slicing.push(options.query_width(), options.heads);
  for (int keys_and_values = 0; keys_and_values < 2; ++keys_and_values)
    rule.slicing.push(options.key_value_width(), options.key_value_heads);
  return rule;
}

// softmax(q kᵀ / √D) v for every head (Vaswani et al., arXiv 1706.03762), tiled so that the S×S scores are never stored
// (Dao et al., arXiv 2205.14135). With fewer key/value heads than heads, a group of heads shares one (Ainslie et al., arXiv 2305.13245).
// Shapes: x (B, S, (H + 2·Hkv)·D) = q | k | v, y (B, S, H·D). Keeps x, y and one number a row and head.
// Cost: 4·S·H·D flops a row forward, half when causal; 2.5 times that backward.
template <AttentionOptions options>
struct Attention {
  static constexpr const char* name = "attention";
  static constexpr int version = 1;
  static constexpr Features input{options.packed_width()};

  static constexpr bool valid =
      options.heads > 0 && options.key_value_heads > 0 && options.head_size > 0 && options.heads % options.key_value_heads == 0;
  static constexpr bool explain() {
    static_assert(options.heads > 0 && options.key_value_heads > 0 && options.head_size > 0,
                  "weft[attention.extent]: heads, key/value heads and head size must be at least 1");
    static_assert(options.heads % options.key_value_heads == 0,
                  "weft[attention.groups]: the key/value heads must divide the heads; change one of them");
    return true;
  }

  static constexpr Features output(Features in) { return in == input ? Features{options.query_width()} : Features{}; }

  static constexpr LayerFacts facts(Features, Index sequence) {
    LayerFacts facts;
    facts.saved.push({.elems_per_row = options.heads});  // log Σ exp of the scores
    facts.needs_input = facts.needs_output = true;
    facts.recomputes_alone = true;
    facts.cache_elems_per_row = 2 * options.key_value_width();
    facts.forward_flops_per_row = (options.causal ? 2.0 : 4.0) * double(sequence) * double(options.query_width());
    facts.backward_flops_per_row = 2.5 * facts.forward_flops_per_row;
    return facts;
  }

  static constexpr FixedVector<SplitRule, 4> splits(Features) {
    FixedVector<SplitRule, 4> out;
    out.push(attention_split(options));
    return out;
  }
  template <SplitKind kind, Index ranks>
  using Part = Attention<options.part(ranks)>;

  template <class Context>
  static void forward(Context& context) {
    const auto* x = context.input();
    const auto* key = x + options.query_width();
    const auto* value = key + options.key_value_width();
    Index row_stride = options.packed_width(), batch_stride = context.sequence() * row_stride;
    if (context.cache()) {  // generation: keys and values of all tokens so far, (B, capacity, k | v)
      constexpr Index width = options.key_value_width();
      batch_stride = context.cache_capacity() * 2 * width;
      for (Index b = 0; b < context.batch(); ++b)
        context.kernels().copy_columns(context.sequence(), key + b * context.sequence() * row_stride, row_stride,
                                       context.cache() + b * batch_stride + context.past() * 2 * width, 2 * width, 2 * width);
      key = context.cache(), value = key + width, row_stride = 2 * width;
    }
    context.kernels().attention_forward(context.attention_sizes(options), context.real(1 / square_root(double(options.head_size))), x,
                                        options.packed_width(), key, value, row_stride, batch_stride, context.output(),
                                        options.query_width(), context.cache() ? nullptr : context.saved(0), context.scratch());
  }

  template <class Context>
  static void backward(Context& context) {
    constexpr Index q = options.query_width(), kv = options.key_value_width(), width = options.packed_width();
    const auto* x = context.input();
    auto* dx = context.input_gradient();
    if (!dx) return;
    context.kernels().attention_backward(context.attention_sizes(options), context.real(1 / square_root(double(options.head_size))), x,
                                         width, x + q, x + q + kv, width, context.sequence() * width, context.output_value(), q,
                                         context.saved(0), context.output_gradient(), q, dx, width, dx + q, dx + q + kv, width,
                                         context.sequence() * width, context.scratch());
  }
};

// Rotates q and k of every head by their position (Su et al., arXiv 2104.09864), in the rotate-half convention of Llama.
// Shapes: x, y (B, S, (H + 2·Hkv)·D). Angle of pair (i, i + D/2) at position t: t · base^(-2i/D).
template <AttentionOptions options, Number base = 10000.0>
struct Rotary {
  static constexpr const char* name = "rotary";
  static constexpr int version = 1;
  static constexpr Features input{options.packed_width()};

  static constexpr bool valid = options.head_size % 2 == 0;
  static constexpr bool explain() {
    static_assert(options.head_size % 2 == 0, "weft[rotary.head_size]: rotary positions turn pairs; the head size must be even");
    return true;
  }

  static constexpr Features output(Features in) { return in == input ? in : Features{}; }
  static constexpr FixedVector<SplitRule, 4> splits(Features) {
    FixedVector<SplitRule, 4> out;
    out.push(attention_split(options));
    return out;
  }
  template <SplitKind kind, Index ranks>
  using Part = Rotary<options.part(ranks), base>;

  static constexpr LayerFacts facts(Features, Index) {
    LayerFacts facts;
    facts.in_place = true;
    facts.forward_flops_per_row = facts.backward_flops_per_row = 3.0 * double(options.query_width() + options.key_value_width());
    return facts;
  }

  template <class Context>
  static void forward(Context& context) {
    context.pass_value();
    context.kernels().rotary_forward(context.batch(), context.sequence(), context.past(), options.heads + options.key_value_heads,
                                     options.head_size, options.packed_width(), base.value, context.output());
  }
  template <class Context>
  static void backward(Context& context) {
    if (!context.input_gradient()) return;
    context.pass_gradient();
    context.kernels().rotary_backward(context.batch(), context.sequence(), context.past(), options.heads + options.key_value_heads,
                                      options.head_size, options.packed_width(), base.value, context.input_gradient());
  }
};

}  // namespace weft
