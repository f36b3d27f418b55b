// SPDX-License-Identifier: Apache-2.0
// A vector for long tables in constant expressions: clang counts 5 steps for an element where std::vector takes 40 to 70, and allows a
// million for all of an evaluation.
#pragma once

#include <initializer_list>
#include <type_traits>
#include <vector>

#include "weft/base/config.hpp"

namespace weft {

// T: trivially copyable with a default. new elements have T's default.
template <class T>
class LeanVector {
 public:
  using value_type = T;

  constexpr LeanVector() = default;
  constexpr explicit LeanVector(std::size_t count) : items_(count > 0 ? new T[count]{} : nullptr), size_(count), capacity_(count) {}
  constexpr LeanVector(std::initializer_list<T> items) { append(items.begin(), items.size()); }
  constexpr LeanVector(const std::vector<T>& items) { append(items.data(), items.size()); }
  constexpr LeanVector(const LeanVector& other) { append(other.items_, other.size_); }
  constexpr LeanVector(LeanVector&& other) noexcept : items_(other.items_), size_(other.size_), capacity_(other.capacity_) {
    other.items_ = nullptr, other.size_ = other.capacity_ = 0;
  }
  constexpr LeanVector& operator=(const LeanVector& other) {
    if (this != &other) size_ = 0, append(other.items_, other.size_);
    return *this;
  }
  constexpr LeanVector& operator=(LeanVector&& other) noexcept {
    T* const items = items_;
    const std::size_t size = size_, capacity = capacity_;
    items_ = other.items_, size_ = other.size_, capacity_ = other.capacity_;
    other.items_ = items, other.size_ = size, other.capacity_ = capacity;
    return *this;
  }
  constexpr ~LeanVector() { delete[] items_; }

  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* data() { return items_; }
  constexpr const T* data() const { return items_; }
  constexpr T& operator[](std::size_t i) { return items_[i]; }
  constexpr const T& operator[](std::size_t i) const { return items_[i]; }
  constexpr T* begin() { return items_; }
  constexpr T* end() { return items_ + size_; }
  constexpr const T* begin() const { return items_; }
  constexpr const T* end() const { return items_ + size_; }
  constexpr T& front() { return items_[0]; }
  constexpr const T& front() const { return items_[0]; }
  constexpr T& back() { return items_[size_ - 1]; }
  constexpr const T& back() const { return items_[size_ - 1]; }

  constexpr void reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    T* const larger = new T[capacity]{};
    for (std::size_t i = 0; i < size_; ++i) larger[i] = items_[i];
    delete[] items_;
    items_ = larger, capacity_ = capacity;
  }
  constexpr void push_back(const T& item) {
    if (size_ == capacity_) {
      const T copy = item;  // may be one of our own
      reserve(capacity_ < 16 ? 16 : 2 * capacity_);
      items_[size_++] = copy;
      return;
    }
    items_[size_++] = item;
  }
  constexpr void append(const T* items, std::size_t count) {
    reserve(size_ + count);
    for (std::size_t i = 0; i < count; ++i) items_[size_ + i] = items[i];
    size_ += count;
  }
  constexpr void insert(std::size_t at, const T& item) {
    const T copy = item;
    push_back(copy);
    for (std::size_t i = size_ - 1; i > at; --i) items_[i] = items_[i - 1];
    items_[at] = copy;
  }
  constexpr void erase(std::size_t at) {
    for (std::size_t i = at; i + 1 < size_; ++i) items_[i] = items_[i + 1];
    --size_;
  }
  constexpr void clear() { size_ = 0; }

  constexpr bool operator==(const LeanVector& other) const {
    if (size_ != other.size_) return false;
    for (std::size_t i = 0; i < size_; ++i)
      if (!(items_[i] == other.items_[i])) return false;
    return true;
  }

 private:
  static_assert(std::is_trivially_copyable_v<T>, "weft[base.lean_vector]: a LeanVector holds plain values; use std::vector");

  T* items_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace weft
