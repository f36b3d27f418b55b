// SPDX-License-Identifier: Apache-2.0
// Every layer of sequence models, alone and in the compositions that share gradients' memory, against finite differences in float64.
#include "layer/gradients.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE("gradients_of_linear_and_losses") {
  check<Sequential<Linear<4, 5>, Linear<5, 3, Bias::no>>>("linear");
  check<Sequential<Linear<4, 3>>, SoftmaxCrossEntropy<CrossEntropyOptions{.ignored = -100, .label_smoothing = 0.2}>>("label smoothing");
}

TEST_CASE("gradients_of_activations") {
  check<Sequential<Linear<4, 6>, Relu, Linear<6, 3>>>("relu", 3, 1, 1, 1e-4);  // finite differences may cross its edge
  check<Sequential<Linear<4, 6>, Silu, Linear<6, 3>>>("silu");
  check<Sequential<Linear<4, 6>, Gelu, Linear<6, 3>>>("gelu tanh");
  check<Sequential<Linear<4, 6>, GeluErf, Linear<6, 3>>>("gelu erf");
  check<Sequential<Linear<4, 6>, SwiGlu, Linear<3, 3>>>("swiglu");
}

TEST_CASE("gradients_of_norms_and_dropout") {
  check<Sequential<Linear<4, 7>, LayerNorm<7>, Linear<7, 3>>>("layer norm");
  check<Sequential<Linear<4, 7>, RmsNorm<7>, Linear<7, 3>>>("rms norm");
  check<Sequential<Linear<4, 7>, Dropout<0.4>, Linear<7, 3>>>("dropout", 5);
}

TEST_CASE("gradients_of_embeddings_and_ties") {
  check<Sequential<Embedding<7, 6>, PositionEmbedding<5, 6>, Linear<6, 4>>>("embedding and positions", 2, 5);
  check<Sequential<Named<"e", Embedding<7, 6>>, Residual<LayerNorm<6>, Linear<6, 6>>, Tied<"e.table", Linear<6, 7, Bias::no>>>>("tie", 2, 3,
                                                                                                                                2);
}

TEST_CASE("gradients_of_attention") {
  check<Sequential<Linear<4, 12>, Attention<AttentionOptions{.heads = 2, .key_value_heads = 2, .head_size = 2}>, Linear<4, 3>>>("causal", 2,
                                                                                                                                5);
  check<Sequential<Linear<4, 12>, Attention<AttentionOptions{.heads = 2, .key_value_heads = 2, .head_size = 2, .causal = false}>,
                   Linear<4, 3>>>("full", 2, 5);
  check<Sequential<Linear<4, 24>, Attention<AttentionOptions{.heads = 4, .key_value_heads = 1, .head_size = 4}>, Linear<16, 3>>>("grouped",
                                                                                                                                 2, 6);
  check<Sequential<Linear<4, 16>, Rotary<AttentionOptions{.heads = 2, .key_value_heads = 1, .head_size = 4}>,
                   Attention<AttentionOptions{.heads = 2, .key_value_heads = 1, .head_size = 4}>, Linear<8, 3>>>("rotary", 2, 6);
}

TEST_CASE("gradients_of_compositions") {
  check<Sequential<Linear<4, 5>, Residual<Linear<5, 5>>, Linear<5, 3>>>("residual of one layer");
  check<Sequential<Linear<4, 5>, Residual<Dropout<0.3>>, Linear<5, 3>>>("residual of one layer in place", 5);
  check<Sequential<Linear<4, 5>, Residual<LayerNorm<5>, Linear<5, 5>, Gelu>, Linear<5, 3>>>("residual that ends in an activation");
  check<Sequential<Linear<4, 5>, Residual<Residual<LayerNorm<5>, Linear<5, 5>>, Residual<Linear<5, 5>>>, Linear<5, 3>>>("nested residuals");
  check<Sequential<Linear<4, 5>, Sum<Linear<5, 5>, Sequential<>, Residual<Gelu, Linear<5, 5>>>, Linear<5, 3>>>("sum");
  check<Sequential<Linear<4, 5>, Sum<Sequential<>, Sequential<>>, Linear<5, 3>>>("x + x");
  check<Sequential<Linear<4, 5>, Concat<Linear<5, 2>, Sequential<>, Sequential<Gelu, Linear<5, 3>>>, Linear<10, 3>>>("concat");
  check<Sequential<Linear<4, 5>, Concat<Residual<Linear<5, 5>>, Sum<Gelu, Dropout<0.2>>>, Linear<10, 3>>>("branches in branches", 5);
  check<Sequential<Linear<4, 5>, Repeat<3, Residual<LayerNorm<5>, Repeat<2, Linear<5, 5>, Gelu>>>, Linear<5, 3>>>("repeat in repeat", 3, 1,
                                                                                                                  2);
}

TEST_CASE("gradients_of_whole_models") {
  check<Gpt<GptOptions{.vocabulary = 7, .sequence = 5, .width = 8, .heads = 2, .layers = 2, .dropout = 0.1}>>("gpt", 2, 5, 2);
  check<Llama<LlamaOptions{.vocabulary = 7, .width = 8, .heads = 4, .key_value_heads = 2, .hidden = 6, .layers = 2}>>("llama", 2, 5, 2);
}
