// SPDX-License-Identifier: Apache-2.0
// Which vector registers a kernel is compiled for. A tag in the kernel's type, never a macro in its body: two files that were compiled
// for different machines instantiate different functions, and the linker cannot mix them.
#pragma once

#include "weft/base/config.hpp"

namespace weft::simd {

struct Generic {
  static constexpr Index register_bytes = 16, num_registers = 16;
  static constexpr const char* name = "generic";
};
struct Avx2 {
  static constexpr Index register_bytes = 32, num_registers = 16;
  static constexpr const char* name = "avx2";
};
struct Avx512 {
  static constexpr Index register_bytes = 64, num_registers = 32;
  static constexpr const char* name = "avx512";
};

// What this file is compiled for (-march=native or the like). Only the default is chosen by a macro.
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
using Native = Avx512;
#elif defined(__AVX2__) && defined(__FMA__)
using Native = Avx2;
#else
using Native = Generic;
#endif

}  // namespace weft::simd
