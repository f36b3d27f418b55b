// SPDX-License-Identifier: Apache-2.0
// Policies through the suite that users' policies go through; and ones that must not get through it.
#include "contract/policy_suite.hpp"

using namespace weft;
using weft::contract::run_policy_suite;

namespace {

// Means of everything, in two rhythms.
struct Both {
  static constexpr const char* name = "both";
  static constexpr int version = 1;
  static constexpr bool sums_gradients = false;
  static constexpr void synchronise(SyncStep& step) {
    if (step.number() % step.every() == 0) step.average(Shared::parameters);
    if (step.number() % (2 * step.every()) == 0) step.average(Shared::optimizer_states);
  }
};
// Says nothing: replicas that never meet.
struct Never : Both {
  static constexpr const char* name = "never";
  static constexpr void synchronise(SyncStep&) {}
};
// Gradients are summed; the means of equal parameters change nothing.
struct Summed : Both {
  static constexpr const char* name = "summed";
  static constexpr bool sums_gradients = true;
};
static_assert(SyncPolicy<Both> && SyncPolicy<Never>);
static_assert(!SyncPolicy<int>);

struct LocalSgd {
  static constexpr const char* name = "local_sgd";
  static constexpr int version = 1;
  static constexpr bool sums_gradients = false;
  static constexpr void synchronise(SyncStep& step) {
    if (step.number() % step.every() == 0) step.average(Shared::parameters);
  }
};
// [suite]
TEST_CASE("local_sgd_conforms") { run_policy_suite<LocalSgd>(); }
// [suite]

// Goes by how often it has been asked.
struct Moody : Both {
  static constexpr const char* name = "moody";
  static inline int asked = 0;
  static void synchronise(SyncStep& step) {
    if (++asked % 3 == 0) step.average(Shared::parameters);
  }
};

}  // namespace

TEST_CASE("a_policy_of_two_rhythms_conforms") { run_policy_suite<Both>(); }
TEST_CASE("a_policy_that_says_nothing_conforms") { run_policy_suite<Never>(); }
TEST_CASE("a_policy_that_sums_gradients_conforms") { run_policy_suite<Summed>(); }

TEST_CASE("the_suite_sees_a_policy_that_does_not_go_by_the_step") {
  CHECK_THROWS_WITH(contract::case_02_says_the_same_for_the_same_step<Moody>(), doctest::Contains("is another when it is asked for again"));
}
