// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <weft/base/config.hpp>

namespace on_top {
weft::Index cache_line();
}
