// SPDX-License-Identifier: Apache-2.0
#include "on_top.hpp"

weft::Index on_top::cache_line() { return weft::alignment_bytes; }
