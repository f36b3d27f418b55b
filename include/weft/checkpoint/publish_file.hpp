// SPDX-License-Identifier: Apache-2.0
// Files that are there whole or not at all.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <span>
#include <string>
#include <system_error>

#include "weft/base/error.hpp"
#include "weft/base/text.hpp"

namespace weft::checkpoint {

// Writes beside the path, and takes the path's place by one rename once everything is on the disk: a reader, and a machine that stops
// half-way, sees the old file or the new one. Without publish() the old one stays, and nothing is left behind.
// Errors: weft[checkpoint.write] with the system's reason.
class FileToPublish {
 public:
  explicit FileToPublish(std::string path) : path_(std::move(path)) {
    static std::atomic<unsigned> number{0};  // ranks are threads of one process
    aside_ = text_of(path_, ".part.", ::getpid(), ".", number++);
    descriptor_ = ::open(aside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail("opened");
  }
  FileToPublish(const FileToPublish&) = delete;
  FileToPublish& operator=(const FileToPublish&) = delete;
  ~FileToPublish() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!published_) ::unlink(aside_.c_str());
  }

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("written");
      bytes = bytes.subspan(std::size_t(written));
    }
  }

  void publish() {
    if (::fsync(descriptor_) != 0) fail("brought to the disk");
    const int closed = ::close(descriptor_);
    descriptor_ = -1;
    if (closed != 0) fail("closed");
    if (::rename(aside_.c_str(), path_.c_str()) != 0) fail("renamed");
    published_ = true;
    sync_folder();
  }

 private:
  // The rename itself is on the disk only when the folder is. Some file systems cannot be asked for it: that is no error.
  void sync_folder() const {
    const std::size_t slash = path_.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path_.substr(0, slash);
    const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;
    ::fsync(descriptor);
    ::close(descriptor);
  }
  [[noreturn]] void fail(const char* what) {
    const int reason = errno;
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
    ::unlink(aside_.c_str());
    throw Error("checkpoint.write", text_of("a file cannot be ", what, "; check path, permissions and space (file ", path_, ", written as ",
                                            aside_, ": ", std::generic_category().message(reason), ")"));
  }

  std::string path_, aside_;
  int descriptor_ = -1;
  bool published_ = false;
};

}  // namespace weft::checkpoint
