// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <new>
#include <utility>

#include "weft/base/config.hpp"

namespace weft {

// Owned bytes, aligned to a cache line and zero at first. The rank that makes it touches it first, so that its pages are near that rank.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(Index bytes)
      : data_(bytes > 0 ? static_cast<std::byte*>(::operator new(std::size_t(bytes), std::align_val_t(alignment_bytes))) : nullptr),
        bytes_(bytes) {
    if (data_) std::memset(data_, 0, std::size_t(bytes_));
  }
  Buffer(Buffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_), std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Buffer() { ::operator delete(data_, std::align_val_t(alignment_bytes)); }

  std::byte* data() const { return data_; }
  Index bytes() const { return bytes_; }
  template <class T>
  T* as(Index offset_bytes = 0) const {
    return reinterpret_cast<T*>(data_ + offset_bytes);
  }

 private:
  std::byte* data_ = nullptr;
  Index bytes_ = 0;
};

}  // namespace weft
