// SPDX-License-Identifier: Apache-2.0
// The instruction sets that this build may use, paired with the element types: the arguments of TEST_CASE_TEMPLATE.
#pragma once

#include <weft/simd/isa.hpp>

namespace weft::test {

template <class IsaTag, class RealType>
struct On {
  using Isa = IsaTag;
  using Real = RealType;
};

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define WEFT_TEST_ISAS_OF(Real) \
  weft::test::On<weft::simd::Generic, Real>, weft::test::On<weft::simd::Avx2, Real>, weft::test::On<weft::simd::Avx512, Real>
#elif defined(__AVX2__) && defined(__FMA__)
#define WEFT_TEST_ISAS_OF(Real) weft::test::On<weft::simd::Generic, Real>, weft::test::On<weft::simd::Avx2, Real>
#else
#define WEFT_TEST_ISAS_OF(Real) weft::test::On<weft::simd::Generic, Real>
#endif
#define WEFT_TEST_ISAS WEFT_TEST_ISAS_OF(float), WEFT_TEST_ISAS_OF(double)

}  // namespace weft::test
