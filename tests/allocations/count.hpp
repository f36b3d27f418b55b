// SPDX-License-Identifier: Apache-2.0
// The allocations of the whole process so far: count.cpp replaces the operators, so these tests are a program of their own.
#pragma once

#include <atomic>

namespace weft::test {

extern std::atomic<long> num_allocations;

}  // namespace weft::test
