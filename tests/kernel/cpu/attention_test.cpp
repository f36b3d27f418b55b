// SPDX-License-Identifier: Apache-2.0
#include "attention_cases.hpp"

#include <algorithm>
#include <limits>
#include <string>

using namespace attention_cases;

namespace {

TEST_CASE_TEMPLATE("attention_any_sizes_equals_the_reference", Real, float, double) {
  for (const bool causal : {true, false}) {
    for (const Index head_size : {5, 8, 24, 32, 64}) {
      check_against_reference<Real>({2, 13, 13, 2, 2, head_size, causal}, 3);
      check_against_reference<Real>({1, 7, 40, 4, 2, head_size, causal}, 1);   // past = 33
      check_against_reference<Real>({2, 1, 150, 4, 1, head_size, causal}, 0);  // one query, more than a tile of keys
      check_against_reference<Real>({1, 1, 20, 8, 1, head_size, causal}, 5);
      check_against_reference<Real>({1, 5, 5, 1, 1, head_size, causal}, 0);
    }
    check_against_reference<Real>({1, 64, 64, 2, 1, 32, causal}, 0);
    check_against_reference<Real>({1, 200, 200, 1, 1, 32, causal}, 7);  // several tiles of queries and of keys
    check_against_reference<Real>({1, 70, 203, 2, 1, 17, causal}, 2);
    check_against_reference<Real>({1, 2, 300, 2, 1, 64, causal}, 2);
    check_against_reference<Real>({1, 9, 33, 1, 1, 256, causal}, 1);
    check_against_reference<Real>({2, 1, 1, 3, 3, 1, causal}, 1);
  }
}

TEST_CASE("attention_many_keys_and_wide_heads_fit_the_scratch_of_a_rank") {
  Problem<double> wide({1, 3, 3, 1, 1, 768, true}, 0), expected({1, 3, 3, 1, 1, 768, true}, 0);
  wide.tiled(), expected.reference();
  CHECK(difference(wide.y, expected.y) < 1e-12);
  wide.tiled_backward(), expected.reference_backward();
  CHECK(difference(wide.dkv, expected.dkv) < 1e-11);
}

TEST_CASE("attention_without_enough_scratch_is_refused") {
  Problem<float> problem({1, 64, 64, 1, 1, 32, true}, 0);
  const auto id = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const Error& error) { return error.id(); }
    return "no error";
  };
  CHECK(id([&] { problem.tiled({arena[0].bytes, 1024}); }) == "attention.scratch");
  CHECK(id([&] { problem.tiled_backward({arena[0].bytes, 1024}); }) == "attention.scratch");
  problem.sizes.keys = 63;
  CHECK(id([&] { problem.tiled(); }) == "attention.keys");
  CHECK(id([&] { problem.reference_backward(); }) == "attention.keys");
  problem.sizes = {1, 4, 4, 3, 2, 8, false};
  CHECK(id([&] { problem.tiled_backward(); }) == "attention.groups");
  CHECK(id([&] { problem.reference(); }) == "attention.groups");
}

TEST_CASE("attention_without_keys_is_zero") {
  Problem<float> problem({2, 3, 0, 2, 1, 8, false}, 0), expected({2, 3, 0, 2, 1, 8, false}, 0);
  problem.tiled(), expected.reference();
  CHECK(difference(problem.y, std::vector<float>(problem.y.size(), 0.0f)) == 0);
  CHECK(problem.y == expected.y);
  CHECK(problem.lse == expected.lse);
  CHECK(problem.lse[0] == -std::numeric_limits<float>::infinity());
  problem.tiled_backward(), expected.reference_backward();
  CHECK(problem.dq == expected.dq);
  CHECK(problem.dq == std::vector<float>(problem.dq.size(), 0.0f));
}

TEST_CASE_TEMPLATE("attention_of_a_sequence_does_not_depend_on_the_batch", Real, float, double) {
  const AttentionSizes sizes{3, 70, 70, 2, 1, 32, true};
  Problem<Real> together(sizes, 2);
  together.tiled(), together.tiled_backward();
  for (Index b = 0; b < sizes.batch; ++b) {
    Problem<Real> alone({1, 70, 70, 2, 1, 32, true}, 2);
    const auto part = [&](const std::vector<Real>& all, const std::vector<Real>& one) {
      return std::vector<Real>(all.begin() + b * Index(one.size()), all.begin() + (b + 1) * Index(one.size()));
    };
    alone.q = part(together.q, alone.q), alone.kv = part(together.kv, alone.kv), alone.dy = part(together.dy, alone.dy);
    alone.tiled(), alone.tiled_backward();
    CHECK(alone.y == part(together.y, alone.y));
    CHECK(alone.lse == part(together.lse, alone.lse));
    CHECK(alone.dq == part(together.dq, alone.dq));
    CHECK(alone.dkv == part(together.dkv, alone.dkv));
  }
}

TEST_CASE_TEMPLATE("attention_huge_scores_stay_finite", Real, float, double) {
  for (const Index queries : {40, 1}) {
    const AttentionSizes sizes{1, queries, 300, 2, 1, 16, true};
    Problem<Real> actual(sizes, 0, 50.0), expected(sizes, 0, 50.0);  // scores of about ±1e4
    actual.tiled(), expected.reference();
    for (std::size_t i = 0; i < actual.y.size(); ++i) {
      REQUIRE(std::isfinite(actual.y[i]));
      // Two scores that nearly tie are told apart only to rounding of their own size.
      CHECK(double(actual.y[i]) == doctest::Approx(double(expected.y[i])).epsilon(sizeof(Real) == 8 ? 1e-8 : 0.05));
    }
    actual.tiled_backward();
    CHECK(std::isfinite(actual.dq[3]));
  }
}

TEST_CASE_TEMPLATE("attention_scores_of_minus_infinity_weigh_nothing", Real, float, double) {
  // The first 200 keys score −∞ for every query: whole tiles pass before anything counts.
  for (const Index queries : {9, 1}) {
    const AttentionSizes sizes{1, queries, 210, 1, 1, 16, false};
    Problem<Real> actual(sizes, 0), expected(sizes, 0);
    for (auto* problem : {&actual, &expected}) {
      for (Index i = 0; i < queries; ++i) problem->q[std::size_t(i * problem->q_stride)] = 1;
      for (Index j = 0; j < 200; ++j) problem->kv[std::size_t(j * problem->kv_stride)] = -std::numeric_limits<Real>::infinity();
    }
    actual.tiled(), expected.reference();
    CHECK(difference(actual.y, expected.y) < tolerance<Real>);
    CHECK(difference(actual.lse, expected.lse) < tolerance<Real>);
  }
}

TEST_CASE_TEMPLATE("attention_infinity_in_the_future_does_not_reach_the_past", Real, float, double) {
  const AttentionSizes sizes{1, 40, 40, 1, 1, 16, true};
  for (const Real poison : {std::numeric_limits<Real>::infinity(), std::numeric_limits<Real>::quiet_NaN()}) {
    Problem<Real> actual(sizes, 0), expected(sizes, 0);
    expected.tiled(), expected.tiled_backward();
    for (Index c = 0; c < actual.kv_stride; ++c) actual.kv[std::size_t(30 * actual.kv_stride + c)] = poison;
    actual.tiled();
    for (Index i = 0; i < 40; ++i) {
      for (Index d = 0; d < 16; ++d) {
        const std::size_t at = std::size_t(i * actual.y_stride + d);
        if (i < 30) CHECK(actual.y[at] == expected.y[at]);
        if (i >= 30) CHECK(!std::isfinite(actual.y[at]));
      }
    }
    actual.tiled_backward();
    for (Index i = 0; i < 30; ++i) CHECK(actual.dq[std::size_t(i * actual.q_stride)] == expected.dq[std::size_t(i * expected.q_stride)]);
  }
}

TEST_CASE_TEMPLATE("attention_tokens_appended_to_a_cache_equal_the_whole_sequence", Real, float, double) {
  const Index tokens = 150, heads = 4, shared = 2, D = 32, width = (heads + 2 * shared) * D, cached = 2 * shared * D;
  std::vector<Real> row;
  Problem<Real>::fill(row, tokens * width, 5, 1.0);
  std::vector<Real> whole(std::size_t(tokens * heads * D)), cache(std::size_t(tokens * cached)), y(std::size_t(heads * D));
  const Real scale = Real(1 / std::sqrt(double(D)));
  cpu::attention_forward<NoProducts, simd::Native>({1, tokens, tokens, heads, shared, D, true}, scale, row.data(), width,
                                                   row.data() + heads * D, row.data() + (heads + shared) * D, width, tokens * width,
                                                   whole.data(), heads * D, static_cast<Real*>(nullptr), scratch);
  double most = 0;
  for (Index t = 0; t < tokens; ++t) {
    const Real* const token = row.data() + t * width;
    std::copy_n(token + heads * D, cached, cache.data() + t * cached);
    cpu::attention_forward<NoProducts, simd::Native>({1, 1, t + 1, heads, shared, D, true}, scale, token, width, cache.data(),
                                                     cache.data() + shared * D, cached, tokens * cached, y.data(), heads * D,
                                                     static_cast<Real*>(nullptr), scratch);
    for (Index c = 0; c < heads * D; ++c) {
      most = std::max(most, std::abs(double(y[std::size_t(c)]) - double(whole[std::size_t(t * heads * D + c)])));
    }
  }
  CHECK(most < tolerance<Real>);
}

}  // namespace
