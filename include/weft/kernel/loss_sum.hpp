// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/base/config.hpp"

namespace weft::kernel {

// What a loss returns: the undivided sum, in double, and how many targets it runs over. Whoever owns the global step divides.
struct LossSum {
  double loss = 0;
  Index count = 0;
};

}  // namespace weft::kernel
