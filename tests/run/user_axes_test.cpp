// SPDX-License-Identifier: Apache-2.0
// Axes that users write: they join a mesh by their members, and train as weft's own do.
#include "layer/split_cases.hpp"

using namespace weft;
using namespace weft::test;

namespace {

// The least that an axis has.
struct Clones {
  static constexpr const char* name = "clones";
  static constexpr Role role = Role::batch;
  int count = 1;
  constexpr int size() const { return count; }
  bool operator==(const Clones&) const = default;
};
// Settings that plans understand by their names, computed from the axis's own.
struct Depth {
  static constexpr const char* name = "depth";
  static constexpr Role role = Role::layers;
  using Schedule = schedule::GPipe;
  Index cuts = 0;
  constexpr Index size() const { return cuts + 1; }
  bool operator==(const Depth&) const = default;
};
struct Width {
  static constexpr const char* name = "width";
  static constexpr Role role = Role::features;
  Index ranks = 1;
  static constexpr bool sequence = true;
  constexpr Index size() const { return ranks; }
  constexpr Width with_size(Index extent) const { return {extent}; }
  bool operator==(const Width&) const = default;
};
// One word for all.
struct Cube {
  Index edge = 1;
  constexpr auto axes() const { return mesh(Clones{.count = int(edge)}, Depth{.cuts = edge - 1}, Width{.ranks = edge}); }
  bool operator==(const Cube&) const = default;
};
static_assert(MeshAxis<Clones> && MeshAxis<Depth> && MeshAxis<Width> && CompoundAxis<Cube>, "archetypes");

struct Nameless {
  [[maybe_unused]] static constexpr Role role = Role::batch;
  constexpr Index size() const { return 1; }
  bool operator==(const Nameless&) const = default;
};
struct NotCompared {
  static constexpr const char* name = "not compared";
  static constexpr Role role = Role::batch;
  constexpr Index size() const { return 1; }
};
struct NoMesh {
  constexpr int axes() const { return 3; }
};
static_assert(!MeshAxis<Nameless> && !MeshAxis<NotCompared> && !CompoundAxis<NoMesh> && !CompoundAxis<Clones>, "near misses");

using Model = Gpt<GptOptions{.vocabulary = 13, .sequence = 4, .width = 12, .heads = 4, .layers = 4, .dropout = 0.1}>;
constexpr SplitCase how{.items = 8, .micro = 2, .sequence = 4};

}  // namespace

TEST_CASE("axes_of_users_train_as_one_rank_does") {
  const SplitRun one = train_split<Model, 1, false>(mesh(), how);
  compare_runs(train_split<Model, 1, false>(mesh(Clones{.count = 2}), how), one, "clones");
  compare_runs(train_split<Model, 1, false>(Clones{.count = 2}, how), one, "an axis alone");
  compare_runs(
      train_split<Model, 1, false>(mesh(Clones{.count = 2}, Depth{.cuts = 1}, DataParallel{.ranks = 2, .shard = Shard::parameters}), how),
      one, "with weft's own");
  compare_runs(train_split<Model, 2, true>(mesh(Cube{.edge = 2}), how), one, "a cube");
}

TEST_CASE("axes_of_users_make_the_plans_of_weft_s_own") {
  using Own = Plan<Model, Cube{.edge = 2}, Batch{.global = 8, .micro = 2, .sequence = 4}>;
  using Same =
      Plan<Model, mesh(DataParallel{.ranks = 2}, Pipeline<schedule::GPipe>{.stages = 2}, TensorParallel{.ranks = 2, .sequence = true}),
           Batch{.global = 8, .micro = 2, .sequence = 4}>;
  static_assert(Own::fingerprint() == Same::fingerprint() && Own::num_ranks == 8, "roles and settings count, names do not");
  CHECK(fingerprint(Own::data()) == Same::fingerprint());
  CHECK_THROWS_WITH_AS(fit_to_world(mesh(Clones{.count = 3}, Width{.ranks = rest_of_world}), 8),
                       doctest::Contains("world 8, clones 3 x width open, nearest: clones 2 or 4, or a world of 6 or 9"), Error);
}
