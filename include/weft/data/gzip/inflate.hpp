// SPDX-License-Identifier: Apache-2.0
// Bounded decompression of gzip data: the caller says how much comes out, and nothing larger is ever allocated.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "weft/data/mapped_file.hpp"

namespace weft::data::gzip {

// Deflate turns a byte into at most 1032 (zlib's technical details); what promises more is lying.
inline constexpr Index most_bytes_per_byte = 1032;

inline bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte(0x1f) && bytes[1] == std::byte(0x8b);
}

// Inflates one gzip file, a part at a time. Several members, one after the other, are one file (RFC 1952).
class Inflater {
 public:
  // `packed` must outlive it. Errors: weft[data.gzip].
  explicit Inflater(const FileBytes& packed) : packed_(packed) {
    if (inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK)
      throw Error("data.gzip", text_of("zlib cannot begin; it lacks memory (file ", packed.file, ")"));
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  // Fills `out`, or less of it if the file ends. Returns the bytes written.
  // Errors: weft[data.gzip] for data that is damaged, or that ends within a member.
  Index read(std::span<std::byte> out) {
    Index written = 0;
    while (written < Index(out.size())) {
      if (ended_ && !begin_member()) break;
      const Index room = std::min<Index>(Index(out.size()) - written, GiB), rest = std::min<Index>(packed_.size() - consumed_, GiB);
      // zlib's interface has no const without ZLIB_CONST; it does not write to its input.
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed_.bytes.data() + consumed_));
      stream_.avail_in = uInt(rest);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + written);
      stream_.avail_out = uInt(room);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      const Index eaten = rest - Index(stream_.avail_in), made = room - Index(stream_.avail_out);
      consumed_ += eaten, written += made;
      ended_ = result == Z_STREAM_END;
      if (ended_) continue;
      if (result != Z_OK && result != Z_BUF_ERROR) fail(stream_.msg ? stream_.msg : "zlib's error " + std::to_string(result));
      if (eaten == 0 && made == 0) fail("the end of the file");
    }
    return written;
  }

 private:
  bool begin_member() {
    if (consumed_ == packed_.size()) return false;
    if (inflateReset(&stream_) != Z_OK) fail("zlib's reset failed");
    ended_ = false;
    return true;
  }
  [[noreturn]] void fail(const std::string& found) const {
    file_fault("data.gzip", "the compressed file is truncated or damaged", packed_.file, consumed_, "gzip data", found);
  }

  const FileBytes& packed_;
  z_stream stream_{};
  Index consumed_ = 0;
  bool ended_ = false;
};

}  // namespace weft::data::gzip
