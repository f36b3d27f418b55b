// SPDX-License-Identifier: Apache-2.0
// The communicators of one rank: the world, and the groups that the plan's calls are made in. Groups that are all ranks are the world
// itself.
#pragma once

#include <vector>

#include "weft/comm/recording/recording_communicator.hpp"
#include "weft/plan/ledger.hpp"

namespace weft {

template <class Communicator>
class Groups {
 public:
  using Comm = RecordingCommunicator<Communicator>;

  // Collective: all ranks of the world, with the same plan. capacity: of calls a step that are recorded, in each group.
  Groups(Communicator world, const PlanData& plan, Index capacity) {
    const StrategyData& strategy = plan.strategy;
    all_.reserve(std::size_t(num_kinds) + plan.ties.size() + plan.summed.size());
    all_.emplace_back(std::move(world), capacity);
    if (all_[0].size() != int(strategy.ranks)) return;  // the engine refuses it
    const RankPlace place = strategy.place(all_[0].rank());
    const Index shards = strategy.shards();
    const auto color = [&](RankPlace first) { return int(strategy.rank(first)); };
    const auto make = [&](GroupKind kind, Index size, int color_of_group, Index key) {
      int& number = numbers_[int(kind)];
      if (size == 1) return;
      if (size == strategy.ranks) {
        number = 0;
        return;
      }
      number = int(all_.size());
      all_.push_back(all_[0].split(color_of_group, int(key)));
    };
    numbers_[int(GroupKind::world)] = 0;
    make(GroupKind::data, strategy.data(), color({0, place.stage, place.tensor}), place.data);
    make(GroupKind::pipe, strategy.stages(), color({place.data, 0, place.tensor}), place.stage);
    make(GroupKind::tensor, strategy.tensor(), color({place.data, place.stage, 0}), place.tensor);
    if (shards == strategy.data()) {
      numbers_[int(GroupKind::shard)] = numbers_[int(GroupKind::data)];
    } else if (shards > 1) {
      make(GroupKind::shard, shards, color({place.data / shards * shards, place.stage, place.tensor}), place.data % shards);
      make(GroupKind::replica, strategy.replicas(), color({place.data % shards, place.stage, place.tensor}), place.data / shards);
    }
    for (const TieData& tie : plan.ties) {  // the stages that are not in it stay alone
      const bool in = tie.contains(int(place.stage));
      ties_.push_back(int(all_.size()));
      all_.push_back(all_[0].split(color({place.data, in ? Index(tie.stages.front()) : place.stage, place.tensor}) * 2 + (in ? 1 : 0),
                                   int(place.stage)));
    }
    for (const Stretch& stretch : plan.summed) {
      if (stretch.ranks == strategy.tensor() || copies_number(stretch.ranks) >= 0) continue;
      copies_.push_back({stretch.ranks, int(all_.size())});
      all_.push_back(
          all_[0].split(color({place.data, place.stage, place.tensor / stretch.ranks * stretch.ranks}), int(place.tensor % stretch.ranks)));
    }
    cursors_.assign(all_.size(), 0);
  }

  Comm& world() { return all_[0]; }
  bool has(GroupKind kind) const { return numbers_[int(kind)] >= 0; }
  Comm& operator[](GroupKind kind) { return all_[std::size_t(numbers_[int(kind)])]; }
  // The neighbours within the tensor group that have the same slice of a parameter, or all of the group.
  Comm& summing(const Stretch& stretch) {
    const int number = copies_number(stretch.ranks);
    return number < 0 ? (*this)[GroupKind::tensor] : all_[std::size_t(number)];
  }
  Comm& tie(std::size_t number) { return all_[std::size_t(ties_[number])]; }

  // Which communicator an entry of the ledger goes through.
  std::size_t number_of(const LedgerEntry& entry) const {
    if (entry.group == GroupKind::copies) return std::size_t(copies_number(entry.copies));
    return std::size_t(entry.group == GroupKind::tie ? ties_[std::size_t(entry.number)] : numbers_[int(entry.group)]);
  }
  const std::vector<Comm>& all() const { return all_; }
  // One place in the list of each communicator, for the audit.
  std::vector<std::size_t>& cursors() { return cursors_; }

  void clear_records() {
    for (Comm& comm : all_) comm.clear();
  }

 private:
  static constexpr int num_kinds = int(GroupKind::tie) + 1;

  struct Copies {
    Index ranks = 0;
    int number = 0;
  };
  int copies_number(Index ranks) const {
    for (const Copies& each : copies_)
      if (each.ranks == ranks) return each.number;
    return -1;
  }

  std::vector<Comm> all_;
  int numbers_[num_kinds] = {-1, -1, -1, -1, -1, -1, -1};
  std::vector<int> ties_;
  std::vector<Copies> copies_;
  std::vector<std::size_t> cursors_;
};

}  // namespace weft
