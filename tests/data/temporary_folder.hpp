// SPDX-License-Identifier: Apache-2.0
// A folder of a test's own, removed with what is in it.
#pragma once

#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <weft/base/error.hpp>

namespace weft::testing {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "weft-test-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder: " + name);
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  std::string path(std::string_view name) const { return path_ + "/" + std::string(name); }
  // Returns the file's path.
  std::string write(std::string_view name, std::string_view bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

 private:
  std::string path_;
};

// The bytes of unsigned numbers of one size, lowest byte first.
template <class Number>
std::string little_endian(const std::vector<Number>& numbers) {
  std::string bytes;
  for (Number number : numbers)
    for (std::size_t i = 0; i < sizeof(Number); ++i) bytes += char(std::uint64_t(number) >> (8 * i));
  return bytes;
}

// An IDX file of unsigned bytes.
inline std::string idx_bytes(const std::vector<std::uint32_t>& extents, std::string_view payload) {
  std::string bytes{'\0', '\0', '\x08', char(extents.size())};
  for (std::uint32_t extent : extents)
    for (int shift = 24; shift >= 0; shift -= 8) bytes += char(extent >> shift);
  return bytes.append(payload);
}

// The message of the weft::Error that `call` throws; "nothing was thrown" else.
template <class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) { return error.what(); }
  return "nothing was thrown";
}

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace weft::testing
