// SPDX-License-Identifier: Apache-2.0
#include "attention_cases.hpp"

using namespace attention_cases;

namespace {

// The other widths of registers; what a machine lacks the compiler puts together from narrower ones.
TEST_CASE_TEMPLATE("attention_any_instruction_set_equals_the_reference", Isa, simd::Generic, simd::Avx2) {
  for (const bool causal : {true, false}) {
    check_against_reference<float, Isa>({1, 37, 60, 2, 1, 24, causal}, 1);
    check_against_reference<double, Isa>({1, 37, 60, 2, 1, 10, causal}, 1);
    check_against_reference<float, Isa>({1, 1, 150, 2, 1, 32, causal}, 1);
  }
}

}  // namespace
