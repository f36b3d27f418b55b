// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <weft/comm/reduce_elements.hpp>

using weft::Index, weft::Reduction;

namespace {

template <class T>
T one_by_one(Reduction reduction, const std::vector<std::vector<T>>& sources, std::size_t i) {
  T total = sources[0][i];
  for (std::size_t s = 1; s < sources.size(); ++s) {
    const T next = sources[s][i];
    if (reduction == Reduction::sum || reduction == Reduction::average) total += next;
    if (reduction == Reduction::product) total *= next;
    if (reduction == Reduction::minimum) total = std::isnan(next) || std::isnan(total) ? total + next : std::min(total, next);
    if (reduction == Reduction::maximum) total = std::isnan(next) || std::isnan(total) ? total + next : std::max(total, next);
  }
  return reduction == Reduction::average ? total / T(sources.size()) : total;
}

template <class Isa, class T>
void check_against_plain_loop() {
  for (const Reduction reduction : {Reduction::sum, Reduction::product, Reduction::minimum, Reduction::maximum, Reduction::average})
    for (std::size_t num_sources = 1; num_sources <= 5; ++num_sources)
      for (std::size_t count = 0; count <= 140; count += count < 70 ? 1 : 13) {
        std::vector<std::vector<T>> sources(num_sources);
        for (std::size_t s = 0; s < num_sources; ++s)
          for (std::size_t i = 0; i < count; ++i) sources[s].push_back(T((i * 37 + s * 101) % 97) / T(7) - T(5));
        if (count > 2) sources[num_sources / 2][count / 2] = std::numeric_limits<T>::quiet_NaN();
        std::vector<T> out(count + 1, T(-77));
        std::vector<const T*> from;
        for (const auto& source : sources) from.push_back(source.data());
        T* to = out.data();
        weft::comm::reduce_elements<Isa, T>(reduction, Index(count), int(num_sources), from.data(), 1, &to);
        std::size_t num_wrong = 0;
        for (std::size_t i = 0; i < count; ++i) {
          const T right = one_by_one(reduction, sources, i);
          num_wrong += !(out[i] == right || (std::isnan(out[i]) && std::isnan(right)));
        }
        CHECK(num_wrong == 0);
        CHECK(out[count] == T(-77));
      }
}

}  // namespace

TEST_CASE_TEMPLATE("reduce_elements_any_registers_equal_the_plain_loop_in_bits", Real, float, double) {
  check_against_plain_loop<weft::simd::Generic, Real>();
  check_against_plain_loop<weft::simd::Native, Real>();
}

TEST_CASE("reduce_elements_in_place_writes_every_target") {
  std::vector<float> a(100, 1.0F), b(100, 2.0F), c(100, 3.0F);
  float* all[] = {a.data(), b.data(), c.data()};
  weft::comm::reduce_elements<weft::simd::Native, float>(Reduction::sum, 100, 3, all, 3, all);
  CHECK(a == std::vector<float>(100, 6.0F));
  CHECK(b == a);
  CHECK(c == a);
}

TEST_CASE("reduce_elements_integers_wrap_around") {
  const std::int8_t small[] = {100}, more[] = {100};
  const std::int8_t* from[] = {small, more};
  std::int8_t out = 0, *to = &out;
  weft::comm::reduce_elements<weft::simd::Native, std::int8_t>(Reduction::sum, 1, 2, from, 1, &to);
  CHECK(out == -56);
  const std::uint16_t large[] = {65535};
  const std::uint16_t* large_from[] = {large, large};
  std::uint16_t product = 0, *product_to = &product;
  weft::comm::reduce_elements<weft::simd::Native, std::uint16_t>(Reduction::product, 1, 2, large_from, 1, &product_to);
  CHECK(product == 1);
}
