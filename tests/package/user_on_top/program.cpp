// SPDX-License-Identifier: Apache-2.0
#include <on_top.hpp>

int main() { return on_top::cache_line() == weft::alignment_bytes ? 0 : 1; }
