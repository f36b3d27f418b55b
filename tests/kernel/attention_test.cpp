// SPDX-License-Identifier: Apache-2.0
#include <weft/kernel/attention.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace weft;
using kernel::AttentionSizes;
using Values = std::vector<double>;

namespace {

Values noise(Index count, double seed) {
  Values values;
  for (Index i = 0; i < count; ++i) values.push_back(std::sin(double(i) * 12.9898 + seed * double(i % 31) + seed));
  return values;
}

// Dense tensors: q (B, queries, H, D), k and v (B, keys, Hkv, D).
struct Problem {
  AttentionSizes sizes;
  double scale = 0.7;
  Values q, k, v, y, lse;

  explicit Problem(AttentionSizes s) : sizes(s) {
    q = noise(s.batch * s.queries * q_width(), 1), k = noise(s.batch * s.keys * kv_width(), 2), v = noise(s.batch * s.keys * kv_width(), 3);
    y.resize(q.size()), lse.resize(std::size_t(s.batch * s.queries * s.heads));
  }
  Index q_width() const { return sizes.heads * sizes.head_size; }
  Index kv_width() const { return sizes.key_value_heads * sizes.head_size; }

  void forward() {
    kernel::attention_forward(sizes, scale, q.data(), q_width(), k.data(), v.data(), kv_width(), sizes.keys * kv_width(), y.data(),
                              q_width(), lse.data());
  }
};

// softmax(mask(scale · Q Kᵀ)) V with the whole matrix of weights, one head at a time.
Values dense_attention(const Problem& p) {
  const AttentionSizes& s = p.sizes;
  Values y(p.q.size());
  for (Index b = 0; b < s.batch; ++b) {
    for (Index h = 0; h < s.heads; ++h) {
      const Index shared = h * s.key_value_heads / s.heads;
      Values weights(std::size_t(s.queries * s.keys));
      for (Index i = 0; i < s.queries; ++i) {
        double total = 0;
        for (Index j = 0; j < s.keys; ++j) {
          double score = 0;
          for (Index d = 0; d < s.head_size; ++d) {
            score += p.q[std::size_t((b * s.queries + i) * p.q_width() + h * s.head_size + d)] *
                     p.k[std::size_t((b * s.keys + j) * p.kv_width() + shared * s.head_size + d)];
          }
          const bool hidden = s.causal && j > i + (s.keys - s.queries);
          total += weights[std::size_t(i * s.keys + j)] = hidden ? 0.0 : std::exp(p.scale * score);
        }
        for (Index j = 0; j < s.keys; ++j) weights[std::size_t(i * s.keys + j)] /= total;
      }
      for (Index i = 0; i < s.queries; ++i) {
        for (Index j = 0; j < s.keys; ++j) {
          for (Index d = 0; d < s.head_size; ++d) {
            y[std::size_t((b * s.queries + i) * p.q_width() + h * s.head_size + d)] +=
                weights[std::size_t(i * s.keys + j)] * p.v[std::size_t((b * s.keys + j) * p.kv_width() + shared * s.head_size + d)];
          }
        }
      }
    }
  }
  return y;
}

const AttentionSizes cases[] = {
    {2, 4, 4, 2, 2, 3, true}, {2, 4, 4, 2, 1, 3, false}, {1, 3, 7, 4, 2, 5, true}, {1, 3, 2, 4, 1, 2, false}, {2, 1, 6, 1, 1, 4, true}};

TEST_CASE("attention_reference_equals_dense_softmax") {
  for (const AttentionSizes& sizes : cases) {
    Problem problem(sizes);
    problem.forward();
    const Values expected = dense_attention(problem);
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(problem.y[i] == doctest::Approx(expected[i]).epsilon(1e-12));
  }
}

TEST_CASE("attention_reference_lse_is_the_logarithm_of_the_sum") {
  Problem problem({1, 1, 2, 1, 1, 1, true});
  problem.q = {2}, problem.k = {1, -1}, problem.v = {1, 0}, problem.scale = 0.5;
  problem.forward();
  CHECK(problem.lse[0] == doctest::Approx(std::log(std::exp(1.0) + std::exp(-1.0))));
  CHECK(problem.y[0] == doctest::Approx(1 / (1 + std::exp(-2.0))));
}

TEST_CASE("attention_reference_backward_equals_finite_differences") {
  for (const AttentionSizes& sizes : cases) {
    CAPTURE(sizes.queries);
    CAPTURE(sizes.keys);
    CAPTURE(sizes.causal);
    Problem problem(sizes);
    const Values dy = noise(Index(problem.q.size()), 4);
    Values dq(problem.q.size(), 99.0), dk(problem.k.size(), 99.0), dv(problem.v.size(), 99.0);
    problem.forward();
    const Index q_width = problem.q_width(), kv_width = problem.kv_width();
    kernel::attention_backward(sizes, problem.scale, problem.q.data(), q_width, problem.k.data(), problem.v.data(), kv_width,
                               sizes.keys * kv_width, problem.y.data(), q_width, problem.lse.data(), dy.data(), q_width, dq.data(), q_width,
                               dk.data(), dv.data(), kv_width, sizes.keys * kv_width);
    const auto objective = [&] {
      problem.forward();
      double sum = 0;
      for (std::size_t i = 0; i < dy.size(); ++i) sum += dy[i] * problem.y[i];
      return sum;
    };
    const auto check = [&](Values& input, const Values& gradient) {
      for (std::size_t i = 0; i < input.size(); ++i) {
        const double before = input[i], step = 1e-5;
        input[i] = before + step;
        const double above = objective();
        input[i] = before - step;
        const double below = objective();
        input[i] = before;
        CHECK(std::abs((above - below) / (2 * step) - gradient[i]) < 1e-8);
      }
    };
    check(problem.q, dq), check(problem.k, dk), check(problem.v, dv);
  }
}

TEST_CASE("attention_reference_takes_huge_scores") {
  Problem problem({1, 1, 2, 1, 1, 1, false});
  problem.q = {1e4}, problem.k = {1, -1}, problem.v = {3, 5}, problem.scale = 1;
  problem.forward();
  CHECK(problem.y[0] == 3);
  CHECK(problem.lse[0] == 1e4);
  problem.k = {-std::numeric_limits<double>::infinity(), -1};
  problem.forward();
  CHECK(problem.y[0] == 5);
}

TEST_CASE("attention_reference_names_the_broken_rule") {
  const auto message = [](AttentionSizes sizes) -> std::string {
    try {
      kernel::check_attention(sizes);
    } catch (const Error& error) { return error.what(); }
    return "accepted";
  };
  CHECK(message({1, 2, 2, 4, 2, 8, true}) == "accepted");
  CHECK(message({1, 2, 1, 4, 2, 8, false}) == "accepted");
  CHECK(message({1, 2, 1, 4, 2, 8, true}).find("weft[attention.keys]") == 0);
  CHECK(message({1, 2, 2, 4, 3, 8, true}).find("weft[attention.groups]") == 0);
  CHECK(message({1, 2, 2, 4, 0, 8, true}).find("weft[attention.groups]") == 0);
}

}  // namespace
