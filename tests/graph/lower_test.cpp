// SPDX-License-Identifier: Apache-2.0
#include <weft/graph/lower.hpp>
#include <weft/graph/models.hpp>
#include <weft/layer/pool2d.hpp>

#include <doctest/doctest.h>

#include <set>

using namespace weft;

namespace {

std::set<std::string> paths(const GraphData& graph) {
  std::set<std::string> out;
  for (int p = 0; p < int(graph.parameters.size()); ++p) out.insert(path_of(graph, p, 0));
  return out;
}

}  // namespace

TEST_CASE("lower_gpt_has_the_published_number_of_parameters") {
  // GPT-2 small: 124,439,808 with the tied head (Radford et al.; Hugging Face's count of the same weights).
  constexpr Index gpt2 = lower<Gpt<GptOptions{}>>().num_parameters();
  static_assert(gpt2 == 124439808, "a GPT-2 of 12 layers has 124,439,808 parameters");
  // Llama 2 7B: 6,738,415,616.
  constexpr Index llama = lower<Llama<LlamaOptions{}>>().num_parameters();
  static_assert(llama == 6738415616, "a Llama of 32 layers has 6,738,415,616 parameters");
  CHECK(gpt2 == 124439808);
}

TEST_CASE("lower_named_parts_give_checkpoint_paths") {
  using Model = Gpt<GptOptions{.vocabulary = 11, .sequence = 4, .width = 8, .heads = 2, .layers = 3}>;
  const GraphData graph = lower<Model>(4);
  const auto all = paths(graph);
  for (const char* path :
       {"wte.table", "wpe.table", "blocks.0.attention.norm.gain", "blocks.0.attention.qkv.weight", "blocks.0.attention.projection.bias",
        "blocks.0.mlp.norm.shift", "blocks.0.mlp.up.weight", "blocks.0.mlp.down.weight", "norm.gain", "head.weight"})
    CHECK_MESSAGE(all.count(path) == 1, path);
  CHECK(path_of(graph, 4, 2) == "blocks.2.attention.qkv.weight");
}

TEST_CASE("lower_unnamed_parts_get_distinct_numbers") {
  using Model = Sequential<Linear<4, 4>, Repeat<2, Linear<4, 4>, Relu>, Repeat<2, Linear<4, 4>>, Sequential<Linear<4, 4>, Linear<4, 3>>>;
  const GraphData graph = lower<Model>();
  REQUIRE(graph.fault.rule == GraphRule::none);
  std::set<std::string> all;
  int count = 0;
  for (int p = 0; p < int(graph.parameters.size()); ++p)
    for (Index r = 0; r < graph.frame_of(graph.parameters[std::size_t(p)]).count; ++r, ++count) all.insert(path_of(graph, p, r));
  CHECK(int(all.size()) == count);
}

TEST_CASE("lower_repeat_does_not_grow_the_tables") {
  using Small = Gpt<GptOptions{.vocabulary = 11, .sequence = 4, .width = 8, .heads = 2, .layers = 2}>;
  using Deep = Gpt<GptOptions{.vocabulary = 11, .sequence = 4, .width = 8, .heads = 2, .layers = 200}>;
  CHECK(lower<Small>().ops.size() == lower<Deep>().ops.size());
  CHECK(lower<Small>().leaves.size() == lower<Deep>().leaves.size());
  CHECK(lower<Deep>().num_units == 200 + 4);
}

TEST_CASE("lower_residual_is_fused_into_the_last_layer_where_that_can_add") {
  using Fused = Sequential<Residual<LayerNorm<8>, Linear<8, 8>>>;
  using Apart = Sequential<Residual<LayerNorm<8>, Linear<8, 8>, Gelu>>;
  CHECK(lower<Fused>().ops.size() == 2);
  CHECK(lower<Fused>().ops[1].second == 0);
  CHECK(lower<Apart>().ops.size() == 4);
  CHECK(lower<Apart>().ops[3].kind == OpKind::add);
}

TEST_CASE("lower_wrong_shapes_name_the_layer_and_the_numbers") {
  const GraphFault meets = lower<Sequential<Linear<3, 4>, Linear<5, 6>>>().fault;
  CHECK(meets.rule == GraphRule::shape_meets);
  CHECK(meets.leaf == 1);
  CHECK(meets.given.channels == 4);
  CHECK(meets.wanted.channels == 5);
  CHECK(lower<Sequential<Residual<Linear<3, 4>>>>().fault.rule == GraphRule::residual_matches);
  CHECK(lower<Sequential<Linear<2, 3>, Sum<Linear<3, 4>, Linear<3, 5>>>>().fault.rule == GraphRule::sum_matches);
  CHECK(lower<Sequential<Repeat<2, Linear<3, 4>>>>().fault.rule == GraphRule::repeat_matches);
  CHECK(lower<Sequential<Embedding<5, 4>, Tied<"no.such", Linear<4, 5, Bias::no>>>>().fault.rule == GraphRule::tie_owner);
  CHECK(lower<Sequential<Named<"e", Embedding<5, 4>>, Tied<"e.table", Linear<4, 6, Bias::no>>>>().fault.rule == GraphRule::tie_extents);
  CHECK(lower<Sequential<Input<1, 2, 2>, MaxPool2d<Pool2dOptions{.kernel = 3, .stride = 3}>>>().fault.rule == GraphRule::shape_meets);
  CHECK(lower<Sequential<>>().fault.rule == GraphRule::empty);
}

TEST_CASE("lower_tie_has_one_storage") {
  using Model = Sequential<Named<"e", Embedding<5, 4>>, Linear<4, 4>, Tied<"e.table", Linear<4, 5>>, Linear<5, 2>>;
  const GraphData graph = lower<Model>();
  REQUIRE(graph.fault.rule == GraphRule::none);
  CHECK(graph.num_parameters() == 5 * 4 + (16 + 4) + 5 + (10 + 2));
  const int tied = graph.leaves[2].first_parameter;
  CHECK(graph.parameters[std::size_t(tied)].owner == 0);
  CHECK(graph.first_elem(tied, 0) == graph.first_elem(0, 0));
  CHECK(graph.first_elem(tied + 1, 0) % parameter_alignment_elems == 0);
}

TEST_CASE("lower_concat_counts_channels") {
  using Model = Sequential<Linear<3, 4>, Concat<Linear<4, 2>, Sequential<>, Linear<4, 5>>>;
  const GraphData graph = lower<Model>();
  REQUIRE(graph.fault.rule == GraphRule::none);
  CHECK(graph.output.channels == 2 + 4 + 5);
}

TEST_CASE("lower_types_and_tables_have_the_same_leaves") {
  using Nested = Sequential<Linear<4, 4>, Named<"a", Repeat<3, Linear<4, 4>, Residual<Repeat<2, Linear<4, 4>>>>>, Sum<Relu, Sequential<>>,
                            Linear<4, 2>>;
  const GraphData graph = lower<Nested>();
  REQUIRE(graph.fault.rule == GraphRule::none);
  CHECK(Leaves<Nested>::size == int(graph.leaves.size()));
  for_each_type(Leaves<Nested>{}, [&]<int I, class L>() { CHECK(same_text(graph.leaves[std::size_t(I)].name, L::name)); });
}
