// SPDX-License-Identifier: Apache-2.0
// What the sharding rules of a layer have to do, as numbered cases. For a layer of your own that takes 24 features, with the tensor degrees
// that its rules promise, write
//
//   TEST_CASE("my_layer_divides") { weft::contract::run_sharding_suite<MyLayer<24>, 24, 2, 3, 4>(); }
//
// with doctest, or call the cases. A case throws what is wrong. The layer stands between linear layers that hand it slices, and behind a
// norm that needs whole features, in float64.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include <weft/run/check_gradients.hpp>
#include <weft/run/check_strategy.hpp>
#include <weft/weft.hpp>

namespace weft::contract {

template <class L, Index in>
inline constexpr Index features_out = L::output(Features{in}).channels;

// Slices reach the layer: from a layer divided by outputs, to one divided by inputs.
template <class L, Index in>
using AmongSlices = Sequential<Linear<5, in>, L, Linear<features_out<L, in>, 3>>;
// The layer is given whole features, or rows.
template <class L, Index in>
using BehindNorm = Sequential<Linear<5, in>, LayerNorm<in>, L, LayerNorm<features_out<L, in>>, Linear<features_out<L, in>, 3>>;

inline constexpr Batch sharding_batch{.global = 32, .micro = 16};

template <class L, Index in>
void case_01_is_a_layer_with_rules() {
  static_assert(
      requires { L::splits(Features{in}); },
      "weft[contract.splits]: a layer that can be divided has splits(Features); see layer/split.hpp");
  if (L::splits(Features{in}).size() == 0) throw std::runtime_error(std::string(L::name) + ": splits() lists no way");
}

// Its backward is the derivative of its forward; without this, nothing that follows means anything.
template <class L, Index in>
void case_02_gradients_are_right() {
  const GradientCheck check = check_gradients<BehindNorm<L, in>, MeanSquaredError>({.global = 4, .micro = 4}, [](auto& micro) {
    for (Index i = 0; i < 4 * 5; ++i) micro.values()[i] = std::sin(double(i * 3));
    for (Index i = 0; i < 4 * 3; ++i) micro.real_targets()[i] = std::cos(double(i));
  });
  if (!(check.worst < 1e-5)) throw std::runtime_error(text_of(L::name, ": backward is not the derivative of forward: ", check.where));
}

template <class Model>
SplitKind kind_in(int leaf, Index ranks, bool sequence) {
  const PlanData plan =
      plan_at_start<Model, Recipe<Fp64, MeanSquaredError, Sgd>>(mesh(TensorParallel{.ranks = ranks, .sequence = sequence}), sharding_batch);
  return plan.graph.leaves[std::size_t(leaf)].split;
}

// A rule that no plan takes is no use.
template <class L, Index in, Index... tensor_ranks>
void case_03_is_divided_somewhere() {
  const auto check = [](Index ranks) {
    for (const bool sequence : {false, true})
      if (kind_in<AmongSlices<L, in>>(1, ranks, sequence) != SplitKind::none ||
          kind_in<BehindNorm<L, in>>(2, ranks, sequence) != SplitKind::none)
        return;
    throw std::runtime_error(text_of(L::name, ": with ", ranks, " tensor ranks, no plan takes any of its rules"));
  };
  (check(tensor_ranks), ...);
}

// All that a rank holds is what one rank computes, whatever the degree; calls, copies and memory are compared too.
template <class L, class Model, Index... tensor_ranks>
void trains_as_one_rank_does(const char* where) {
  const auto fill = [](auto& micro, Index step) {
    for (Index r = 0; r < micro.leading.batch; ++r) {
      const double place = double(step * sharding_batch.global + micro.first_item + r);
      for (Index i = 0; i < 5; ++i) micro.values()[r * 5 + i] = std::sin(place * 7 + double(i * 3));
      for (Index i = 0; i < 3; ++i) micro.real_targets()[r * 3 + i] = std::cos(place * 5 + double(i));
    }
  };
  const auto check = [&](Index ranks) {
    for (const bool sequence : {false, true}) {
      const StrategyCheck found = check_strategy<Model, MeanSquaredError, tensor_ranks...>(
          mesh(TensorParallel{.ranks = ranks, .sequence = sequence}), sharding_batch, fill);
      if (!found.passes(1e-9))
        throw std::runtime_error(text_of(L::name, ": ", where, ", ", ranks, " tensor ranks", sequence ? " by rows" : "",
                                         ", it does not train as one rank does: ", found.text()));
    }
  };
  (check(tensor_ranks), ...);
}
template <class L, Index in, Index... tensor_ranks>
void case_04_among_slices_it_trains_as_one_rank() {
  trains_as_one_rank_does<L, AmongSlices<L, in>, tensor_ranks...>("among slices");
}
template <class L, Index in, Index... tensor_ranks>
void case_05_behind_a_norm_it_trains_as_one_rank() {
  trains_as_one_rank_does<L, BehindNorm<L, in>, tensor_ranks...>("behind a norm");
}

template <class L, Index in, Index... tensor_ranks>
void run_sharding_suite() {
  static_assert(sizeof...(tensor_ranks) > 0, "weft[contract.degrees]: name the tensor degrees that the rules promise");
  CHECK_NOTHROW((case_01_is_a_layer_with_rules<L, in>()));
  CHECK_NOTHROW((case_02_gradients_are_right<L, in>()));
  CHECK_NOTHROW((case_03_is_divided_somewhere<L, in, tensor_ranks...>()));
  CHECK_NOTHROW((case_04_among_slices_it_trains_as_one_rank<L, in, tensor_ranks...>()));
  CHECK_NOTHROW((case_05_behind_a_norm_it_trains_as_one_rank<L, in, tensor_ranks...>()));
}

}  // namespace weft::contract
