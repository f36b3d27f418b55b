// SPDX-License-Identifier: Apache-2.0
#include "allocations/count.hpp"

#include <cstdlib>
#include <new>

std::atomic<long> weft::test::num_allocations{0};

using weft::test::num_allocations;

// Not inlined: g++ 12 then takes free for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++num_allocations;
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  ++num_allocations;
  const std::size_t a = std::size_t(alignment);
  if (void* memory = std::aligned_alloc(a, (bytes + a - 1) / a * a)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
