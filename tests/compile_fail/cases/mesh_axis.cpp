// SPDX-License-Identifier: Apache-2.0
// id: mesh.axis
// An axis of the user's that does not say what its ranks divide.
#include <weft/plan.hpp>

using namespace weft;

using Model = Gpt<GptOptions{.vocabulary = 65, .sequence = 16, .width = 32, .heads = 4, .layers = 3}>;

#ifdef WEFT_CONTROL
struct Clones {
  static constexpr const char* name = "clones";
  static constexpr Role role = Role::batch;
  Index count = 1;
  constexpr Index size() const { return count; }
  bool operator==(const Clones&) const = default;
};
#else
struct Clones {
  static constexpr const char* name = "clones";
  Index count = 1;
  constexpr Index size() const { return count; }
  bool operator==(const Clones&) const = default;
};
#endif

using Train = Plan<Model, mesh(Clones{.count = 2}), Batch{.global = 8, .micro = 2, .sequence = 16}>;
static_assert(Train::bytes_per_rank() <= 8 * GiB, "a rank may use 8 GiB");
int main() { return Train::num_ranks == 0; }
