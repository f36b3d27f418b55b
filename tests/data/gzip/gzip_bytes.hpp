// SPDX-License-Identifier: Apache-2.0
// Compressed data for tests.
#pragma once

#include <zlib.h>

#include <stdexcept>
#include <string>

namespace weft::testing {

inline std::string gzip_bytes(std::string bytes, int level = 6) {
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::runtime_error("deflateInit2");
  std::string packed(deflateBound(&stream, uLong(bytes.size())) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data()), stream.avail_in = uInt(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data()), stream.avail_out = uInt(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("deflate");
  return packed;
}

}  // namespace weft::testing
