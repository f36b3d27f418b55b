// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <weft/simd/math.hpp>

#include "simd/isas.hpp"

using namespace weft;

namespace {

// The distance of y from the exact value in units in the last place of the exact value.
template <class Real>
double ulps(Real y, long double exact) {
  if (std::isinf(y) && Real(exact) == y) return 0;
  int exponent;
  std::frexp(exact, &exponent);
  const int last = std::max(exponent, std::numeric_limits<Real>::min_exponent) - std::numeric_limits<Real>::digits;
  return double(std::fabs((static_cast<long double>(y) - exact) * std::ldexp(1.0L, -last)));
}

template <class On, class Function>
typename On::Real lane(Function function, typename On::Real x) {
  using Real = typename On::Real;
  Real out[simd::lanes<typename On::Isa, Real>];
  simd::store<typename On::Isa>(out, function(simd::broadcast<typename On::Isa>(x)));
  for (Real y : out) CHECK(std::memcmp(&y, out, sizeof y) == 0);
  return out[0];
}

// The largest error over `samples` points spread over [from, to].
template <class On, class Function, class Exact>
double largest_error(Function function, Exact exact, double from, double to, Index samples = 100'000, bool in_ulps = true) {
  using Real = typename On::Real;
  using Isa = typename On::Isa;
  constexpr Index lanes = simd::lanes<Isa, Real>;
  // In memory before anything is computed from them: an expression may be contracted in one of its uses and not in another.
  std::vector<Real> x(static_cast<std::size_t>(samples)), y(x.size());
  std::uint64_t place = 0;
  for (Real& point : x) {
    place += 0x9e3779b97f4a7c15u;  // the golden section of 2^64
    point = Real(from + (to - from) * (double(place >> 11) * 0x1p-53));
  }
  for (Index i = 0; i + lanes <= samples; i += lanes)
    simd::store<Isa>(y.data() + i, function(simd::load<Isa>(std::as_const(x).data() + i)));
  double worst = 0;
  for (std::size_t i = 0; i < std::size_t(samples / lanes * lanes); ++i) {
    const long double right = exact(static_cast<long double>(x[i]));
    const double error = in_ulps ? ulps(y[i], right) : double(std::fabs(static_cast<long double>(y[i]) - right));
    worst = error > worst || std::isnan(error) ? error : worst;
  }
  if (std::getenv("WEFT_TEST_PRINT"))
    MESSAGE(std::string(On::Isa::name) << " " << sizeof(Real) << " [" << from << ", " << to << "]: " << worst);
  return worst;
}

#define WEFT_FUNCTION(name) [](auto vector) { return simd::name<typename T::Isa, typename T::Real>(vector); }

}  // namespace

TEST_CASE_TEMPLATE("exp_whole_range_is_right_to_an_ulp", T, WEFT_TEST_ISAS) {
  const auto exact = [](long double x) { return std::exp(x); };
  const bool single = sizeof(typename T::Real) == 4;
  CHECK(largest_error<T>(WEFT_FUNCTION(exp), exact, single ? -86.9 : -707.9, single ? 88.722 : 709.78) <= 1.0);
  CHECK(largest_error<T>(WEFT_FUNCTION(exp), exact, -1, 1) <= 1.0);
  CHECK(largest_error<T>(WEFT_FUNCTION(exp), exact, -1e-4, 1e-4) <= 1.0);
}

TEST_CASE_TEMPLATE("exp_special_values_are_those_of_the_standard_library", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  constexpr Real infinity = std::numeric_limits<Real>::infinity();
  const auto f = [](Real x) { return lane<T>(WEFT_FUNCTION(exp), x); };
  CHECK(f(infinity) == infinity);
  CHECK(f(-infinity) == 0);
  CHECK(f(Real(0)) == 1);
  CHECK(f(Real(-0.0)) == 1);
  CHECK(std::isnan(f(std::numeric_limits<Real>::quiet_NaN())));
  CHECK(std::isnan(f(-std::numeric_limits<Real>::quiet_NaN())));
  CHECK(f(std::numeric_limits<Real>::max()) == infinity);
  CHECK(f(std::numeric_limits<Real>::lowest()) == 0);
  const Real last = std::log(std::numeric_limits<Real>::max()), least = std::log(std::numeric_limits<Real>::min());
  CHECK(std::isfinite(f(std::nextafter(last, Real(0)))));
  CHECK(f(last + Real(1e-4) * last) == infinity);
  CHECK(f(least) == 0);  // flushed
  CHECK(f(least + Real(0.5)) > 0);
}

TEST_CASE_TEMPLATE("log_whole_range_is_right_to_an_ulp", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  const auto exact = [](long double x) { return std::log(x); };
  CHECK(largest_error<T>(WEFT_FUNCTION(log), exact, 0.5, 2) <= 1.0);
  CHECK(largest_error<T>(WEFT_FUNCTION(log), exact, 0.999, 1.001) <= 1.0);
  CHECK(largest_error<T>(WEFT_FUNCTION(log), exact, 1e-30, 1) <= 1.0);
  CHECK(largest_error<T>(WEFT_FUNCTION(log), exact, 1, double(std::numeric_limits<Real>::max())) <= 1.0);
  // every order of magnitude, subnormal numbers included
  for (Real x = std::numeric_limits<Real>::denorm_min(); x < std::numeric_limits<Real>::max() / 2; x *= Real(1.875))
    CHECK(ulps(lane<T>(WEFT_FUNCTION(log), x), std::log(static_cast<long double>(x))) <= 1.0);
}

TEST_CASE_TEMPLATE("log_special_values_are_those_of_the_standard_library", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  constexpr Real infinity = std::numeric_limits<Real>::infinity();
  const auto f = [](Real x) { return lane<T>(WEFT_FUNCTION(log), x); };
  CHECK(f(Real(1)) == 0);
  CHECK(f(Real(0)) == -infinity);
  CHECK(f(Real(-0.0)) == -infinity);
  CHECK(f(infinity) == infinity);
  CHECK(std::isnan(f(Real(-1))));
  CHECK(std::isnan(f(-infinity)));
  CHECK(std::isnan(f(std::numeric_limits<Real>::quiet_NaN())));
}

TEST_CASE_TEMPLATE("tanh_whole_range_is_right_to_a_few_ulps", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  constexpr Real infinity = std::numeric_limits<Real>::infinity();
  const auto exact = [](long double x) { return std::tanh(x); };
  const auto f = [](Real x) { return lane<T>(WEFT_FUNCTION(tanh), x); };
  CHECK(largest_error<T>(WEFT_FUNCTION(tanh), exact, -22, 22) <= 3.0);
  CHECK(largest_error<T>(WEFT_FUNCTION(tanh), exact, -1, 1) <= 3.0);
  CHECK(largest_error<T>(WEFT_FUNCTION(tanh), exact, -1e-3, 1e-3) <= 3.0);
  CHECK(largest_error<T>(WEFT_FUNCTION(tanh), exact, -1e-30, 1e-30) <= 3.0);
  for (Real x : {simd::Format<Real>::tanh_most, Real(25), Real(1e30), infinity}) {
    CHECK(f(x) == 1);
    CHECK(f(-x) == -1);
  }
  CHECK((f(Real(0)) == 0 && !std::signbit(f(Real(0)))));
  CHECK((f(Real(-0.0)) == 0 && std::signbit(f(Real(-0.0)))));
  CHECK(std::isnan(f(std::numeric_limits<Real>::quiet_NaN())));
}

TEST_CASE_TEMPLATE("sigmoid_whole_range_is_right_to_a_few_ulps", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  constexpr Real infinity = std::numeric_limits<Real>::infinity();
  const auto exact = [](long double x) { return 1 / (1 + std::exp(-x)); };
  const auto f = [](Real x) { return lane<T>(WEFT_FUNCTION(sigmoid), x); };
  CHECK(largest_error<T>(WEFT_FUNCTION(sigmoid), exact, sizeof(Real) == 4 ? -87.0 : -708.0, 40) <= 2.5);
  CHECK(largest_error<T>(WEFT_FUNCTION(sigmoid), exact, -1, 1) <= 2.5);
  CHECK(f(infinity) == 1);
  CHECK(f(-infinity) == 0);
  CHECK(f(Real(0)) == Real(0.5));
  CHECK(f(Real(-1e4)) == 0);
  CHECK(f(Real(1e4)) == 1);
  CHECK(std::isnan(f(std::numeric_limits<Real>::quiet_NaN())));
}

TEST_CASE_TEMPLATE("erf_whole_range_is_right_to_two_ulps", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  constexpr Real infinity = std::numeric_limits<Real>::infinity();
  const auto exact = [](long double x) { return std::erf(x); };
  const auto f = [](Real x) { return lane<T>(WEFT_FUNCTION(erf), x); };
  CHECK(largest_error<T>(WEFT_FUNCTION(erf), exact, -7, 7) <= (sizeof(Real) == 4 ? 1.5 : 2.0));
  CHECK(largest_error<T>(WEFT_FUNCTION(erf), exact, -1.1, 1.1) <= (sizeof(Real) == 4 ? 1.5 : 2.0));
  CHECK(largest_error<T>(WEFT_FUNCTION(erf), exact, -1e-3, 1e-3) <= (sizeof(Real) == 4 ? 1.5 : 2.0));
  for (Real x : {Real(7), Real(1e30), infinity}) {
    CHECK(f(x) == 1);
    CHECK(f(-x) == -1);
  }
  CHECK((f(Real(0)) == 0 && !std::signbit(f(Real(0)))));
  CHECK((f(Real(-0.0)) == 0 && std::signbit(f(Real(-0.0)))));
  CHECK(std::isnan(f(std::numeric_limits<Real>::quiet_NaN())));
}

TEST_CASE_TEMPLATE("normal_whole_range_is_right_to_a_few_ulps", T, WEFT_TEST_ISAS) {
  using Real = typename T::Real;
  const auto cumulative = [](long double x) { return 0.5L * std::erfc(-x * std::sqrt(0.5L)); };
  const auto density = [](long double x) { return std::exp(-0.5L * x * x) * 0.398942280401432677939946059934L; };
  const auto f = [](auto x) { return simd::normal<typename T::Isa, Real>(x).cumulative; };
  const auto g = [](auto x) { return simd::normal<typename T::Isa, Real>(x).density; };
  CHECK(largest_error<T>(f, cumulative, -1, 9) <= (sizeof(Real) == 4 ? 2.5 : 3.5));
  CHECK(largest_error<T>(f, cumulative, -40, -1, 100'000, false) <= std::numeric_limits<Real>::epsilon() / 2);
  CHECK(largest_error<T>(g, density, -40, 40, 100'000, false) <= std::numeric_limits<Real>::epsilon() / 2);
  constexpr Real infinity = std::numeric_limits<Real>::infinity();
  CHECK(lane<T>(f, infinity) == 1);
  CHECK(lane<T>(f, -infinity) == 0);
  CHECK(lane<T>(g, infinity) == 0);
  CHECK(lane<T>(f, Real(0)) == doctest::Approx(0.5).epsilon(1e-6));
  CHECK(std::isnan(lane<T>(f, std::numeric_limits<Real>::quiet_NaN())));
}
