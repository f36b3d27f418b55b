// SPDX-License-Identifier: Apache-2.0
// Each rank's share of each collective among threads. Nothing is staged: shares read and write the callers' buffers.
#pragma once

#include <cstring>

#include "weft/comm/reduce_elements.hpp"
#include "weft/comm/thread/group.hpp"

namespace weft::comm {

// A world has at most so many threads: pointers to all of their buffers fit on a stack.
inline constexpr int max_thread_ranks = 1024;

struct Slice {
  Index begin, end;
};

// Rank's share of count elements, in whole cache lines, so that no two ranks write into one (if the buffer starts at one).
constexpr Slice slice_of(Index count, int size, int rank, Index element_bytes) {
  const Index length = round_up(divide_up(count, size), divide_up(alignment_bytes, element_bytes));
  const Index begin = length * rank < count ? length * rank : count;
  return {begin, count - begin < length ? count : begin + length};
}

template <class T>
void copy_elements(T* out, const T* in, Index count) {
  if (count > 0 && out != in) std::memcpy(out, in, std::size_t(count) * sizeof(T));
}

// Reduces the rank's slice over all buffers and writes it into all: 2 · R · n · sizeof(T) bytes of traffic over all ranks, and two
// meetings. Reduce-scatter, a meeting, and all-gather by copies was measured at twice the time.
template <class Isa, class T>
void all_reduce_share(const Group& group, Index number, int rank) {
  const int size = group.size();
  if (size == 1) return;
  const CallRecord& call = group.part(number, rank).call;
  const Slice slice = slice_of(call.count, size, rank, Index(sizeof(T)));
  T* buffers[max_thread_ranks];
  for (int q = 0; q < size; ++q) buffers[q] = static_cast<T*>(group.part(number, q).out) + slice.begin;
  reduce_elements<Isa, T>(call.reduction, slice.end - slice.begin, size, buffers, size, buffers);
}

// The same, written into the root's buffer only.
template <class Isa, class T>
void reduce_share(const Group& group, Index number, int rank) {
  const int size = group.size();
  if (size == 1) return;
  const CallRecord& call = group.part(number, rank).call;
  const Slice slice = slice_of(call.count, size, rank, Index(sizeof(T)));
  T* buffers[max_thread_ranks];
  for (int q = 0; q < size; ++q) buffers[q] = static_cast<T*>(group.part(number, q).out) + slice.begin;
  reduce_elements<Isa, T>(call.reduction, slice.end - slice.begin, size, buffers, 1, &buffers[call.peer]);
}

template <class Isa, class T>
void reduce_scatter_share(const Group& group, Index number, int rank) {
  const int size = group.size();
  const Part& own = group.part(number, rank);
  T* out = static_cast<T*>(own.out);
  if (size == 1) return copy_elements(out, static_cast<const T*>(own.in), own.call.count);
  const T* rows[max_thread_ranks];
  for (int q = 0; q < size; ++q) rows[q] = static_cast<const T*>(group.part(number, q).in) + rank * own.call.count;
  reduce_elements<Isa, T>(own.call.reduction, own.call.count, size, rows, 1, &out);
}

// Starts with the own row and goes round, so that not all read from rank 0 first.
template <class T>
void all_gather_share(const Group& group, Index number, int rank) {
  const Part& own = group.part(number, rank);
  for (int step = 0; step < group.size(); ++step) {
    const int q = (rank + step) % group.size();
    copy_elements(static_cast<T*>(own.out) + q * own.call.count, static_cast<const T*>(group.part(number, q).in), own.call.count);
  }
}

template <class T>
void all_to_all_share(const Group& group, Index number, int rank) {
  const Part& own = group.part(number, rank);
  for (int step = 0; step < group.size(); ++step) {
    const int q = (rank + step) % group.size();
    copy_elements(static_cast<T*>(own.out) + q * own.call.count, static_cast<const T*>(group.part(number, q).in) + rank * own.call.count,
                  own.call.count);
  }
}

template <class T>
void broadcast_share(const Group& group, Index number, int rank) {
  const Part& own = group.part(number, rank);
  copy_elements(static_cast<T*>(own.out), static_cast<const T*>(group.part(number, own.call.peer).out), own.call.count);
}

}  // namespace weft::comm
