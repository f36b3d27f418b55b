// SPDX-License-Identifier: Apache-2.0
#include "matrix/engines.hpp"

namespace weft::test {

template <>
Trained run_cell<double>(const Cell& cell) {
  return run_cell_of<double>(cell);
}

}  // namespace weft::test
