// SPDX-License-Identifier: Apache-2.0
#include <weft/base/config.hpp>

weft::Index middle();
weft::Index middle() { return weft::KiB; }
