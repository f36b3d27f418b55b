// SPDX-License-Identifier: Apache-2.0
// The one form of an error about a file: what rule it breaks, which file, where, what was expected and what was found.
#pragma once

#include <string>
#include <string_view>

#include "weft/base/config.hpp"
#include "weft/base/error.hpp"
#include "weft/base/text.hpp"

namespace weft::data {

// Throws weft[id]: rule (file F, offset O, expected E, found X). offset: of the byte at which it shows. expected, found: with their unit.
[[noreturn]] inline void file_fault(std::string_view id, std::string_view rule, std::string_view file, Index offset,
                                    const std::string& expected, const std::string& found) {
  throw Error(id, text_of(rule, " (file ", file, ", offset ", offset, ", expected ", expected, ", found ", found, ")"));
}

}  // namespace weft::data
