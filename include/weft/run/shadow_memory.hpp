// SPDX-License-Identifier: Apache-2.0
// Watches a rank's arenas while it trains: which tensor lies where, and whether it still does when it is read. The check of the plan's
// lifetimes that does not believe the plan, and the measure of the memory that is really used. For tests: it slows a step down.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "weft/base/error.hpp"
#include "weft/run/arenas.hpp"

namespace weft {

// A tensor of one micro-batch: of a unit's frame; saved: number 4·(leaf of the frame) + k.
enum class TensorKind : std::uint8_t { value, gradient, saved };
struct TensorName {
  TensorKind kind = TensorKind::value;
  Index unit = 0;
  int tensor = 0;
  Index micro = 0;

  std::uint64_t key() const {
    return (std::uint64_t(kind) << 60) ^ (std::uint64_t(unit) << 40) ^ (std::uint64_t(std::uint32_t(tensor)) << 20) ^ std::uint64_t(micro);
  }
};

class ShadowMemory {
 public:
  // What a test does after every op of the walker.
  struct Watcher {
    virtual ~Watcher() = default;
    virtual void after_op(ShadowMemory& shadow, Index unit, int op, bool backward, Index micro) = 0;
  };
  Watcher* watcher = nullptr;

  static constexpr std::size_t num_arenas = 6;

  explicit ShadowMemory(const Arenas& arenas) {
    for (const Buffer* buffer :
         {&arenas.activations, &arenas.live, &arenas.boundaries, &arenas.workspace, &arenas.messages, &arenas.inputs})
      watched_.push_back(
          {buffer->data(), buffer->bytes(), std::vector<std::uint32_t>(std::size_t(divide_up(buffer->bytes(), alignment_bytes)))});
  }

  // The tensor is now what lies there.
  void write(const TensorName& name, const void* data, Index bytes) {
    const std::uint32_t version = ++last_version_;
    tensors_[name.key()] = {version, data, bytes};
    for_each_cell(data, bytes, [&](std::uint32_t& cell) { cell = version; });
  }
  // A part of it is written: the rest stays what it is.
  void touch(const TensorName& name, const void* data, Index bytes) {
    if (!lies_at(name, data, bytes)) write(name, data, bytes);
  }
  // Bytes that a call of a communicator reads besides the tensor: the padding of equal slices.
  void use(const void* data, Index bytes) {
    for_each_cell(data, bytes, [](std::uint32_t& cell) { cell = std::max(cell, padding); });
  }
  // Two names of the same bytes, until one of them is written.
  void share(const TensorName& name, const TensorName& with) { tensors_[name.key()] = tensors_[with.key()]; }
  // Errors: weft[shadow.read]: something else was written over it, or it never lay there.
  void read(const TensorName& name, const void* data, Index bytes, const char* what) {
    if (lies_at(name, data, bytes)) return;
    constexpr const char* kinds[] = {"value", "gradient", "saved tensor"};
    throw Error("shadow.read",
                text_of("a tensor is read that does not lie there any more; its lifetime in the plan is too short (", what, " reads ",
                        kinds[int(name.kind)], " ", name.tensor, " of unit ", name.unit, ", micro-batch ", name.micro, ")"));
  }
  // As if it were needed once more, where it was written last: a longer lifetime than the plan knows of.
  void read_again(const TensorName& name, const char* what) {
    const Tensor& tensor = tensors_[name.key()];
    read(name, tensor.data, tensor.bytes, what);
  }
  // Between steps everything may go.
  void forget() { tensors_.clear(); }

  // Bytes from an arena's begin to the highest that was ever written: activations, live, boundaries, workspace, messages, inputs.
  Index used_bytes(std::size_t arena) const {
    const std::vector<std::uint32_t>& cells = watched_[arena].cells;
    std::size_t end = cells.size();
    while (end > 0 && cells[end - 1] == 0) --end;
    return std::min(Index(end) * alignment_bytes, watched_[arena].bytes);
  }
  Index size_of(std::size_t arena) const { return watched_[arena].bytes; }

 private:
  struct Tensor {
    std::uint32_t version = 0;
    const void* data = nullptr;
    Index bytes = 0;
  };
  struct Watched {
    const std::byte* data;
    Index bytes;
    std::vector<std::uint32_t> cells;  // by alignment_bytes: the version that was written last
  };

  template <class Visit>
  void for_each_cell(const void* data, Index bytes, Visit&& visit) {
    const std::byte* first = static_cast<const std::byte*>(data);
    if (bytes == 0) return;
    for (Watched& arena : watched_) {
      if (first < arena.data || first >= arena.data + arena.bytes) continue;
      if (first + bytes > arena.data + arena.bytes)
        throw Error("shadow.bounds", text_of("a tensor reaches beyond its arena (at byte ", first - arena.data, ", ", bytes,
                                             " bytes, arena of ", arena.bytes, ")"));
      const Index begin = (first - arena.data) / alignment_bytes, end = divide_up(first - arena.data + bytes, alignment_bytes);
      for (Index c = begin; c < end; ++c) visit(arena.cells[std::size_t(c)]);
      return;
    }
    throw Error("shadow.bounds", text_of("a tensor lies in no watched arena (", bytes, " bytes)"));
  }
  bool lies_at(const TensorName& name, const void* data, Index bytes) {
    const auto known = tensors_.find(name.key());
    if (bytes == 0) return true;
    if (known == tensors_.end()) return false;
    bool same = true;
    for_each_cell(data, bytes, [&](std::uint32_t& cell) { same &= cell == known->second.version; });
    return same;
  }

  std::vector<Watched> watched_;
  std::unordered_map<std::uint64_t, Tensor> tensors_;
  std::uint32_t last_version_ = padding;
  static constexpr std::uint32_t padding = 1;
};

}  // namespace weft
