// SPDX-License-Identifier: Apache-2.0
// How replicas of a model stay together, as a policy that users write. Without one (DataParallel), gradients are summed in every step.
//
//   struct LocalSgd {                                      // Stich, arXiv 1805.09767: every replica on its own, then the mean
//     static constexpr const char* name = "local_sgd";
//     static constexpr int version = 1;
//     static constexpr bool sums_gradients = false;        // each replica updates from its own gradients
//     static constexpr void synchronise(weft::SyncStep& step) {
//       if (step.number() % step.every() == 0) step.average(weft::Shared::parameters);
//     }
//   };
//   mesh(Replicas<LocalSgd>{.ranks = 4, .every = 8})
//
// The policy says what is exchanged, as entries; plan and engine interpret the same ones, so that the ledger holds them and the audit sees
// them. It may depend on nothing but the step: all ranks call it, and must say the same.
#pragma once

#include <concepts>
#include <type_traits>

#include "weft/base/fixed_vector.hpp"
#include "weft/layout/call.hpp"
#include "weft/layout/mesh.hpp"

namespace weft {

enum class Shared : char { parameters, optimizer_states };

// A collective over the replicas, on everything that a rank has of `what`.
struct SyncEntry {
  Shared what = Shared::parameters;
  Reduction reduction = Reduction::average;
};

class SyncStep {
 public:
  constexpr SyncStep(Index number, Index every) : number_(number), every_(every) {}

  constexpr Index number() const { return number_; }  // updates so far, that of this step among them
  constexpr Index every() const { return every_; }    // the axis's number

  // Every replica gets the mean of all, after the update. Cost: one all-reduce of the rank's part of the model; optimizer states: one each.
  constexpr void average(Shared what) { entries_.push({what, Reduction::average}); }

  constexpr const FixedVector<SyncEntry, 8>& entries() const { return entries_; }

 private:
  Index number_, every_;
  FixedVector<SyncEntry, 8> entries_{};
};

template <class P>
concept SyncPolicy = requires(SyncStep& step) {
  { P::name } -> std::convertible_to<const char*>;
  { P::version } -> std::convertible_to<int>;
  { P::sums_gradients } -> std::convertible_to<bool>;
  { P::synchronise(step) } -> std::same_as<void>;
};

// What a type lacks to be a policy, as one error.
template <class P>
constexpr bool explain_policy() {
  if constexpr (!requires {
                  { P::name } -> std::convertible_to<const char*>;
                })
    static_assert(sizeof(P) == 0,
                  "weft[sync.policy]: a policy has `static constexpr const char* name`, for reports and the plan's fingerprint; add it");
  else if constexpr (!requires {
                       { P::version } -> std::convertible_to<int>;
                     })
    static_assert(sizeof(P) == 0,
                  "weft[sync.policy]: a policy has `static constexpr int version`, changed when it says other things; add it");
  else if constexpr (!requires {
                       { P::sums_gradients } -> std::convertible_to<bool>;
                     })
    static_assert(
        sizeof(P) == 0,
        "weft[sync.policy]: a policy says whether gradients are summed in every step; add `static constexpr bool sums_gradients`");
  else if constexpr (!SyncPolicy<P>)
    static_assert(sizeof(P) == 0,
                  "weft[sync.policy]: a policy says what is exchanged in a step; add `static constexpr void synchronise(weft::SyncStep&)`");
  return true;
}

// What a type that is not a policy is replaced by, so that its error is the only one.
struct GradientsOnly {
  static constexpr const char* name = "gradients_only";
  static constexpr int version = 1;
  static constexpr bool sums_gradients = true;
  static constexpr void synchronise(SyncStep&) {}
};

// A data axis under a policy. Where the policy does not sum gradients, every replica trains on its own part of the batch as if it were
// alone: its mean loss, its norm for clipping. Losses that are reported are those of all.
template <class PolicyType>
struct Replicas {
  static constexpr const char* name = "replicas";
  static constexpr Role role = Role::batch;
  static_assert(explain_policy<PolicyType>(), "weft[sync]: said by the function itself");
  using Policy = std::conditional_t<SyncPolicy<PolicyType>, PolicyType, GradientsOnly>;

  Index ranks = 1;
  Index every = 1;  // what the policy makes of it
  Index bucket_bytes = 1 * MiB;
  bool overlap = true;

  constexpr Index size() const { return ranks; }
  constexpr Replicas with_size(Index extent) const {
    Replicas out = *this;
    out.ranks = extent;
    return out;
  }
  bool operator==(const Replicas&) const = default;
};

}  // namespace weft
