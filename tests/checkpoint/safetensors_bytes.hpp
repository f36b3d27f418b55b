// SPDX-License-Identifier: Apache-2.0
// Safetensors files made by hand, right and wrong.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <weft/checkpoint/read_safetensors.hpp>

#include "data/temporary_folder.hpp"

namespace weft::testing {

// length: what the file says of its header; -1: the truth.
inline std::string safetensors_bytes(std::string_view header, std::string_view payload, std::int64_t length = -1) {
  const auto said = length < 0 ? std::uint64_t(header.size()) : std::uint64_t(length);
  return little_endian(std::vector<std::uint64_t>{said}) + std::string(header) + std::string(payload);
}
inline checkpoint::SafetensorsFile read_bytes(std::string_view bytes) {
  return checkpoint::SafetensorsFile(data::bytes_in_memory(bytes, "given.safetensors"));
}

}  // namespace weft::testing
