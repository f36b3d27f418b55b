// SPDX-License-Identifier: Apache-2.0
// The ranks of one communicator and their queue of collectives. Every collective, blocking or not, is an entry of that queue:
//
//   post      a rank writes its pointers into its next place and counts `posted` up
//   work      once all have posted, each rank does its share, reading and writing the others' memory; `finished` counts up
//   complete  once all have finished; only then the buffers are the callers' again, and the place may be used anew
//
// Each rank takes the entries in order, so the entries that are ready are always a prefix, and two counters per rank say everything.
#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include "weft/comm/thread/channel.hpp"
#include "weft/comm/thread/world.hpp"

namespace weft::comm {

// A rank's share of a collective: reads the parts of all ranks at `number`.
using Work = void (*)(const Group& group, Index number, int rank);

// One rank's side of one collective.
struct Part {
  CallRecord call;
  const void* in = nullptr;
  void* out = nullptr;
  Work work = nullptr;
  Time not_before = always;
};

class Group {
 public:
  // Collectives that may be outstanding; one more waits for the oldest.
  static constexpr Index max_outstanding = 64;

  Group(World& world, std::vector<int> world_ranks, int id)
      : world_(world),
        world_ranks_(std::move(world_ranks)),
        id_(id),
        members_(std::make_unique<Member[]>(world_ranks_.size())),
        channels_(std::make_unique<Channel[]>(world_ranks_.size() * world_ranks_.size())) {}

  World& world() const { return world_; }
  int id() const { return id_; }
  int size() const { return static_cast<int>(world_ranks_.size()); }
  int world_rank(int rank) const { return world_ranks_[std::size_t(rank)]; }

  const Part& part(Index number, int rank) const { return member(rank).parts[std::size_t(number % max_outstanding)]; }
  Channel& channel(int from, int to) { return channels_[std::size_t(from) * std::size_t(size()) + std::size_t(to)]; }
  const Channel& channel(int from, int to) const { return channels_[std::size_t(from) * std::size_t(size()) + std::size_t(to)]; }

  // Enters the next collective of this rank and returns its number.
  Index post(int rank, const Part& part);

  // Returns when collective `number` is complete for this rank. shared: whether other ranks touch this rank's buffers in it.
  void wait(int rank, Index number, bool shared);

  // Does what this rank owes to the collectives where all have arrived. Never waits.
  void progress(int rank);

  bool is_complete(Index number) const { return all_beyond(&Member::finished, number); }
  bool is_own_share_done(int rank, Index number) const { return member(rank).finished.load() > number; }

  // When this rank can next do a share of work.
  Time next_work_at(int rank) const {
    const Index number = member(rank).finished.load();
    if (number >= member(rank).posted.load() || !all_beyond(&Member::posted, number)) return never;
    return not_before(number);
  }

  // The world rank of a member that has left without its part in collective `number`, or -1.
  int missing_in(Index number) const {
    for (int rank = 0; rank < size(); ++rank)
      if (world_.has_left(world_rank(rank)) && member(rank).finished.load() <= number) return world_rank(rank);
    return -1;
  }

  void wake_all() { world_.wake(world_ranks_); }
  void wake(int rank) { world_.wake(std::array{world_rank(rank)}); }

 private:
  struct alignas(alignment_bytes) Member {
    std::atomic<Index> posted{0};
    alignas(alignment_bytes) std::atomic<Index> finished{0};
    alignas(alignment_bytes) std::array<Part, std::size_t(max_outstanding)> parts;
  };

  const Member& member(int rank) const { return members_[std::size_t(rank)]; }

  bool all_beyond(std::atomic<Index> Member::*count, Index number) const {
    for (int rank = 0; rank < size(); ++rank)
      if ((member(rank).*count).load() <= number) return false;
    return true;
  }

  Time not_before(Index number) const {
    if (world_.options().delay == nullptr) return always;
    Time latest = always;
    for (int rank = 0; rank < size(); ++rank) latest = std::max(latest, part(number, rank).not_before);
    return latest;
  }

  bool agrees(Index number) const {
    for (int rank = 1; rank < size(); ++rank)
      if (!agree(part(number, 0).call, part(number, rank).call)) return false;
    return true;
  }

  std::string disagreement(Index number) const;

  World& world_;
  std::vector<int> world_ranks_;
  int id_;
  std::unique_ptr<Member[]> members_;
  std::unique_ptr<Channel[]> channels_;
};

// What this rank waits for, whatever the call: also that it can do a share of any of its communicators, since others may wait for that.
class GroupWait : public Wait {
 public:
  GroupWait(Group& group, int rank, const CallRecord& call)
      : Wait(call), group_(group), rank_(rank), memberships_(group.world().memberships(group.world_rank(rank))) {}

 protected:
  Time next_work_at() const {
    Time soonest = never;
    for (const World::Membership& each : memberships_) soonest = std::min(soonest, each.group->next_work_at(each.rank));
    return soonest;
  }

  Group& group_;
  int rank_;
  const std::vector<World::Membership>& memberships_;
};

class CollectiveWait final : public GroupWait {
 public:
  CollectiveWait(Group& group, int rank, const CallRecord& call, Index number, bool shared)
      : GroupWait(group, rank, call), number_(number), shared_(shared) {}

  bool is_over() const { return shared_ ? group_.is_complete(number_) : group_.is_own_share_done(rank_, number_); }
  Time ready_at() const override { return is_over() ? always : next_work_at(); }
  int missing() const override { return group_.missing_in(number_); }

 private:
  Index number_;
  bool shared_;
};

// Progress in all communicators of this rank.
inline void progress_all(Group& group, int rank) {
  for (const World::Membership& each : group.world().memberships(group.world_rank(rank))) each.group->progress(each.rank);
}

inline Index Group::post(int rank, const Part& part) {
  Member& self = members_[std::size_t(rank)];
  const Index number = self.posted.load();
  if (world_.is_broken()) world_.throw_fault(world_rank(rank), part.call);
  if (number >= max_outstanding && !is_complete(number - max_outstanding)) wait(rank, number - max_outstanding, true);
  Part& place = self.parts[std::size_t(number % max_outstanding)];
  place = part;
  if (const auto delay = world_.options().delay) place.not_before = std::chrono::steady_clock::now() + delay(part.call, number);
  self.posted.store(number + 1);
  if (all_beyond(&Member::posted, number)) wake_all();  // the last to arrive; the others need not look before
  return number;
}

inline void Group::progress(int rank) {
  Member& self = members_[std::size_t(rank)];
  const int world_rank = this->world_rank(rank);
  for (Index number = self.finished.load(); number < self.posted.load(); ++number) {
    if (!all_beyond(&Member::posted, number)) return;
    if (const Time start = not_before(number); start != always && start > std::chrono::steady_clock::now()) return;
    if (!agrees(number)) return world_.break_with("comm.mismatch", disagreement(number), -1);
    if (const Work work = part(number, rank).work) {
      if (!world_.begin_work(world_rank)) return;
      work(*this, number, rank);
      world_.end_work(world_rank);
    }
    self.finished.store(number + 1);
    if (is_complete(number)) wake_all();
  }
}

inline void Group::wait(int rank, Index number, bool shared) {
  const CollectiveWait waiting(*this, rank, part(number, rank).call, number, shared);
  while (true) {
    progress_all(*this, rank);
    if (waiting.is_over()) return;
    if (world_.is_broken()) {
      world_.quiesce(world_rank(rank));
      world_.throw_fault(world_rank(rank), waiting.call());
    }
    world_.block(world_rank(rank), waiting);
  }
}

inline std::string Group::disagreement(Index number) const {
  std::string text = text_of("the ranks of a communicator make the same calls in the same order; call ", number, " of communicator ", id_);
  std::vector<bool> told(world_ranks_.size());
  for (int rank = 0; rank < size(); ++rank) {
    if (told[std::size_t(rank)]) continue;
    text += "; rank";
    for (int other = rank; other < size(); ++other) {
      if (!agree(part(number, rank).call, part(number, other).call)) continue;
      told[std::size_t(other)] = true;
      text += text_of(" ", world_rank(other));
    }
    text += text_of(": ", to_text(part(number, rank).call));
  }
  return text;
}

}  // namespace weft::comm
