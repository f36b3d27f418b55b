// SPDX-License-Identifier: Apache-2.0
// What the conformance suite of communicators is made of: buffers between walls, values to give, and one checked call of each collective.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <weft/comm/concept.hpp>
#include <weft/dtype/bfloat16.hpp>
#include <weft/dtype/float16.hpp>

namespace weft::contract {

template <class T>
std::string shown(T value) {
  if constexpr (std::is_integral_v<T>)
    return std::to_string(value);
  else
    return std::to_string(static_cast<double>(value));
}

inline void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

template <class T>
inline constexpr bool is_floating = std::is_floating_point_v<T> || std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

template <class T>
T number(long long value) {
  if constexpr (is_floating<T> && sizeof(T) == 2)
    return T(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

// A buffer between two walls of poison, poisoned itself.
template <class T>
class Guarded {
 public:
  explicit Guarded(Index count) : bytes_(std::size_t(2 * wall + count * Index(sizeof(T))), poison), count_(count) {}

  T* data() { return reinterpret_cast<T*>(bytes_.data() + wall); }
  T& operator[](Index i) { return data()[i]; }

  void check_walls(const std::string& where) const {
    const std::size_t end = std::size_t(wall) + std::size_t(count_) * sizeof(T);
    for (std::size_t i = 0; i < std::size_t(wall); ++i)
      if (bytes_[i] != poison || bytes_[end + i] != poison) throw std::runtime_error(where + ": wrote outside the buffer");
  }

 private:
  static constexpr Index wall = 64;
  static constexpr unsigned char poison = 0xA5;
  std::vector<unsigned char> bytes_;
  Index count_;
};

// What rank gives as element i: small whole numbers, so that every sum, product (of 1 and 2) and type is exact.
constexpr long long given(Reduction reduction, int rank, Index i) {
  if (reduction == Reduction::product) return 1 + (rank + i) % 2;
  return 1 + (7 * rank + 3 * i) % 5;
}

template <class T>
T reduced(Reduction reduction, int ranks, Index i) {
  long long total = given(reduction, 0, i);
  for (int rank = 1; rank < ranks; ++rank) {
    const long long next = given(reduction, rank, i);
    if (reduction == Reduction::sum || reduction == Reduction::average) total += next;
    if (reduction == Reduction::product) total *= next;
    if (reduction == Reduction::minimum) total = std::min(total, next);
    if (reduction == Reduction::maximum) total = std::max(total, next);
  }
  if (reduction != Reduction::average) return number<T>(total);
  if constexpr (std::is_same_v<T, double>)
    return double(total) / ranks;
  else if constexpr (is_floating<T>)
    return T(float(total) / float(ranks));
  else
    return T(0);
}

template <class T>
std::vector<Reduction> reductions_of() {
  std::vector<Reduction> all{Reduction::sum, Reduction::product, Reduction::minimum, Reduction::maximum};
  if (is_floating<T>) all.push_back(Reduction::average);
  return all;
}

template <class... T>
struct Types {};
using AllTypes = Types<float, double, float16, bfloat16, std::int64_t, std::int32_t, std::int16_t, std::int8_t, std::uint64_t,
                       std::uint32_t, std::uint16_t, std::uint8_t>;

template <class... T, class F>
void for_each_type(Types<T...>, F&& f) {
  (f(T{}), ...);
}

// right(i) for each element of data; says where the first difference is.
template <class T, class Right>
void require_elements(const T* data, Index count, Right right, const std::string& where) {
  for (Index i = 0; i < count; ++i)
    if (!(data[i] == right(i)))
      throw std::runtime_error(where + ": element " + std::to_string(i) + " is " + shown(data[i]) + ", not " + shown(right(i)));
}

template <class T>
std::string at(const char* what, Reduction reduction, int ranks, Index count) {
  return std::string(what) + " of " + std::to_string(count) + " " + name_of(element_type_of<T>) + ", " + name_of(reduction) + ", " +
         std::to_string(ranks) + " ranks";
}

// ---- one call, all of its result checked; C is any communicator that can -----------------------------------------------------------

template <class T, class C>
void check_all_reduce(C& comm, Reduction reduction, Index count) {
  const std::string where = at<T>("all_reduce", reduction, comm.size(), count);
  Guarded<T> data(count);
  for (Index i = 0; i < count; ++i) data[i] = number<T>(given(reduction, comm.rank(), i));
  comm.all_reduce(data.data(), count, reduction);
  require_elements(
      data.data(), count, [&](Index i) { return reduced<T>(reduction, comm.size(), i); }, where);
  data.check_walls(where);
}

template <class T, class C>
void check_reduce(C& comm, Reduction reduction, Index count, int root) {
  const std::string where = at<T>("reduce", reduction, comm.size(), count);
  Guarded<T> data(count);
  for (Index i = 0; i < count; ++i) data[i] = number<T>(given(reduction, comm.rank(), i));
  comm.reduce(data.data(), count, reduction, root);
  const auto right = [&](Index i) {
    return comm.rank() == root ? reduced<T>(reduction, comm.size(), i) : number<T>(given(reduction, comm.rank(), i));
  };
  require_elements(data.data(), count, right, where);
  data.check_walls(where);
}

template <class T, class C>
void check_reduce_scatter(C& comm, Reduction reduction, Index count, bool in_place) {
  const std::string where = at<T>("reduce_scatter", reduction, comm.size(), count);
  Guarded<T> in(count * comm.size()), apart(count);
  for (Index i = 0; i < count * comm.size(); ++i) in[i] = number<T>(given(reduction, comm.rank(), i));
  T* out = in_place ? in.data() + comm.rank() * count : apart.data();
  comm.reduce_scatter(out, in.data(), count, reduction);
  require_elements(
      out, count, [&](Index i) { return reduced<T>(reduction, comm.size(), comm.rank() * count + i); }, where);
  in.check_walls(where);
  apart.check_walls(where);
}

template <class T, class C>
void check_all_gather(C& comm, Index count, bool in_place) {
  const std::string where = at<T>("all_gather", Reduction::sum, comm.size(), count);
  Guarded<T> out(count * comm.size()), apart(count);
  T* in = in_place ? out.data() + comm.rank() * count : apart.data();
  for (Index i = 0; i < count; ++i) in[i] = number<T>(given(Reduction::sum, comm.rank(), i));
  comm.all_gather(out.data(), in, count);
  for (int rank = 0; rank < comm.size(); ++rank)
    require_elements(
        out.data() + rank * count, count, [&](Index i) { return number<T>(given(Reduction::sum, rank, i)); }, where);
  out.check_walls(where);
}

template <class T, class C>
void check_broadcast(C& comm, Index count, int root) {
  const std::string where = at<T>("broadcast", Reduction::sum, comm.size(), count);
  Guarded<T> data(count);
  if (comm.rank() == root)
    for (Index i = 0; i < count; ++i) data[i] = number<T>(given(Reduction::sum, root, i));
  comm.broadcast(data.data(), count, root);
  require_elements(
      data.data(), count, [&](Index i) { return number<T>(given(Reduction::sum, root, i)); }, where);
  data.check_walls(where);
}

template <class T, class C>
void check_all_to_all(C& comm, Index count) {
  const std::string where = at<T>("all_to_all", Reduction::sum, comm.size(), count);
  Guarded<T> in(count * comm.size()), out(count * comm.size());
  for (Index i = 0; i < count * comm.size(); ++i) in[i] = number<T>(given(Reduction::sum, comm.rank(), i));
  comm.all_to_all(out.data(), in.data(), count);
  for (int rank = 0; rank < comm.size(); ++rank) {
    const auto right = [&](Index i) { return number<T>(given(Reduction::sum, rank, comm.rank() * count + i)); };
    require_elements(out.data() + rank * count, count, right, where);
  }
  out.check_walls(where);
}

}  // namespace weft::contract
