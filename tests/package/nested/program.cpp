// SPDX-License-Identifier: Apache-2.0
#include <weft/base/config.hpp>

weft::Index middle();

int main() { return middle() == weft::KiB ? 0 : 1; }
