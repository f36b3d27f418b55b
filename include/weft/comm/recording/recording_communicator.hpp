// SPDX-License-Identifier: Apache-2.0
// Any communicator, with a list of the calls that were made through it: what an audit compares with the plan's ledger.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/comm/concept.hpp"

namespace weft {

// A communicator's type of started requests, or a stand-in if it has none.
template <class C>
struct RequestOf {
  struct type {};
};
template <class C>
requires requires { typename C::Request; }
struct RequestOf<C> {
  using type = typename C::Request;
};

// Records a call before it is made, under the communicator id it was given; has the capabilities that Inner has. Messages of a grouped
// exchange are recorded one by one, sends first. The list is allocated once: calls beyond its capacity are counted and not kept.
template <Communicator Inner>
class RecordingCommunicator {
 public:
  using communicator_tag = void;
  using Request = typename RequestOf<Inner>::type;

  RecordingCommunicator(Inner inner, Index capacity) : RecordingCommunicator(std::move(inner), capacity, -1) {}
  // id: stands in the records in place of the inner communicator's.
  RecordingCommunicator(Inner inner, Index capacity, int id)
      : inner_(std::move(inner)), id_(id < 0 ? inner_.id() : id), capacity_(capacity) {
    records_.reserve(std::size_t(capacity));
  }

  std::span<const CallRecord> records() const { return records_; }
  Index num_calls() const { return num_calls_; }
  bool is_complete() const { return num_calls_ == Index(records_.size()); }
  void clear() {
    records_.clear();
    num_calls_ = 0;
  }
  Inner& inner() { return inner_; }

  int rank() const { return inner_.rank(); }
  int size() const { return inner_.size(); }
  int id() const { return id_; }

  void barrier() {
    record({.operation = Operation::barrier});
    inner_.barrier();
  }

  // The part has a list of its own, of the same capacity.
  RecordingCommunicator split(int color, int key) {
    record({.operation = Operation::split});
    return {inner_.split(color, key), capacity_};
  }

  void abort(std::string_view reason) { inner_.abort(reason); }

  template <class T>
  requires CanAllReduce<Inner, T>
  void all_reduce(T* data, Index count, Reduction reduction, Index tag = 0) {
    record({.operation = Operation::all_reduce, .type = element_type_of<T>, .reduction = reduction, .count = count, .tag = tag});
    inner_.all_reduce(data, count, reduction, tag);
  }

  template <class T>
  requires CanStartAllReduce<Inner, T>
  [[nodiscard]] Request start_all_reduce(T* data, Index count, Reduction reduction, Index tag = 0) {
    record({.operation = Operation::all_reduce, .type = element_type_of<T>, .reduction = reduction, .count = count, .tag = tag});
    return inner_.start_all_reduce(data, count, reduction, tag);
  }
  void progress() requires CanStartAllReduce<Inner> { inner_.progress(); }
  void wait(Request& request) requires CanStartAllReduce<Inner> { inner_.wait(request); }

  template <class T>
  requires CanReduce<Inner, T>
  void reduce(T* data, Index count, Reduction reduction, int root, Index tag = 0) {
    record({.operation = Operation::reduce, .type = element_type_of<T>, .reduction = reduction, .peer = root, .count = count, .tag = tag});
    inner_.reduce(data, count, reduction, root, tag);
  }

  template <class T>
  requires CanReduceScatter<Inner, T>
  void reduce_scatter(T* out, const T* in, Index count, Reduction reduction, Index tag = 0) {
    record({.operation = Operation::reduce_scatter, .type = element_type_of<T>, .reduction = reduction, .count = count, .tag = tag});
    inner_.reduce_scatter(out, in, count, reduction, tag);
  }

  template <class T>
  requires CanAllGather<Inner, T>
  void all_gather(T* out, const T* in, Index count, Index tag = 0) {
    record({.operation = Operation::all_gather, .type = element_type_of<T>, .count = count, .tag = tag});
    inner_.all_gather(out, in, count, tag);
  }

  template <class T>
  requires CanBroadcast<Inner, T>
  void broadcast(T* data, Index count, int root, Index tag = 0) {
    record({.operation = Operation::broadcast, .type = element_type_of<T>, .peer = root, .count = count, .tag = tag});
    inner_.broadcast(data, count, root, tag);
  }

  template <class T>
  requires CanAllToAll<Inner, T>
  void all_to_all(T* out, const T* in, Index count, Index tag = 0) {
    record({.operation = Operation::all_to_all, .type = element_type_of<T>, .count = count, .tag = tag});
    inner_.all_to_all(out, in, count, tag);
  }

  template <class T>
  requires CanSendReceive<Inner, T>
  void send(const T* data, Index count, int peer, Index tag = 0) {
    record(outgoing(data, count, peer, tag).call());
    inner_.send(data, count, peer, tag);
  }

  template <class T>
  requires CanSendReceive<Inner, T>
  void receive(T* data, Index count, int peer, Index tag = 0) {
    record(incoming(data, count, peer, tag).call());
    inner_.receive(data, count, peer, tag);
  }

  void exchange(std::span<const Outgoing> sends, std::span<const Incoming> receives) requires CanSendReceive<Inner> {
    for (const Outgoing& message : sends) record(message.call());
    for (const Incoming& message : receives) record(message.call());
    inner_.exchange(sends, receives);
  }

 private:
  void record(CallRecord call) {
    call.communicator = id_;
    if (Index(records_.size()) < capacity_) records_.push_back(call);
    ++num_calls_;
  }

  Inner inner_;
  int id_;
  Index capacity_;
  Index num_calls_ = 0;
  std::vector<CallRecord> records_;
};

}  // namespace weft
