// SPDX-License-Identifier: Apache-2.0
// The algebra of a mesh: axes, rank ↔ coordinate, groups. Pure constexpr functions over the extents; the last axis is the closest.
#pragma once

#include <array>
#include <concepts>
#include <utility>

#include "weft/base/config.hpp"

namespace weft {

// What the ranks along an axis divide among them.
enum class Role : char { batch, layers, features };

// The extent of an axis that gets whatever the others leave of a world that is known at start-up only: see layout/fit_to_world.hpp.
inline constexpr Index rest_of_world = -1;

// The extents of axes that are left open, by role; 0: not said.
struct MeshSizes {
  Index data = 0, pipe = 0, tensor = 0;
  constexpr Index of(Role role) const { return role == Role::batch ? data : role == Role::layers ? pipe : tensor; }
  bool operator==(const MeshSizes&) const = default;
};

// An axis, weft's or a user's: a structural value with these members. It may have more, which plans understand by their names (see
// lower_strategy of plan/plan.hpp), and with_size(extent), a copy with that extent: then it can be left open.
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
  constexpr bool is_open() const { return (false || ... || (Index(static_cast<const Axes&>(*this).size()) == rest_of_world)); }
  // 0 while an axis is open.
  constexpr Index num_ranks() const { return is_open() ? 0 : (Index(1) * ... * Index(static_cast<const Axes&>(*this).size())); }
  // With extents for the axes that are open.
  constexpr Mesh with_sizes([[maybe_unused]] const MeshSizes& sizes) const {
    return Mesh{sized(static_cast<const Axes&>(*this), sizes)...};
  }

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

 private:
  template <class Axis>
  static constexpr Axis sized(const Axis& axis, [[maybe_unused]] const MeshSizes& sizes) {
    if constexpr (requires {
                    { axis.with_size(Index(1)) } -> std::same_as<Axis>;
                  })
      return axis.size() == rest_of_world && sizes.of(Axis::role) != 0 ? axis.with_size(sizes.of(Axis::role)) : axis;
    else
      return axis;
  }
};

template <class>
inline constexpr bool is_mesh = false;
template <class... Axes>
inline constexpr bool is_mesh<Mesh<Axes...>> = true;

// One word for several axes: a mesh has what axes() gives in its place.
template <class A>
concept CompoundAxis = requires(const A compound) {
  compound.axes();
}
&&is_mesh<std::remove_cvref_t<decltype(std::declval<const A&>().axes())>>;

namespace meshing {

template <MeshAxis Axis>
constexpr Mesh<Axis> part(const Axis& axis) {
  return {axis};
}
template <CompoundAxis Compound>
constexpr auto part(const Compound& compound) {
  return compound.axes();
}

template <class... Before, class... Behind>
constexpr Mesh<Before..., Behind...> operator+([[maybe_unused]] const Mesh<Before...>& before,
                                               [[maybe_unused]] const Mesh<Behind...>& behind) {
  return {static_cast<const Before&>(before)..., static_cast<const Behind&>(behind)...};
}

constexpr bool same_text(const char* a, const char* b) {
  for (; *a && *a == *b; ++a, ++b) {}
  return *a == *b;
}

template <class... Axes>
struct List {};
template <class>
inline constexpr bool names_differ = true;
template <class First, class... Others>
inline constexpr bool names_differ<List<First, Others...>> =
    (!same_text(First::name, Others::name) && ...) && names_differ<List<Others...>>;

template <class Part>
struct AxesOf {};
template <class... Axes>
struct AxesOf<Mesh<Axes...>> {
  using type = List<Axes...>;
};
template <class... A>
struct Joined {
  using type = List<>;
};
template <class... A>
struct Joined<List<A...>> {
  using type = List<A...>;
};
template <class... A, class... B, class... Others>
struct Joined<List<A...>, List<B...>, Others...> : Joined<List<A..., B...>, Others...> {};

template <class>
inline constexpr bool possible = false;

// Why something cannot be an axis; the first clause that fails.
template <class Axis>
constexpr bool is_axis() {
  if constexpr (MeshAxis<Axis> || CompoundAxis<Axis>) {
    return true;
  } else if constexpr (requires(const Axis axis) { axis.axes(); }) {
    static_assert(possible<Axis>, "weft[mesh.axis]: axes() of a compound axis gives a mesh; return weft::mesh(...)");
  } else if constexpr (!requires {
                         { Axis::name } -> std::convertible_to<const char*>;
                       }) {
    static_assert(possible<Axis>, "weft[mesh.axis]: this is not an axis: it lacks name; add static constexpr const char* name");
  } else if constexpr (!requires {
                         { Axis::role } -> std::convertible_to<Role>;
                       }) {
    static_assert(possible<Axis>, "weft[mesh.axis]: an axis says what its ranks divide; add static constexpr weft::Role role");
  } else if constexpr (!requires(const Axis axis) {
                         { axis.size() } -> std::convertible_to<Index>;
                       }) {
    static_assert(possible<Axis>, "weft[mesh.axis]: an axis says how many ranks it has; add constexpr weft::Index size() const");
  } else {
    static_assert(possible<Axis>, "weft[mesh.axis]: axes are compared; add bool operator==(const Axis&) const = default");
  }
  return false;
}

template <class List>
constexpr bool fit_together() {
  if constexpr (!names_differ<List>) {
    static_assert(names_differ<List>, "weft[mesh.axis_twice]: an axis, known by its name, stands in a mesh once; put all of it into one");
    return false;
  } else {
    return true;
  }
}

}  // namespace meshing

// mesh(DataParallel{.ranks = 4}); mesh() is one rank. Errors: weft[mesh.axis], weft[mesh.axis_twice].
template <class... Axes>
constexpr auto mesh(const Axes&... axes) {
  using meshing::operator+;
  if constexpr ((... && meshing::is_axis<Axes>())) {
    if constexpr (meshing::fit_together<typename meshing::Joined<typename meshing::AxesOf<decltype(meshing::part(axes))>::type...>::type>())
      return (Mesh<>{} + ... + meshing::part(axes));
    else
      return Mesh<>{};
  } else {
    return Mesh<>{};  // the reason has been said
  }
}

}  // namespace weft
