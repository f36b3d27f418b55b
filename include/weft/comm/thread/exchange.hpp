// SPDX-License-Identifier: Apache-2.0
// A grouped exchange among threads: all messages are posted as far as there is room, then whatever can move moves, in any order between
// different peers and in order with each one, until all have arrived.
#pragma once

#include <cstring>
#include <span>

#include "weft/comm/thread/group.hpp"

namespace weft::comm {

class Exchange final : public GroupWait {
 public:
  Exchange(Group& group, int rank, std::span<const Outgoing> sends, std::span<const Incoming> receives)
      : GroupWait(group, rank, sends.empty() ? receives.front().call() : sends.front().call()), sends_(sends), receives_(receives) {}

  // Moves what can move, until nothing can.
  void move() {
    bool has_moved = true;
    while (has_moved && !group_.world().is_broken()) {
      has_moved = false;
      for (std::size_t i = 0; i < sends_.size(); ++i) has_moved |= can_post(i) && post(i);
      for (std::size_t i = 0; i < receives_.size(); ++i) has_moved |= can_take(i) && is_time(takes_from(i)) && take(i);
    }
  }

  bool is_over() const {
    for (std::size_t i = 0; i < sends_.size(); ++i)
      if (!is_posted(i) || !to(i).is_empty()) return false;
    for (std::size_t i = 0; i < receives_.size(); ++i)
      if (!is_taken(i)) return false;
    return true;
  }

  Time ready_at() const override {
    if (is_over()) return always;
    for (std::size_t i = 0; i < sends_.size(); ++i)
      if (can_post(i)) return always;
    Time soonest = next_work_at();
    for (std::size_t i = 0; i < receives_.size(); ++i)
      if (can_take(i)) soonest = std::min(soonest, takes_from(i));
    return soonest;
  }

  int missing() const override {
    const World& world = group_.world();
    for (std::size_t i = 0; i < sends_.size(); ++i) {
      const int peer = group_.world_rank(sends_[i].peer);
      if (world.has_left(peer) && !(is_posted(i) && to(i).is_empty())) return peer;
    }
    for (std::size_t i = 0; i < receives_.size(); ++i) {
      const int peer = group_.world_rank(receives_[i].peer);
      if (world.has_left(peer) && !is_taken(i) && from(i).is_empty()) return peer;
    }
    return -1;
  }

 private:
  static bool has(std::uint64_t set, std::size_t i) { return (set >> i & 1U) != 0; }
  bool is_posted(std::size_t i) const { return has(posted_, i); }
  bool is_taken(std::size_t i) const { return has(taken_, i); }

  Channel& to(std::size_t i) const { return group_.channel(rank_, sends_[i].peer); }
  Channel& from(std::size_t i) const { return group_.channel(receives_[i].peer, rank_); }

  bool can_post(std::size_t i) const {
    if (is_posted(i) || !to(i).has_room()) return false;
    for (std::size_t before = 0; before < i; ++before)
      if (!is_posted(before) && sends_[before].peer == sends_[i].peer) return false;
    return true;
  }

  bool can_take(std::size_t i) const {
    if (is_taken(i) || !from(i).has_message()) return false;
    for (std::size_t before = 0; before < i; ++before)
      if (!is_taken(before) && receives_[before].peer == receives_[i].peer) return false;
    return true;
  }

  // When a message that is there may be taken.
  Time takes_from(std::size_t i) const { return group_.world().options().delay == nullptr ? always : from(i).front_not_before(); }
  static bool is_time(Time time) { return time == always || time <= std::chrono::steady_clock::now(); }

  bool post(std::size_t i) {
    Time from = always;
    if (const auto delay = group_.world().options().delay) {
      CallRecord call = sends_[i].call();
      call.communicator = group_.id();
      from = std::chrono::steady_clock::now() + delay(call, to(i).number());
    }
    to(i).put(sends_[i], from);
    posted_ |= std::uint64_t(1) << i;
    group_.wake(sends_[i].peer);
    return true;
  }

  bool take(std::size_t i) {
    World& world = group_.world();
    const Incoming& into = receives_[i];
    const Outgoing& message = from(i).front();
    const int self = group_.world_rank(rank_), peer = group_.world_rank(into.peer);
    if (message.type != into.type || message.count != into.count || message.tag != into.tag) {
      world.break_with("comm.mismatch",
                       text_of("a message is received as it was sent; communicator ", group_.id(), "; rank ", peer, ": ",
                               to_text(message.call()), "; rank ", self, ": ", to_text(into.call())),
                       -1);
      return false;
    }
    if (message.count > 0) {
      if (!world.begin_work(self)) return false;
      std::memmove(into.data, message.data, std::size_t(message.count * bytes_of(message.type)));
      world.end_work(self);
    }
    from(i).pop();
    taken_ |= std::uint64_t(1) << i;
    group_.wake(into.peer);
    return true;
  }

  std::span<const Outgoing> sends_;
  std::span<const Incoming> receives_;
  std::uint64_t posted_ = 0, taken_ = 0;
};

inline void exchange(Group& group, int rank, std::span<const Outgoing> sends, std::span<const Incoming> receives) {
  const auto size_limit = std::size_t(max_exchange_messages);
  if (sends.size() > size_limit || receives.size() > size_limit)
    throw Error("comm.exchange_size", text_of("one exchange holds at most ", max_exchange_messages, " sends and as many receives; got ",
                                              sends.size(), " and ", receives.size()));
  for (const Outgoing& message : sends) check_call(message.call(), message.data != nullptr, group.size());
  for (const Incoming& message : receives) check_call(message.call(), message.data != nullptr, group.size());
  if (sends.empty() && receives.empty()) return;

  World& world = group.world();
  const int self = group.world_rank(rank);
  Exchange moving(group, rank, sends, receives);
  if (world.is_broken()) world.throw_fault(self, moving.call());
  while (true) {
    moving.move();
    progress_all(group, rank);
    if (moving.is_over()) return;
    if (world.is_broken()) {
      world.quiesce(self);
      world.throw_fault(self, moving.call());
    }
    world.block(self, moving);
  }
}

}  // namespace weft::comm
