// SPDX-License-Identifier: Apache-2.0
// A rank of a world that is not there: every call is checked and returns at once, and moves no data. Inside a RecordingCommunicator it
// shows what a strategy would send, for any number of ranks, anywhere.
#pragma once

#include <span>
#include <string_view>

#include "weft/comm/message.hpp"

namespace weft {

class SilentCommunicator {
 public:
  using communicator_tag = void;

  struct Request {
    void wait() {}
    bool done() const { return true; }
  };

  SilentCommunicator(int rank, int size, int id = 0) : rank_(rank), size_(size), id_(id) {
    if (size < 1 || rank < 0 || rank >= size)
      throw Error("comm.rank", text_of("a rank is from 0 to size - 1; got rank ", rank, " of ", size));
  }

  int rank() const { return rank_; }
  int size() const { return size_; }
  int id() const { return id_; }

  void barrier() {}
  void progress() {}
  void wait(Request&) {}
  void abort(std::string_view reason) { throw Error("comm.aborted", text_of("rank ", rank_, " aborted: ", reason)); }

  // Alone, a rank cannot know who else chose its color.
  SilentCommunicator split(int color, int) {
    if (size_ == 1) return {0, 1, id_ + 1};
    throw Error("comm.silent_split", text_of("a communicator without peers cannot tell who else has color ", color,
                                             "; make the part itself: SilentCommunicator(rank, size, id)"));
  }

  template <class T>
  void all_reduce(T* data, Index count, Reduction reduction, Index tag = 0) {
    check<T>(Operation::all_reduce, data, count, reduction, -1, tag);
  }
  template <class T>
  Request start_all_reduce(T* data, Index count, Reduction reduction, Index tag = 0) {
    all_reduce(data, count, reduction, tag);
    return {};
  }
  template <class T>
  void reduce(T* data, Index count, Reduction reduction, int root, Index tag = 0) {
    check<T>(Operation::reduce, data, count, reduction, root, tag);
  }
  template <class T>
  void reduce_scatter(T*, const T* in, Index count, Reduction reduction, Index tag = 0) {
    check<T>(Operation::reduce_scatter, in, count, reduction, -1, tag);
  }
  template <class T>
  void all_gather(T*, const T* in, Index count, Index tag = 0) {
    check<T>(Operation::all_gather, in, count, Reduction::sum, -1, tag);
  }
  template <class T>
  void broadcast(T* data, Index count, int root, Index tag = 0) {
    check<T>(Operation::broadcast, data, count, Reduction::sum, root, tag);
  }
  template <class T>
  void all_to_all(T*, const T* in, Index count, Index tag = 0) {
    check<T>(Operation::all_to_all, in, count, Reduction::sum, -1, tag);
  }
  template <class T>
  void send(const T* data, Index count, int peer, Index tag = 0) {
    check<T>(Operation::send, data, count, Reduction::sum, peer, tag);
  }
  template <class T>
  void receive(T* data, Index count, int peer, Index tag = 0) {
    check<T>(Operation::receive, data, count, Reduction::sum, peer, tag);
  }
  void exchange(std::span<const Outgoing> sends, std::span<const Incoming> receives) {
    for (const Outgoing& message : sends) check_call(message.call(), message.data != nullptr, size_);
    for (const Incoming& message : receives) check_call(message.call(), message.data != nullptr, size_);
  }

 private:
  template <class T>
  void check(Operation operation, const T* data, Index count, Reduction reduction, int peer, Index tag) const {
    static_assert(element_type_of<T> != ElementType::none, "weft[comm.element_type]: this type is not one that ranks exchange");
    check_call({.operation = operation, .type = element_type_of<T>, .reduction = reduction, .peer = peer, .count = count, .tag = tag},
               data != nullptr, size_);
  }

  int rank_, size_, id_;
};

}  // namespace weft
