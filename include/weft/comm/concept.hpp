// SPDX-License-Identifier: Apache-2.0
// What a communicator is: a small core, and one concept per capability, so that an algorithm asks for the least it needs.
//
// A user's communicator joins by `using communicator_tag = void;` and is tested by tests/contract/communicator_suite.hpp. What the
// signatures cannot say, and the suite checks:
//  - A rank is one thread. The ranks of a communicator make the same collective calls in the same order, blocking or not.
//  - Every count may be 0. NaN and infinity pass through. 16-bit floating-point sums are kept in float and rounded once.
//  - Results are the same bits on every rank, and the same bits when a call is repeated.
//  - Ranks that disagree, a rank that throws and a rank that leaves give an error on every rank that is or comes to be concerned.
//  - A trailing `tag` says which thing is exchanged (a bucket, a parameter; 0: not said); ranks that disagree on it disagree.
//  - `average` is the sum divided by the number of ranks; integers have none (`weft[comm.average]`).
#pragma once

#include <concepts>
#include <span>
#include <string_view>

#include "weft/comm/message.hpp"

namespace weft {

// rank in [0, size); id tells communicators of one world apart (in records and messages). split: ranks with the same color (>= 0) form a
// communicator, ordered by (key, rank here). abort: every rank of the world gets an error; throws it here.
template <class C>
concept Communicator = requires {
  typename C::communicator_tag;
}
&&requires(C& comm, const C& constant, int number, std::string_view reason) {
  { constant.rank() } -> std::convertible_to<int>;
  { constant.size() } -> std::convertible_to<int>;
  { constant.id() } -> std::convertible_to<int>;
  { comm.barrier() } -> std::same_as<void>;
  { comm.split(number, number) } -> std::same_as<C>;
  { comm.abort(reason) } -> std::same_as<void>;
};

// data (n) in place: every rank gets the reduction over all ranks, in rank order.
template <class C, class Element = float>
concept CanAllReduce = Communicator<C> && requires(C& comm, Element* data, Index count, Reduction reduction, Index tag) {
  { comm.all_reduce(data, count, reduction) } -> std::same_as<void>;
  { comm.all_reduce(data, count, reduction, tag) } -> std::same_as<void>;
};

// The same, started: returns at once; data belongs to the communicator until wait() returns. progress() does what this rank owes to
// the requests where all have arrived. Requests are in order with each other and with blocking calls. Bits as all_reduce.
template <class C, class Element = float>
concept CanStartAllReduce = CanAllReduce<C, Element> &&
    requires(C& comm, Element* data, Index count, Reduction reduction, Index tag, typename C::Request& request) {
  { comm.start_all_reduce(data, count, reduction) } -> std::same_as<typename C::Request>;
  { comm.start_all_reduce(data, count, reduction, tag) } -> std::same_as<typename C::Request>;
  { comm.progress() } -> std::same_as<void>;
  { comm.wait(request) } -> std::same_as<void>;
  { request.wait() } -> std::same_as<void>;
  { request.done() } -> std::convertible_to<bool>;
};

// data (n) in place: the root gets the reduction; the others' data is unchanged.
template <class C, class Element = float>
concept CanReduce = Communicator<C> && requires(C& comm, Element* data, Index count, Reduction reduction, int root, Index tag) {
  { comm.reduce(data, count, reduction, root) } -> std::same_as<void>;
  { comm.reduce(data, count, reduction, root, tag) } -> std::same_as<void>;
};

// in (R, n), out (n): rank r gets the reduction of everybody's row r. out may be the own row of in.
template <class C, class Element = float>
concept CanReduceScatter = Communicator<C> &&
    requires(C& comm, Element* out, const Element* in, Index count, Reduction reduction, Index tag) {
  { comm.reduce_scatter(out, in, count, reduction) } -> std::same_as<void>;
  { comm.reduce_scatter(out, in, count, reduction, tag) } -> std::same_as<void>;
};

// in (n), out (R, n): everybody gets everybody's in, by rank. in may be the own row of out.
template <class C, class Element = float>
concept CanAllGather = Communicator<C> && requires(C& comm, Element* out, const Element* in, Index count, Index tag) {
  { comm.all_gather(out, in, count) } -> std::same_as<void>;
  { comm.all_gather(out, in, count, tag) } -> std::same_as<void>;
};

// data (n): becomes the root's.
template <class C, class Element = float>
concept CanBroadcast = Communicator<C> && requires(C& comm, Element* data, Index count, int root, Index tag) {
  { comm.broadcast(data, count, root) } -> std::same_as<void>;
  { comm.broadcast(data, count, root, tag) } -> std::same_as<void>;
};

// in (R, n), out (R, n), apart: row q of rank r's out is row r of rank q's in.
template <class C, class Element = float>
concept CanAllToAll = Communicator<C> && requires(C& comm, Element* out, const Element* in, Index count, Index tag) {
  { comm.all_to_all(out, in, count) } -> std::same_as<void>;
  { comm.all_to_all(out, in, count, tag) } -> std::same_as<void>;
};

// Messages between two ranks arrive in the order sent. send may wait until its receive is posted. exchange posts all, then waits.
template <class C, class Element = float>
concept CanSendReceive = Communicator<C> && requires(C& comm, Element* data, const Element* constant, Index count, int peer, Index tag,
                                                     std::span<const Outgoing> sends, std::span<const Incoming> receives) {
  { comm.send(constant, count, peer) } -> std::same_as<void>;
  { comm.send(constant, count, peer, tag) } -> std::same_as<void>;
  { comm.receive(data, count, peer) } -> std::same_as<void>;
  { comm.receive(data, count, peer, tag) } -> std::same_as<void>;
  { comm.exchange(sends, receives) } -> std::same_as<void>;
};

}  // namespace weft
