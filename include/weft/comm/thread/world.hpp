// SPDX-License-Identifier: Apache-2.0
// What the ranks of one process share beside their data: who waits for what, who has left, and the first thing that went wrong.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "weft/base/error.hpp"
#include "weft/layout/call.hpp"

namespace weft {

// How ranks that are threads wait. The defaults are what a program wants; tests change them.
struct ThreadOptions {
  // How long a rank waits for others, when it cannot be told by other means that they will not come.
  std::chrono::milliseconds time_out{60'000};
  // How often a rank looks at the others before it goes to sleep; negative: 400 times while every rank has a core, else 100 times. For the
  // first 200 looks it keeps its core if every rank has one; else it lets others run between two looks, since the one it waits for may
  // need this very core (measured: 16 times slower otherwise).
  int spins = -1;
  // For tests of overlap and of order: how long after its start a collective, and after its posting a message, may not move data at the
  // earliest. Called by every rank for each of its collectives, numbered from 0 in each communicator, and by the sender of a message,
  // numbered from 0 for each receiver; nobody sleeps because of it, except in a wait.
  std::chrono::nanoseconds (*delay)(const CallRecord& call, Index number) = nullptr;
};

}  // namespace weft

namespace weft::comm {

using Time = std::chrono::steady_clock::time_point;
inline constexpr Time always = Time::min(), never = Time::max();

// Gives the other hardware thread of this core some air.
#if defined(__x86_64__) || defined(__i386__)
inline void relax() { __builtin_ia32_pause(); }
#elif defined(__aarch64__)
inline void relax() { asm volatile("yield"); }
#else
inline void relax() {}
#endif

// What a rank waits for. Read by its own thread, and by others while it sleeps: so it only looks at atomics and at what does not change.
class Wait {
 public:
  explicit Wait(const CallRecord& call) : call_(call) {}
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  virtual ~Wait() = default;

  const CallRecord& call() const { return call_; }
  // From when on this rank can go on without another's doing: `always` for at once, `never` if another has to act.
  virtual Time ready_at() const = 0;
  // A world rank that has left and without which this wait cannot end, or -1.
  virtual int missing() const = 0;

 private:
  CallRecord call_;
};

class Group;

class World {
 public:
  World(int size, const ThreadOptions& options) : options_(options), size_(size), ranks_(std::make_unique<RankState[]>(std::size_t(size))) {
    const auto cores = static_cast<int>(std::thread::hardware_concurrency());
    const bool is_crowded = size > cores;
    spins_ = options.spins >= 0 ? options.spins : is_crowded ? 100 : 400;
    num_relaxed_ = is_crowded ? 0 : 200;
  }

  int size() const { return size_; }
  const ThreadOptions& options() const { return options_; }

  // Returns when the wait is over or the world is broken: the caller looks which, and at its wait first.
  void block(int rank, const Wait& wait);

  // Wakes those of the ranks that sleep and can now go on. To be called after the atomic (sequentially consistent) change they wait for.
  template <class Ranks>
  void wake(const Ranks& ranks) {
    // Pairs with block(): either this sees that somebody sleeps, or the sleeper-to-be sees the change.
    if (num_asleep_.load() == 0) return;
    const std::lock_guard lock(mutex_);
    for (const int rank : ranks) {
      RankState& sleeper = state(rank);
      if (sleeper.wait != nullptr && sleeper.wait->ready_at() != never) sleeper.wake.notify_one();
    }
  }

  bool is_broken() const { return broken_.load(); }
  bool has_left(int rank) const { return state(rank).left.load(); }

  // The first fault stays: every later call of every rank gives it. culprit: a rank that failed, or -1 for a fault between ranks, whose
  // text is then the same everywhere.
  void break_with(std::string_view id, const std::string& text, int culprit) {
    const std::lock_guard lock(mutex_);
    break_locked(id, text, culprit);
  }

  // The rank that the first fault is about, or -1.
  int culprit() {
    const std::lock_guard lock(mutex_);
    return fault_.culprit;
  }

  // The fault as this rank's error. Call when is_broken().
  [[noreturn]] void throw_fault(int rank, const CallRecord& call) {
    Fault fault;
    {
      const std::lock_guard lock(mutex_);
      fault = fault_;
    }
    if (fault.culprit < 0 || fault.culprit == rank) throw Error(fault.id, fault.text);
    throw Error(fault.id, text_of(fault.text, "; rank ", rank, " was in ", to_text(call)));
  }

  // A rank touches other ranks' memory only between these. begin_work is false once the world is broken.
  bool begin_work(int rank) {
    // Pairs with quiesce(): either this sees the fault, or the one who broke the world sees the work and waits for its end.
    state(rank).working.store(true);
    if (!is_broken()) return true;
    end_work(rank);
    return false;
  }
  void end_work(int rank) { state(rank).working.store(false); }

  // In a broken world: returns when no other rank touches this rank's memory any more, so that an error may unwind it.
  void quiesce(int rank) const {
    for (int other = 0; other < size_; ++other)
      while (other != rank && state(other).working.load()) std::this_thread::yield();
  }

  // The rank's function has returned: it will make no more calls.
  void leave(int rank) {
    const std::lock_guard lock(mutex_);
    if (state(rank).left.exchange(true)) return;
    ++num_left_;
    wake_all();  // each looks whether it waited for this one
  }

  // The rank's function has thrown.
  void fail(int rank, const std::string& what) {
    break_with("comm.rank_failed", text_of("rank ", rank, " failed, so the others cannot go on; its error: ", what), rank);
    quiesce(rank);
  }

  // The communicators a rank belongs to, with its rank there; only its own thread changes the list.
  struct Membership {
    Group* group;
    int rank;
  };
  std::vector<Membership>& memberships(int rank) { return state(rank).memberships; }

  // A communicator lives as long as its world.
  Group* adopt(std::shared_ptr<Group> group) {
    const std::lock_guard lock(mutex_);
    groups_.push_back(std::move(group));
    return groups_.back().get();
  }
  int next_group_id() { return num_groups_.fetch_add(1); }

 private:
  struct alignas(alignment_bytes) RankState {
    std::atomic<bool> working{false};
    std::atomic<bool> left{false};
    alignas(alignment_bytes) const Wait* wait = nullptr;  // what it sleeps on, under the mutex
    std::condition_variable wake;
    std::vector<Membership> memberships;
  };

  struct Fault {
    std::string id, text;
    int culprit = -1;
  };

  RankState& state(int rank) { return ranks_[std::size_t(rank)]; }
  const RankState& state(int rank) const { return ranks_[std::size_t(rank)]; }

  void wake_all() {
    for (int rank = 0; rank < size_; ++rank)
      if (state(rank).wait != nullptr) state(rank).wake.notify_one();
  }

  void break_locked(std::string_view id, const std::string& text, int culprit) {
    if (broken_.load()) return;
    fault_ = {std::string(id), text, culprit};
    broken_.store(true);
    wake_all();
  }

  // Whether nobody can ever go on: all who have not left sleep, none of them can move by itself, and nothing else changes what they see.
  bool is_stuck() const {
    if (num_asleep_.load() != size() - num_left_) return false;
    for (int rank = 0; rank < size_; ++rank) {
      const Wait* wait = state(rank).wait;
      if (wait != nullptr && (wait->ready_at() != never || wait->missing() >= 0)) return false;
    }
    return true;
  }

  std::string who_does_what() const {
    std::string text;
    for (int rank = 0; rank < size_; ++rank) {
      text += text_of("; rank ", rank, ": ");
      if (const Wait* wait = state(rank).wait)
        text += to_text(wait->call());
      else
        text += state(rank).left.load() ? "has left" : "does not wait";
    }
    return text;
  }

  ThreadOptions options_;
  int size_ = 0;
  int spins_ = 0;
  int num_relaxed_ = 0;
  alignas(alignment_bytes) std::atomic<bool> broken_{false};
  std::atomic<int> num_asleep_{0};
  alignas(alignment_bytes) std::mutex mutex_;
  int num_left_ = 0;
  Fault fault_;
  std::atomic<int> num_groups_{0};
  std::unique_ptr<RankState[]> ranks_;
  std::vector<std::shared_ptr<Group>> groups_;
};

inline void World::block(int rank, const Wait& wait) {
  for (int i = 0; i < spins_; ++i) {
    if (wait.ready_at() == always || is_broken()) return;
    if (i < num_relaxed_)
      relax();
    else
      std::this_thread::yield();
  }
  std::unique_lock lock(mutex_);
  RankState& self = state(rank);
  self.wait = &wait;
  num_asleep_.fetch_add(1);
  const bool has_deadline = options_.time_out < std::chrono::hours(24 * 365);  // so far that adding it could overflow
  const Time deadline = has_deadline ? std::chrono::steady_clock::now() + options_.time_out : never;
  while (!is_broken()) {
    const Time ready = wait.ready_at();
    const Time now = std::chrono::steady_clock::now();
    if (ready <= now) break;
    if (const int gone = wait.missing(); gone >= 0) {
      break_locked("comm.rank_left", text_of("rank ", gone, " has left (its function returned), but the others still need it"), gone);
    } else if (ready == never && is_stuck()) {
      break_locked("comm.deadlock", text_of("every rank waits and none can go on; let the calls of all ranks meet", who_does_what()), -1);
    } else if (now >= deadline) {
      break_locked("comm.time_out",
                   text_of("rank ", rank, " waited ", options_.time_out.count(), " ms; find out what keeps the others, or allow more time",
                           who_does_what()),
                   -1);
    } else {
      self.wake.wait_until(lock, ready < deadline ? ready : deadline);
    }
  }
  num_asleep_.fetch_sub(1);
  self.wait = nullptr;
}

}  // namespace weft::comm
