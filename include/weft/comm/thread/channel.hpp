// SPDX-License-Identifier: Apache-2.0
// The messages from one rank to one other: the sender posts where its data lies, the receiver copies it from there.
#pragma once

#include <array>
#include <atomic>

#include "weft/comm/message.hpp"
#include "weft/comm/thread/world.hpp"

namespace weft::comm {

struct alignas(alignment_bytes) Channel {
  // Messages that may be posted and not yet taken; the next one waits.
  static constexpr Index depth = 4;

  std::atomic<Index> sent{0};                            // written by the sender
  alignas(alignment_bytes) std::atomic<Index> taken{0};  // written by the receiver
  std::array<Outgoing, std::size_t(depth)> messages;     // message i at i % depth, the sender's until `sent` is beyond it
  std::array<Time, std::size_t(depth)> not_before;       // of each, for tests: see ThreadOptions::delay

  bool has_room() const { return sent.load() - taken.load() < depth; }
  bool has_message() const { return taken.load() < sent.load(); }
  bool is_empty() const { return !has_message(); }

  Index number() const { return sent.load(); }  // of the next message, for its sender
  void put(const Outgoing& message, Time from) {
    const Index number = sent.load();
    messages[std::size_t(number % depth)] = message, not_before[std::size_t(number % depth)] = from;
    sent.store(number + 1);
  }
  const Outgoing& front() const { return messages[std::size_t(taken.load() % depth)]; }
  Time front_not_before() const { return not_before[std::size_t(taken.load() % depth)]; }
  void pop() { taken.store(taken.load() + 1); }
};

}  // namespace weft::comm
