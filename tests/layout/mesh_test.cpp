// SPDX-License-Identifier: Apache-2.0
#include <weft/layout/fit_to_world.hpp>
#include <weft/strategy/data_parallel.hpp>
#include <weft/strategy/model_parallel.hpp>

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

struct Grid {  // a user's word for two axes
  Index rows = 1, columns = 1;
  constexpr auto axes() const { return mesh(Stages{.count = rows}, TensorParallel{.ranks = columns}); }
  bool operator==(const Grid&) const = default;
};
static_assert(CompoundAxis<Grid> && CompoundAxis<ModelParallel<>> && !CompoundAxis<Stages> && !MeshAxis<Grid>,
              "a word for axes is no axis");
static_assert(mesh(DataParallel{.ranks = 2}, Grid{.rows = 3, .columns = 4}) ==
                  mesh(DataParallel{.ranks = 2}, Stages{.count = 3}, TensorParallel{.ranks = 4}),
              "in place of the word stand its axes");
static_assert(mesh(ModelParallel<>{.pipeline = 2, .tensor = 4, .sequence = true}, DataParallel{}) ==
                  mesh(Pipeline<>{.stages = 2}, TensorParallel{.ranks = 4, .sequence = true}, DataParallel{}),
              "the pipeline outside, tensor ranks inside");

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

TEST_CASE("mesh_of_one_word_and_of_its_axes_place_ranks_alike") {
  constexpr auto word = mesh(DataParallel{.ranks = 2}, ModelParallel<>{.pipeline = 2, .tensor = 2});
  for (Index rank = 0; rank < 8; ++rank) CHECK(word.coordinate(rank) == Coordinate<3>{rank / 4, rank / 2 % 2, rank % 2});
}

TEST_CASE("mesh_with_an_open_axis_gets_what_the_others_leave_of_a_world") {
  constexpr auto open = mesh(DataParallel{.ranks = rest_of_world, .bucket_bytes = 7}, ModelParallel<>{.pipeline = 2, .tensor = 3});
  static_assert(open.is_open() && open.num_ranks() == 0, "nobody knows how many yet");
  static_assert(fit_to_world(open, 24) == mesh(DataParallel{.ranks = 4, .bucket_bytes = 7}, ModelParallel<>{.pipeline = 2, .tensor = 3}),
                "only the open extent changes");
  static_assert(open.with_sizes({.data = 5, .pipe = 9}).extents() == Coordinate<3>{5, 2, 3}, "an extent that is said stays");
  CHECK(fit_to_world(open, 6).num_ranks() == 6);
  CHECK(fit_to_world(mesh(Pipeline<>{.stages = rest_of_world}), 5).extents()[0] == 5);
  CHECK(fit_to_world(mesh(), 1).num_ranks() == 1);
  CHECK(fit_to_world(mesh(DataParallel{.ranks = 8}), 8).num_ranks() == 8);
}

// Whatever can be said of any small layout: the suggestions fit, and nothing between them and the extent does.
TEST_CASE("nearest_divisors_are_the_nearest") {
  for (Index of = 1; of <= 24; ++of)
    for (Index beside = 1; beside <= 30; ++beside) {
      const NearestDivisors nearest = nearest_divisors(of, beside);
      Index below = 0, above = 0;
      for (Index d = 1; d <= of; ++d)
        if (of % d == 0) {
          if (d < beside) below = d;
          if (d > beside && above == 0) above = d;
        }
      CHECK((nearest.below == below && nearest.above == above));
    }
}
