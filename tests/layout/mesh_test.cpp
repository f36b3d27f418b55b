// SPDX-License-Identifier: Apache-2.0
#include <weft/layout/mesh.hpp>
#include <weft/strategy/data_parallel.hpp>

#include <doctest/doctest.h>

using namespace weft;

namespace {

struct Stages {  // an axis of a user's
  static constexpr const char* name = "stages";
  static constexpr Role role = Role::layers;
  Index count = 1;
  constexpr Index size() const { return count; }
  bool operator==(const Stages&) const = default;
};
static_assert(MeshAxis<Stages> && MeshAxis<DataParallel>, "both are axes");
static_assert(!MeshAxis<int>, "a number is not an axis");

constexpr auto grid = mesh(DataParallel{.ranks = 3}, Stages{.count = 4});
static_assert(grid.num_ranks() == 12 && grid.extent(Role::layers) == 4 && grid.extent(Role::features) == 1, "products of extents");
static_assert(mesh().num_ranks() == 1, "no axes are one rank");

template <auto value>
struct Holds {};
[[maybe_unused]] constexpr Holds<grid> usable_as_template_argument{};

}  // namespace

TEST_CASE("mesh_rank_and_coordinate_are_inverse") {
  for (Index rank = 0; rank < grid.num_ranks(); ++rank) CHECK(grid.rank(grid.coordinate(rank)) == rank);
  CHECK(grid.coordinate(7) == Coordinate<2>{1, 3});
}

TEST_CASE("mesh_last_axis_is_the_closest") {
  CHECK(grid.neighbour(1, 4, 1) == 5);
  CHECK(grid.neighbour(0, 4, 1) == 8);
  CHECK(grid.neighbour(1, 7, 1) == 4);  // around the end
  CHECK(grid.neighbour(0, 0, -1) == 8);
}

TEST_CASE("mesh_groups_partition_the_ranks") {
  for (std::size_t axis : {std::size_t(0), std::size_t(1)})
    for (Index a = 0; a < grid.num_ranks(); ++a)
      for (Index b = 0; b < grid.num_ranks(); ++b) {
        const bool same_group = grid.color(axis, a) == grid.color(axis, b);
        auto ca = grid.coordinate(a), cb = grid.coordinate(b);
        ca[axis] = cb[axis] = 0;
        CHECK(same_group == (ca == cb));
      }
}
