// SPDX-License-Identifier: Apache-2.0
// Version, attributes and the one integer that sizes and offsets are counted in.
#pragma once

#include <cstddef>
#include <cstdint>

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0
#define WEFT_VERSION_STRING "0.1.0"

#if defined(__CUDACC__)
#define WEFT_HOST_DEVICE __host__ __device__
#else
#define WEFT_HOST_DEVICE
#endif

// Written after a lambda's parameters too. For the few functions that hold their state in registers only when inlined.
#define WEFT_ALWAYS_INLINE __attribute__((always_inline))

namespace weft {

// Counts, extents and offsets: signed, so that differences are meaningful; 64 bits, so that a model's elements can be counted.
using Index = std::ptrdiff_t;

inline constexpr Index KiB = 1024, MiB = 1024 * KiB, GiB = 1024 * MiB;

// Every tensor in an arena starts on such a boundary: one cache line, and the widest vector register in use.
inline constexpr Index alignment_bytes = 64;

constexpr Index round_up(Index value, Index multiple) { return (value + multiple - 1) / multiple * multiple; }
constexpr Index divide_up(Index value, Index divisor) { return (value + divisor - 1) / divisor; }

}  // namespace weft
