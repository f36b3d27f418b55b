// SPDX-License-Identifier: Apache-2.0
// The algebra of a mesh: axes, rank ↔ coordinate, groups. Pure constexpr functions over the extents; the last axis is the closest.
#pragma once

#include <array>
#include <concepts>

#include "weft/base/config.hpp"

namespace weft {

// What the ranks along an axis divide among them.
enum class Role : char { batch, layers, features };

template <class A>
concept MeshAxis = requires(const A axis) {
  { A::name } -> std::convertible_to<const char*>;
  { A::role } -> std::convertible_to<Role>;
  { axis.size() } -> std::convertible_to<Index>;
  { axis == axis } -> std::same_as<bool>;
};

template <std::size_t NumAxes>
using Coordinate = std::array<Index, NumAxes == 0 ? 1 : NumAxes>;

// A structural value: usable as a template argument, comparable. Axes are its bases, so that no tuple is instantiated.
template <MeshAxis... Axes>
struct Mesh : Axes... {
  static constexpr std::size_t num_axes = sizeof...(Axes);
  bool operator==(const Mesh&) const = default;

  template <class Function>
  constexpr void for_each_axis(Function&& function) const {
    int index = 0;
    (function(static_cast<const Axes&>(*this), index++), ...);
    (void)index;
  }

  constexpr Coordinate<num_axes> extents() const { return {static_cast<const Axes&>(*this).size()...}; }

  // The product of the extents of all axes with a role; 1 without any.
  constexpr Index extent([[maybe_unused]] Role role) const {
    return (Index(1) * ... * (Axes::role == role ? Index(static_cast<const Axes&>(*this).size()) : Index(1)));
  }
  constexpr Index num_ranks() const { return (Index(1) * ... * Index(static_cast<const Axes&>(*this).size())); }

  constexpr Coordinate<num_axes> coordinate(Index rank) const {
    Coordinate<num_axes> out{};
    const auto extent = extents();
    for (std::size_t i = num_axes; i-- > 0; rank /= extent[i]) out[i] = rank % extent[i];
    return out;
  }
  constexpr Index rank(const Coordinate<num_axes>& coordinate) const {
    Index rank = 0;
    const auto extent = extents();
    for (std::size_t i = 0; i < num_axes; ++i) rank = rank * extent[i] + coordinate[i];
    return rank;
  }

  // Ranks that differ in this axis only form a group; the color names the group, the place is the rank within it.
  constexpr Index place(std::size_t axis, Index rank) const { return coordinate(rank)[axis]; }
  constexpr Index color(std::size_t axis, Index rank) const {
    auto own = coordinate(rank);
    own[axis] = 0;
    return this->rank(own);
  }
  constexpr Index neighbour(std::size_t axis, Index rank, Index distance) const {
    auto own = coordinate(rank);
    const Index extent = extents()[axis];
    own[axis] = ((own[axis] + distance) % extent + extent) % extent;
    return this->rank(own);
  }
};

// mesh(DataParallel{.ranks = 4}); mesh() is one rank.
template <MeshAxis... Axes>
constexpr Mesh<Axes...> mesh(Axes... axes) {
  return Mesh<Axes...>{axes...};
}

}  // namespace weft
