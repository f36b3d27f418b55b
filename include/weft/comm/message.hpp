// SPDX-License-Identifier: Apache-2.0
// The parts of a grouped exchange: messages to send and to receive, posted together, so that two ranks that both send first do not wait
// for each other whatever the size.
#pragma once

#include "weft/base/error.hpp"
#include "weft/base/text.hpp"
#include "weft/layout/call.hpp"

namespace weft {

struct Outgoing {
  const void* data = nullptr;
  Index count = 0;
  ElementType type = ElementType::none;
  int peer = -1;
  Index tag = 0;

  constexpr CallRecord call() const { return {.operation = Operation::send, .type = type, .peer = peer, .count = count, .tag = tag}; }
};

struct Incoming {
  void* data = nullptr;
  Index count = 0;
  ElementType type = ElementType::none;
  int peer = -1;
  Index tag = 0;

  constexpr CallRecord call() const { return {.operation = Operation::receive, .type = type, .peer = peer, .count = count, .tag = tag}; }
};

template <class T>
constexpr Outgoing outgoing(const T* data, Index count, int peer, Index tag = 0) {
  static_assert(element_type_of<T> != ElementType::none, "weft[comm.element_type]: this type is not one that ranks exchange");
  return {.data = data, .count = count, .type = element_type_of<T>, .peer = peer, .tag = tag};
}

template <class T>
constexpr Incoming incoming(T* data, Index count, int peer, Index tag = 0) {
  static_assert(element_type_of<T> != ElementType::none, "weft[comm.element_type]: this type is not one that ranks exchange");
  return {.data = data, .count = count, .type = element_type_of<T>, .peer = peer, .tag = tag};
}

// Sends, and receives, that one exchange may hold.
inline constexpr Index max_exchange_messages = 64;

// What every communicator refuses in a call before it does anything: a negative count, no memory, a rank that does not exist, an average
// of integers.
inline void check_call(const CallRecord& call, bool has_memory, int size) {
  if (call.count < 0) throw Error("comm.count", text_of("a count is at least 0; got ", to_text(call)));
  const bool is_float =
      call.type == ElementType::f64 || call.type == ElementType::f32 || call.type == ElementType::f16 || call.type == ElementType::bf16;
  if (reduces(call.operation) && call.reduction == Reduction::average && !is_float)
    throw Error("comm.average", text_of("integers have no average; sum, and divide where it is known how to round; got ", to_text(call)));
  if (call.count > 0 && !has_memory)
    throw Error("comm.memory", text_of("a null pointer stands for no elements; got it for ", to_text(call)));
  if ((has_root(call.operation) || has_peer(call.operation)) && (call.peer < 0 || call.peer >= size))
    throw Error("comm.peer", text_of("a root or peer is a rank from 0 to ", size - 1, "; got ", to_text(call)));
}

// Refuses buffers that overlap, unless the first is exactly `own`, this rank's row of the second; and a second that is not there.
template <class T>
void check_apart(const CallRecord& call, const T* first, Index first_count, const T* second, Index second_count, const T* own) {
  check_call(call, first != nullptr && second != nullptr, call.peer + 1);
  const auto begin = reinterpret_cast<std::uintptr_t>(first), other = reinterpret_cast<std::uintptr_t>(second);
  const auto bytes = std::uintptr_t(first_count) * sizeof(T), other_bytes = std::uintptr_t(second_count) * sizeof(T);
  if (call.count == 0 || first == own || begin + bytes <= other || other + other_bytes <= begin) return;
  throw Error("comm.overlap",
              text_of("the two buffers of a call lie apart, or one is the rank's own row of the other; they overlap in ", to_text(call)));
}

}  // namespace weft
