// SPDX-License-Identifier: Apache-2.0
// A world of one rank: every collective is the identity and compiles to nothing, or to the one copy that the call asks for.
#pragma once

#include <cstring>
#include <span>
#include <string_view>

#include "weft/comm/message.hpp"

namespace weft {

class SelfCommunicator {
 public:
  using communicator_tag = void;

  struct Request {
    void wait() {}
    bool done() const { return true; }
  };

  static constexpr int rank() { return 0; }
  static constexpr int size() { return 1; }
  int id() const { return id_; }

  void barrier() {}
  void progress() {}
  void wait(Request&) {}

  SelfCommunicator split(int color, int) {
    if (color < 0) throw Error("comm.color", text_of("a color is at least 0; got ", color));
    SelfCommunicator part;
    part.id_ = id_ + 1;
    return part;
  }

  void abort(std::string_view reason) { throw Error("comm.aborted", text_of("rank 0 aborted: ", reason)); }

  template <class T>
  void all_reduce(T* data, Index count, Reduction reduction, Index tag = 0) {
    check<T>(Operation::all_reduce, data, count, -1, reduction, tag);
  }

  template <class T>
  Request start_all_reduce(T* data, Index count, Reduction reduction, Index tag = 0) {
    all_reduce(data, count, reduction, tag);
    return {};
  }

  template <class T>
  void reduce(T* data, Index count, Reduction reduction, int root, Index tag = 0) {
    check<T>(Operation::reduce, data, count, root, reduction, tag);
  }

  template <class T>
  void reduce_scatter(T* out, const T* in, Index count, Reduction reduction, Index tag = 0) {
    copy(check<T>(Operation::reduce_scatter, in, count, -1, reduction, tag), out, in, in);
  }

  template <class T>
  void all_gather(T* out, const T* in, Index count, Index tag = 0) {
    copy(check<T>(Operation::all_gather, in, count, -1, Reduction::sum, tag), out, in, in);
  }

  template <class T>
  void broadcast(T* data, Index count, int root, Index tag = 0) {
    check<T>(Operation::broadcast, data, count, root, Reduction::sum, tag);
  }

  template <class T>
  void all_to_all(T* out, const T* in, Index count, Index tag = 0) {
    copy<T>(check<T>(Operation::all_to_all, in, count, -1, Reduction::sum, tag), out, in, nullptr);
  }

  // A message to oneself has nobody to take it while one sends: only a grouped exchange can hold both ends.
  template <class T>
  void send(const T* data, Index count, int peer, Index tag = 0) {
    const Outgoing message = outgoing(data, count, peer, tag);
    exchange({&message, 1}, {});
  }
  template <class T>
  void receive(T* data, Index count, int peer, Index tag = 0) {
    const Incoming message = incoming(data, count, peer, tag);
    exchange({}, {&message, 1});
  }

  void exchange(std::span<const Outgoing> sends, std::span<const Incoming> receives) {
    for (const Outgoing& message : sends) check_call(message.call(), message.data != nullptr, 1);
    for (const Incoming& message : receives) check_call(message.call(), message.data != nullptr, 1);
    if (sends.size() != receives.size())
      throw Error("comm.deadlock", text_of("a rank that is alone receives what it sends in the same exchange; got ", sends.size(),
                                           " sends and ", receives.size(), " receives"));
    for (std::size_t i = 0; i < sends.size(); ++i) {
      const Outgoing& from = sends[i];
      const Incoming& to = receives[i];
      if (from.type != to.type || from.count != to.count || from.tag != to.tag)
        throw Error("comm.mismatch",
                    text_of("a message is received as it was sent; rank 0: ", to_text(from.call()), "; rank 0: ", to_text(to.call())));
    }
    for (std::size_t i = 0; i < sends.size(); ++i)
      if (sends[i].count > 0) std::memmove(receives[i].data, sends[i].data, std::size_t(sends[i].count * bytes_of(sends[i].type)));
  }

 private:
  template <class T>
  static CallRecord check(Operation operation, const T* data, Index count, int root, Reduction reduction, Index tag) {
    static_assert(element_type_of<T> != ElementType::none, "weft[comm.element_type]: this type is not one that ranks exchange");
    const CallRecord call{
        .operation = operation, .type = element_type_of<T>, .reduction = reduction, .peer = root, .count = count, .tag = tag};
    check_call(call, data != nullptr, 1);
    return call;
  }

  template <class T>
  static void copy(const CallRecord& call, T* out, const T* in, const T* own) {
    check_apart<T>(call, out, call.count, in, call.count, own);
    if (call.count > 0 && out != in) std::memmove(out, in, std::size_t(call.count) * sizeof(T));
  }

  int id_ = 0;
};

}  // namespace weft
