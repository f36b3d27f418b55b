// SPDX-License-Identifier: Apache-2.0
// IDX files compressed with gzip, as MNIST and Fashion-MNIST are handed out. Needs zlib: link weft::gzip.
#pragma once

#include "weft/data/gzip/inflate.hpp"
#include "weft/data/idx.hpp"

namespace weft::data::gzip {

struct IdxLimits {
  Index most_bytes = 1 * GiB;  // what a file may unpack to
};

// The items of a compressed IDX file, unpacked into memory; the header is read first and decides how much that is.
// Errors: those of IdxArray; weft[data.gzip] for damaged data, for a header that promises more than the file can hold, more than
// limits.most_bytes, or less than comes out.
inline IdxArray unpack_idx(const FileBytes& packed, const IdxLimits& limits = {}) {
  Inflater inflater(packed);
  std::byte start[idx_longest_header_bytes];
  Index found = inflater.read({start, 4});
  const Index rest = found == 4 ? 4 * std::min(Index(start[3]), Index(4)) : 0;
  found += inflater.read({start + 4, std::size_t(rest)});
  const IdxHeader header = parse_idx_header({start, std::size_t(found)}, packed.file);
  const Index payload = header.payload_bytes(), most = packed.size() * most_bytes_per_byte;
  if (payload > most)
    file_fault("data.gzip", "the header of the compressed file promises more than so small a file can hold; it is truncated or damaged",
               packed.file, 0, text_of("at most ", most, " bytes"), text_of(payload, " bytes"));
  if (payload > limits.most_bytes)
    file_fault("data.gzip", "the compressed file unpacks to more than is allowed; raise IdxLimits::most_bytes if it is right", packed.file,
               0, text_of("at most ", limits.most_bytes, " bytes"), text_of(payload, " bytes"));
  std::vector<std::byte> bytes(std::size_t(found + payload));
  std::copy_n(start, found, bytes.begin());
  const Index unpacked = inflater.read(std::span(bytes).subspan(std::size_t(found)));
  std::byte more;
  if (unpacked < payload)
    file_fault("data.size", "the IDX file within the compressed file is shorter than its header says", packed.file, packed.size(),
               text_of(payload, " bytes after the header"), text_of(unpacked, " bytes"));
  if (inflater.read({&more, 1}) > 0)
    file_fault("data.size", "the IDX file within the compressed file is longer than its header says", packed.file, packed.size(),
               text_of(payload, " bytes after the header"), "more");
  return IdxArray(bytes_in_memory(std::move(bytes), packed.file));
}

// An IDX file, compressed or not. Errors: those of MappedFile, unpack_idx and IdxArray.
inline IdxArray read_idx(const std::string& path, const IdxLimits& limits = {}) {
  FileBytes file = map_file(path);
  return is_gzip(file.bytes) ? unpack_idx(file, limits) : IdxArray(std::move(file));
}

}  // namespace weft::data::gzip
