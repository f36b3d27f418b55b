// SPDX-License-Identifier: Apache-2.0
// Files as read-only bytes in memory. A mapping loads only the pages that are read: a rank that reads its slice of a shared file moves no
// more.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "weft/data/file_fault.hpp"

namespace weft::data {

// A file mapped read-only. An empty file has no bytes and is no error here: formats say what they need.
// The file must not shrink while it is mapped: the system answers a read beyond its end with SIGBUS, which no library can report well.
// Errors: weft[data.open] for a file that is missing, not readable or not a regular file; weft[data.map].
class MappedFile {
 public:
  explicit MappedFile(std::string path) : path_(std::move(path)) {
    const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) fail("data.open", "a data file cannot be opened; check its path and permissions", errno);
    struct stat status {};
    const bool known = ::fstat(descriptor, &status) == 0;
    const int reason = errno;
    if (known && S_ISREG(status.st_mode) && status.st_size > 0)
      data_ = ::mmap(nullptr, std::size_t(status.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0);
    const int map_reason = errno;
    ::close(descriptor);  // the mapping keeps the file
    if (!known) fail("data.open", "the size of a data file cannot be read; check its file system", reason);
    if (!S_ISREG(status.st_mode))
      throw Error("data.open", text_of("a data file must be a regular file, not a directory, pipe or device (file ", path_, ")"));
    if (data_ == MAP_FAILED) {
      data_ = nullptr;
      fail("data.map", text_of("a data file of ", Index(status.st_size), " bytes cannot be mapped; check the limits on address space"),
           map_reason);
    }
    bytes_ = Index(status.st_size);
  }
  MappedFile(MappedFile&& other) noexcept
      : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(path_, other.path_), std::swap(data_, other.data_), std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile() {
    if (data_) ::munmap(data_, std::size_t(bytes_));
  }

  const std::string& path() const { return path_; }
  Index size() const { return bytes_; }
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), std::size_t(bytes_)}; }

 private:
  [[noreturn]] void fail(std::string_view id, std::string_view rule, int reason) const {
    throw Error(id, text_of(rule, " (file ", path_, ": ", std::generic_category().message(reason), ")"));
  }

  std::string path_;
  void* data_ = nullptr;
  Index bytes_ = 0;
};

// The bytes of a file wherever they lie, with what keeps them alive and the name that errors use. Copies share the bytes.
struct FileBytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
  std::string file;

  Index size() const { return Index(bytes.size()); }
};

// Errors: those of MappedFile.
inline FileBytes map_file(const std::string& path) {
  const auto mapped = std::make_shared<const MappedFile>(path);
  return {mapped, mapped->bytes(), path};
}

// Bytes that a program made or unpacked itself, under the name that errors shall use.
inline FileBytes bytes_in_memory(std::vector<std::byte> bytes, std::string name) {
  const auto held = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return {held, {held->data(), held->size()}, std::move(name)};
}
inline FileBytes bytes_in_memory(std::string_view text, std::string name) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return bytes_in_memory(std::vector<std::byte>(first, first + text.size()), std::move(name));
}

}  // namespace weft::data
