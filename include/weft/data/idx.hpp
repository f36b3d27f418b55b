// SPDX-License-Identifier: Apache-2.0
// IDX files, the format of MNIST and Fashion-MNIST: two zero bytes, element type, number of extents, big-endian extents, elements.
// Source: Yann LeCun, "The MNIST database of handwritten digits", section "File formats".
#pragma once

#include <limits>

#include "weft/data/mapped_file.hpp"

namespace weft::data {

struct IdxHeader {
  int num_extents = 0;
  Index extents[4] = {1, 1, 1, 1};  // the first one counts items

  constexpr Index header_bytes() const { return 4 + 4 * num_extents; }
  constexpr Index num_items() const { return extents[0]; }
  constexpr Index item_bytes() const { return extents[1] * extents[2] * extents[3]; }
  constexpr Index payload_bytes() const { return num_items() * item_bytes(); }
};

inline constexpr Index idx_longest_header_bytes = 20;

// The header at the start of `bytes`; what follows is not looked at. Extents are positive, and their product fits an Index.
// Errors: weft[data.size] for fewer bytes than the header has, weft[data.header] for anything in it that is not right.
inline IdxHeader parse_idx_header(std::span<const std::byte> bytes, std::string_view file) {
  const Index size = Index(bytes.size());
  const auto byte = [&](Index i) { return int(bytes[std::size_t(i)]); };
  if (size == 0) file_fault("data.empty", "the file is empty", file, 0, "the 4 bytes that begin an IDX file", "0 bytes");
  if (size < 4)
    file_fault("data.size", "the file is shorter than the start of an IDX header; it is truncated", file, size, "4 bytes",
               text_of(size, " bytes"));
  if (byte(0) == 0x1f && byte(1) == 0x8b)
    file_fault("data.header", "the file is compressed; unpack it, or read it with weft::data::gzip (weft/data/gzip/read_idx.hpp)", file, 0,
               "0 0", "31 139");
  if (byte(0) != 0 || byte(1) != 0)
    file_fault("data.header", "the file is not an IDX file: it begins with another magic number", file, 0, "0 0",
               text_of(byte(0), " ", byte(1)));
  if (byte(2) != 8)
    file_fault("data.header", "only IDX files of unsigned bytes are read", file, 2, "element type 8", text_of("element type ", byte(2)));
  if (byte(3) < 1 || byte(3) > 4)
    file_fault("data.header", "only IDX files with 1 to 4 extents are read", file, 3, "1 to 4 extents", text_of(byte(3), " extents"));
  IdxHeader header;
  header.num_extents = byte(3);
  if (size < header.header_bytes())
    file_fault("data.size", "the file ends within its header; it is truncated", file, size, text_of(header.header_bytes(), " bytes"),
               text_of(size, " bytes"));
  Index product = 1;
  for (int i = 0; i < header.num_extents; ++i) {
    const Index at = 4 + 4 * i;
    const Index extent = Index(byte(at)) << 24 | Index(byte(at + 1)) << 16 | Index(byte(at + 2)) << 8 | Index(byte(at + 3));
    if (extent == 0) file_fault("data.header", "an extent of an IDX file is positive", file, at, "at least 1", "0");
    if (extent > std::numeric_limits<Index>::max() / product)
      file_fault("data.header", "the extents of the IDX file are beyond what any memory holds; the header is damaged", file, at,
                 text_of("at most ", std::numeric_limits<Index>::max() / product), text_of(extent));
    header.extents[i] = extent, product *= extent;
  }
  return header;
}

// The items of an IDX file, as they lie in it. Cheap to copy: copies share the file.
class IdxArray {
 public:
  // Errors: those of parse_idx_header; weft[data.size] for a file that is not as long as its header says.
  explicit IdxArray(FileBytes file) : file_(std::move(file)), header_(parse_idx_header(file_.bytes, file_.file)) {
    const Index found = file_.size() - header_.header_bytes();
    if (found != header_.payload_bytes())
      file_fault("data.size",
                 found < header_.payload_bytes() ? "the IDX file is shorter than its header says; it is truncated"
                                                 : "the IDX file is longer than its header says; it is damaged, or two files in one",
                 file_.file, header_.header_bytes(), text_of(header_.payload_bytes(), " bytes after the header"), text_of(found, " bytes"));
  }

  const IdxHeader& header() const { return header_; }
  const std::string& file() const { return file_.file; }
  Index num_items() const { return header_.num_items(); }
  Index item_bytes() const { return header_.item_bytes(); }

  Index offset_of(Index item) const { return header_.header_bytes() + item * item_bytes(); }
  // Errors: weft[data.range].
  std::span<const std::uint8_t> item(Index item) const {
    if (item < 0 || item >= num_items())
      throw Error("data.range", text_of("an item outside the file is asked for (file ", file_.file, ", item ", item, ", the file has ",
                                        num_items(), ")"));
    return {reinterpret_cast<const std::uint8_t*>(file_.bytes.data()) + offset_of(item), std::size_t(item_bytes())};
  }

 private:
  FileBytes file_;
  IdxHeader header_;
};

// An IDX file, mapped. Errors: those of MappedFile and IdxArray.
inline IdxArray read_idx(const std::string& path) { return IdxArray(map_file(path)); }

}  // namespace weft::data
