// SPDX-License-Identifier: Apache-2.0
// Fewer key/value heads than tensor ranks: neighbours have copies of one, whose gradients are summed among them, and which counts once.
#include "layer/split_cases.hpp"

#include <weft/report/describe.hpp>

using namespace weft;
using namespace weft::test;

namespace {

// With and without biases, rotary positions, SwiGLU.
template <Index heads, Index key_value_heads>
using Text = Sequential<Embedding<13, 16>, PositionEmbedding<4, 16>,
                        Repeat<2, Named<"learned", Residual<LayerNorm<16>, CausalAttention<16, heads, key_value_heads>>>,
                               Named<"rotary", Residual<RmsNorm<16>, RotaryAttention<16, heads, key_value_heads>>>,
                               Residual<RmsNorm<16>, Linear<16, 32, Bias::no>, SwiGlu, Linear<16, 16, Bias::no>>>,
                        LayerNorm<16>, Linear<16, 13>>;

constexpr SplitCase how{.items = 8, .micro = 4, .sequence = 4};
constexpr SplitCase cut{.items = 8, .micro = 2, .sequence = 4};

template <class Model>
SplitRun on_one() {
  return train_split<Model, 1, false>(mesh(DataParallel{.ranks = 1}), how);
}

}  // namespace

TEST_CASE("two_ranks_share_each_key_value_head") {
  using Model = Text<8, 2>;
  const SplitRun one = on_one<Model>();
  CHECK(one.losses[2] < one.losses[0]);
  compare_runs(train_split<Model, 4, false>(mesh(TensorParallel{.ranks = 4}), how), one, "4 tensor ranks");
  compare_runs(train_split<Model, 4, true>(mesh(TensorParallel{.ranks = 4, .sequence = true}), how), one, "4 tensor ranks, sequence");
  compare_runs(train_split<Model, 4, false>(mesh(DataParallel{.ranks = 2, .bucket_bytes = 500}, TensorParallel{.ranks = 4}), cut), one,
               "2 x 4");
  for (Shard shard : {Shard::optimizer, Shard::gradients, Shard::parameters})
    compare_runs(train_split<Model, 4, false>(mesh(DataParallel{.ranks = 2, .shard = shard}, TensorParallel{.ranks = 4}), cut), one,
                 "2 x 4, sharded " + std::to_string(int(shard)));
  compare_runs(train_split<Model, 4, true>(mesh(Pipeline<>{.stages = 2}, TensorParallel{.ranks = 4, .sequence = true}), cut), one,
               "2 stages x 4, sequence");
}

TEST_CASE("all_ranks_share_one_key_value_head") {
  using Model = Text<8, 1>;
  const SplitRun one = on_one<Model>();
  compare_runs(train_split<Model, 2, false>(mesh(TensorParallel{.ranks = 2}), how), one, "2 tensor ranks");
  compare_runs(train_split<Model, 8, true>(mesh(TensorParallel{.ranks = 8, .sequence = true}), how), one, "8 tensor ranks, sequence");
}

TEST_CASE("copies_of_key_value_heads_are_in_the_ledger") {
  using Train = Plan<Text<8, 2>, mesh(TensorParallel{.ranks = 4}), Batch{.global = 8, .micro = 4, .sequence = 4}, Recipe<Fp64>>;
  // Four attention layers: keys and values, weights in one stretch; two of the layers have biases.
  constexpr LedgerTotals copies = Train::ledger(GroupKind::copies);
  CHECK(copies.calls == 4 + 2);
  CHECK(copies.bytes == 8 * (4 * 2 * 2 * 16 + 2 * 2 * 2));
  CHECK(describe(Train::data()).find("copies") != std::string::npos);
}

TEST_CASE("key_value_heads_that_fit_neither_way_are_refused") {
  using Model =
      Sequential<Linear<2, 24>, LayerNorm<24>, Linear<24, 12 * 2 + 2 * 3 * 2>, Attention<AttentionOptions{12, 3, 2}>, Linear<24, 4>>;
  const auto plan = [](Index ranks) {
    return plan_data<Model>(lower_strategy(mesh(TensorParallel{.ranks = ranks})), {.global = 8, .micro = 4, .sequence = 4});
  };
  for (Index ranks : {1, 3, 6, 12}) CHECK(plan(ranks).fault.rule == PlanRule::none);
  CHECK(plan(2).fault.rule == PlanRule::tensor_divides);
  CHECK(fault_text(plan(4)).find("(attention): 3, tensor ranks 4") != std::string::npos);
  CHECK(plan(24).fault.found == 12);  // the heads
}
