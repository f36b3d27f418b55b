// SPDX-License-Identifier: Apache-2.0
// One call on a communicator as a value: what the plan's ledger predicts, what a recording communicator sees, and what ranks compare
// before data moves.
#pragma once

#include <string>

#include "weft/base/text.hpp"
#include "weft/dtype/element_type.hpp"

namespace weft {

enum class Operation : std::uint8_t {
  barrier,
  broadcast,
  reduce,
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  send,
  receive,
  split
};

enum class Reduction : std::uint8_t { sum, product, minimum, maximum, average };

constexpr const char* name_of(Operation operation) {
  switch (operation) {
    case Operation::barrier: return "barrier";
    case Operation::broadcast: return "broadcast";
    case Operation::reduce: return "reduce";
    case Operation::all_reduce: return "all_reduce";
    case Operation::reduce_scatter: return "reduce_scatter";
    case Operation::all_gather: return "all_gather";
    case Operation::all_to_all: return "all_to_all";
    case Operation::send: return "send";
    case Operation::receive: return "receive";
    case Operation::split: return "split";
  }
  return "unknown";
}

constexpr const char* name_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return "sum";
    case Reduction::product: return "product";
    case Reduction::minimum: return "minimum";
    case Reduction::maximum: return "maximum";
    case Reduction::average: return "average";
  }
  return "unknown";
}

constexpr bool reduces(Operation operation) {
  return operation == Operation::all_reduce || operation == Operation::reduce_scatter || operation == Operation::reduce;
}

constexpr bool has_root(Operation operation) { return operation == Operation::broadcast || operation == Operation::reduce; }
constexpr bool has_peer(Operation operation) { return operation == Operation::send || operation == Operation::receive; }

// `count` is the number of elements as the call states it: of the whole buffer (broadcast, reduce, all_reduce, send, receive), of one
// rank's part (reduce_scatter: what a rank keeps; all_gather: what a rank gives), of one pair's part (all_to_all). A non-blocking
// all-reduce is the same call as a blocking one. Fields that an operation does not have keep their defaults, so that == works.
struct CallRecord {
  Operation operation = Operation::barrier;
  ElementType type = ElementType::none;
  Reduction reduction = Reduction::sum;
  int peer = -1;  // the root, or the other side of a message; a rank of the communicator
  Index count = 0;
  Index tag = 0;         // which thing is exchanged (a bucket, a parameter), where the caller says so; compared among ranks
  int communicator = 0;  // which communicator, numbered by its owner; not compared among ranks

  friend constexpr bool operator==(const CallRecord&, const CallRecord&) = default;
};

// Whether two ranks of one communicator may meet in this collective.
constexpr bool agree(const CallRecord& a, const CallRecord& b) {
  return a.operation == b.operation && a.type == b.type && a.reduction == b.reduction && a.peer == b.peer && a.count == b.count &&
         a.tag == b.tag;
}

// `all_reduce of 1024 float32, sum, tag 3`.
inline std::string to_text(const CallRecord& call) {
  std::string text = name_of(call.operation);
  if (call.type != ElementType::none) text += text_of(" of ", call.count, " ", name_of(call.type));
  if (reduces(call.operation)) text += text_of(", ", name_of(call.reduction));
  if (has_root(call.operation)) text += text_of(", root ", call.peer);
  if (has_peer(call.operation)) text += text_of(call.operation == Operation::send ? " to rank " : " from rank ", call.peer);
  if (call.tag != 0) text += text_of(", tag ", call.tag);
  return text;
}

}  // namespace weft
