// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads of one process: nothing is copied but the result, and blocking is honest (see ThreadOptions).
#pragma once

#include <exception>
#include <memory>
#include <span>
#include <string_view>

#include "weft/comm/thread/collectives.hpp"
#include "weft/comm/thread/exchange.hpp"

namespace weft {

// An all-reduce that has been started. Its buffer is the communicator's until wait() has returned, or done() was true. One that is
// destroyed before breaks the world (`weft[comm.request_dropped]` for the others) and returns once nobody touches the buffer: declare
// requests after what they work on.
class ThreadRequest {
 public:
  ThreadRequest() = default;
  ThreadRequest(comm::Group& group, int rank, Index number) : group_(&group), rank_(rank), number_(number) {}
  ThreadRequest(ThreadRequest&& other) noexcept
      : group_(std::exchange(other.group_, nullptr)), rank_(other.rank_), number_(other.number_) {}
  ThreadRequest& operator=(ThreadRequest&& other) noexcept {
    std::swap(group_, other.group_);
    std::swap(rank_, other.rank_);
    std::swap(number_, other.number_);
    return *this;
  }
  ~ThreadRequest() {
    if (group_ == nullptr || group_->is_complete(number_)) return;
    comm::World& world = group_->world();
    const int self = group_->world_rank(rank_);
    const std::string call = to_text(group_->part(number_, rank_).call);
    if (std::uncaught_exceptions() > 0)
      world.break_with("comm.rank_failed", text_of("rank ", self, " failed after it had started ", call, ", so the others cannot go on"),
                       self);
    else
      world.break_with("comm.request_dropped", text_of("every started request is waited for; rank ", self, " dropped ", call), self);
    world.quiesce(self);
  }

  // Finishes the request, doing this rank's share of others meanwhile. A request that is finished, or empty, needs nothing.
  void wait() {
    if (group_ == nullptr) return;
    group_->wait(rank_, number_, true);
    group_ = nullptr;
  }

  // Whether it is finished; makes progress.
  bool done() {
    if (group_ == nullptr) return true;
    comm::progress_all(*group_, rank_);
    if (!group_->is_complete(number_)) return false;
    group_ = nullptr;
    return true;
  }

 private:
  comm::Group* group_ = nullptr;
  int rank_ = 0;
  Index number_ = 0;
};

// A handle, cheap to copy; used by its rank's thread only, and not after its world is gone.
// Isa: the vector registers that reductions use.
template <class Isa = simd::Native>
class BasicThreadCommunicator {
 public:
  using communicator_tag = void;
  using Request = ThreadRequest;

  BasicThreadCommunicator(comm::Group& group, int rank) : group_(&group), rank_(rank) {}

  int rank() const { return rank_; }
  int size() const { return group_->size(); }
  int id() const { return group_->id(); }

  void barrier() { run({.operation = Operation::barrier}, nullptr, nullptr, nullptr, false); }

  // Bytes of traffic: 2 · R · n · sizeof(T), in two meetings. `tag` says what is reduced, for the comparison among ranks and the record.
  template <class T>
  void all_reduce(T* data, Index count, Reduction reduction, Index tag = 0) {
    run(call<T>(Operation::all_reduce, data, count, reduction, -1, tag), data, data, comm::all_reduce_share<Isa, T>, true);
  }

  template <class T>
  [[nodiscard]] Request start_all_reduce(T* data, Index count, Reduction reduction, Index tag = 0) {
    const comm::Part part{.call = call<T>(Operation::all_reduce, data, count, reduction, -1, tag),
                          .in = data,
                          .out = data,
                          .work = comm::all_reduce_share<Isa, T>};
    return Request(*group_, rank_, group_->post(rank_, part));
  }

  // This rank's share of the requests where all ranks have arrived; a few loads when there are none.
  void progress() {
    comm::progress_all(*group_, rank_);
    if (group_->world().is_broken()) group_->world().throw_fault(group_->world_rank(rank_), {.operation = Operation::all_reduce});
  }

  void wait(Request& request) { request.wait(); }

  template <class T>
  void reduce(T* data, Index count, Reduction reduction, int root, Index tag = 0) {
    run(call<T>(Operation::reduce, data, count, reduction, root, tag), data, data, comm::reduce_share<Isa, T>, true);
  }

  template <class T>
  void reduce_scatter(T* out, const T* in, Index count, Reduction reduction, Index tag = 0) {
    const CallRecord record = call<T>(Operation::reduce_scatter, in, count, reduction, -1, tag);
    check_apart(record, out, count, in, count * size(), in + rank_ * count);
    run(record, in, out, comm::reduce_scatter_share<Isa, T>, true);
  }

  template <class T>
  void all_gather(T* out, const T* in, Index count, Index tag = 0) {
    const CallRecord record = call<T>(Operation::all_gather, in, count, Reduction::sum, -1, tag);
    check_apart(record, in, count, out, count * size(), out + rank_ * count);
    run(record, in, out, comm::all_gather_share<T>, true);
  }

  // Only the root has to wait for the others: they read its buffer, and nobody reads theirs.
  template <class T>
  void broadcast(T* data, Index count, int root, Index tag = 0) {
    run(call<T>(Operation::broadcast, data, count, Reduction::sum, root, tag), data, data, comm::broadcast_share<T>, rank_ == root);
  }

  template <class T>
  void all_to_all(T* out, const T* in, Index count, Index tag = 0) {
    const CallRecord record = call<T>(Operation::all_to_all, in, count, Reduction::sum, -1, tag);
    check_apart<T>(record, out, count * size(), in, count * size(), nullptr);
    run(record, in, out, comm::all_to_all_share<T>, true);
  }

  template <class T>
  void send(const T* data, Index count, int peer, Index tag = 0) {
    const Outgoing message = outgoing(data, count, peer, tag);
    comm::exchange(*group_, rank_, {&message, 1}, {});
  }

  template <class T>
  void receive(T* data, Index count, int peer, Index tag = 0) {
    const Incoming message = incoming(data, count, peer, tag);
    comm::exchange(*group_, rank_, {}, {&message, 1});
  }

  void exchange(std::span<const Outgoing> sends, std::span<const Incoming> receives) { comm::exchange(*group_, rank_, sends, receives); }

  // Collective over this communicator. Allocates; what it makes lives as long as the world.
  BasicThreadCommunicator split(int color, int key);

  void abort(std::string_view reason) {
    comm::World& world = group_->world();
    const int self = group_->world_rank(rank_);
    world.break_with("comm.aborted", text_of("rank ", self, " aborted: ", reason), self);
    world.quiesce(self);
    world.throw_fault(self, {});
  }

 private:
  template <class T>
  CallRecord call(Operation operation, const T* data, Index count, Reduction reduction, int root, Index tag) const {
    static_assert(element_type_of<T> != ElementType::none, "weft[comm.element_type]: this type is not one that ranks exchange");
    const CallRecord record{.operation = operation,
                            .type = element_type_of<T>,
                            .reduction = reduction,
                            .peer = root,
                            .count = count,
                            .tag = tag,
                            .communicator = id()};
    check_call(record, data != nullptr, size());
    return record;
  }

  void run(const CallRecord& record, const void* in, void* out, comm::Work work, bool shared) {
    group_->wait(rank_, group_->post(rank_, {.call = record, .in = in, .out = out, .work = work}), shared);
  }

  comm::Group* group_;
  int rank_;
};

template <class Isa>
BasicThreadCommunicator<Isa> BasicThreadCommunicator<Isa>::split(int color, int key) {
  if (color < 0) throw Error("comm.color", text_of("a color is at least 0; got ", color, " on rank ", rank_));
  const auto gather = [this](auto* all, const auto* own, Index count) {
    using T = std::remove_cvref_t<decltype(*own)>;
    run(call<T>(Operation::split, own, count, Reduction::sum, -1, 0), own, all, comm::all_gather_share<T>, true);
  };
  const auto num_ranks = std::size_t(size());
  const std::int32_t own[2] = {color, key};
  std::vector<std::int32_t> choices(2 * num_ranks);
  gather(choices.data(), own, 2);

  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank)
    if (choices[2 * std::size_t(rank)] == color) ranks.push_back(rank);
  std::stable_sort(ranks.begin(), ranks.end(),
                   [&](int a, int b) { return choices[2 * std::size_t(a) + 1] < choices[2 * std::size_t(b) + 1]; });
  const auto self = static_cast<int>(std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin());

  // The first rank of each part makes it; all learn where it is.
  comm::World& world = group_->world();
  std::uint64_t made = 0;
  if (self == 0) {
    std::vector<int> world_ranks;
    for (const int rank : ranks) world_ranks.push_back(group_->world_rank(rank));
    made = reinterpret_cast<std::uintptr_t>(world.adopt(std::make_shared<comm::Group>(world, world_ranks, world.next_group_id())));
  }
  std::vector<std::uint64_t> addresses(num_ranks);
  gather(addresses.data(), &made, 1);
  auto* group = reinterpret_cast<comm::Group*>(static_cast<std::uintptr_t>(addresses[std::size_t(ranks.front())]));
  world.memberships(group_->world_rank(rank_)).push_back({group, self});
  return BasicThreadCommunicator(*group, self);
}

using ThreadCommunicator = BasicThreadCommunicator<>;

// The ranks 0 … size-1 of one process. Make it, give each thread its communicator, and say when a rank's function has returned or thrown:
// weft::launch does all of that.
class ThreadWorld {
 public:
  explicit ThreadWorld(int size, const ThreadOptions& options = {}) : world_(checked(size), options) {
    std::vector<int> ranks(std::size_t(size), 0);
    for (int rank = 0; rank < size; ++rank) ranks[std::size_t(rank)] = rank;
    all_ = world_.adopt(std::make_shared<comm::Group>(world_, ranks, world_.next_group_id()));
    for (int rank = 0; rank < size; ++rank) world_.memberships(rank).push_back({all_, rank});
  }

  int size() const { return world_.size(); }
  template <class Isa = simd::Native>
  BasicThreadCommunicator<Isa> communicator(int rank) {
    if (rank < 0 || rank >= size()) throw Error("comm.rank", text_of("a rank is from 0 to ", size() - 1, "; got ", rank));
    return {*all_, rank};
  }

  // leave, fail: to be called from the rank's own thread when it has returned, or has thrown something that reads `what`. culprit: the
  // rank that the first fault is about, or -1.
  void leave(int rank) { world_.leave(rank); }
  int culprit() { return world_.culprit(); }
  void fail(int rank, const std::string& what) { world_.fail(rank, what); }

 private:
  static int checked(int size) {
    if (size < 1 || size > comm::max_thread_ranks)
      throw Error("comm.world_size", text_of("a world has 1 to ", comm::max_thread_ranks, " threads; got ", size));
    return size;
  }

  comm::World world_;
  comm::Group* all_ = nullptr;
};

}  // namespace weft
