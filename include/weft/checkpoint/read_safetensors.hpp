// SPDX-License-Identifier: Apache-2.0
// Reads safetensors files: 8 bytes with the header's length, a JSON header that names types, shapes and places, then the tensors' bytes.
// Source: the format's description in the README of the safetensors project.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "weft/checkpoint/header_parser.hpp"
#include "weft/data/mapped_file.hpp"

namespace weft::checkpoint {

// A file whose header was checked in full; tensors are views into the mapping, which lives as long as a copy of this does.
class SafetensorsFile {
 public:
  // Maps the file. Errors, with file, offset, expectation and finding: weft[data.open]; weft[checkpoint.size] for a file or header that
  // is cut off; weft[checkpoint.header] for a header that is not what the format asks for; weft[checkpoint.name] for a name that stands
  // twice; weft[checkpoint.type]; weft[checkpoint.shape] for bytes that are not those of shape and type; weft[checkpoint.offsets] for
  // tensors that overlap, leave a hole or lie outside of the file.
  explicit SafetensorsFile(const std::string& path) : SafetensorsFile(data::map_file(path)) {}
  explicit SafetensorsFile(data::FileBytes bytes) : file_(std::move(bytes)) {
    if (file_.size() < length_bytes)
      fault("checkpoint.size", "a safetensors file begins with the length of its header; it is empty, truncated or of another format", 0,
            text_of("at least ", length_bytes, " bytes"), text_of(file_.size(), " bytes"));
    std::uint64_t length;
    std::memcpy(&length, file_.bytes.data(), sizeof length);
    const Index rest = file_.size() - length_bytes;
    if (length > std::uint64_t(rest))
      fault("checkpoint.size", "the header is longer than the file; it is truncated or of another format", 0,
            text_of("a header of at most ", rest, " bytes"), text_of(length, " bytes"));
    header_ = {reinterpret_cast<const char*>(file_.bytes.data()) + length_bytes, std::size_t(length)};
    read_header();
    place_tensors();
  }

  const std::string& path() const { return file_.file; }
  const Metadata& metadata() const { return metadata_; }
  const std::vector<TensorView>& tensors() const { return tensors_; }  // by name

  // Null if there is none of this name.
  const TensorView* find(std::string_view name) const {
    const auto at =
        std::lower_bound(tensors_.begin(), tensors_.end(), name, [](const TensorView& t, std::string_view n) { return t.name < n; });
    return at != tensors_.end() && at->name == name ? &*at : nullptr;
  }
  // Errors: weft[checkpoint.missing].
  const TensorView& at(std::string_view name) const {
    if (const TensorView* tensor = find(name)) return *tensor;
    throw Error("checkpoint.missing",
                text_of("the file has no tensor of this name (file ", path(), ", name ", name, ", tensors ", tensors_.size(), ")"));
  }

 private:
  static constexpr Index length_bytes = 8;

  [[noreturn]] void fault(std::string_view id, std::string_view rule, Index offset, const std::string& expected,
                          const std::string& found) const {
    data::file_fault(id, rule, file_.file, offset, expected, found);
  }
  // Where a name stands in the header, for messages; the header's start if it is spelled with escapes there.
  Index offset_of(const std::string& name) const {
    const std::size_t at = header_.find('"' + name + '"');
    return length_bytes + (at == std::string_view::npos ? 0 : Index(at));
  }

  void read_header() {
    HeaderParser parser;
    const HeaderFault wrong = parser.parse(header_);
    if (!wrong.rule.empty())
      fault(wrong.id, wrong.rule, wrong.about.empty() ? length_bytes + wrong.position : offset_of(wrong.about), wrong.expected,
            wrong.found);
    metadata_ = std::move(parser.metadata);
    entries_ = std::move(parser.entries);
  }

  void place_tensors() {
    const Index start = length_bytes + Index(header_.size()), size = file_.size() - start;
    std::sort(entries_.begin(), entries_.end(), [](const HeaderEntry& a, const HeaderEntry& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end != b.end ? a.end < b.end : a.name < b.name;
    });
    std::uint64_t place = 0;
    for (const HeaderEntry& entry : entries_) {
      const auto wrong = [&](std::string_view rule, const std::string& expected, const std::string& found) {
        fault("checkpoint.offsets", text_of(rule, " (tensor ", entry.name, ")"), offset_of(entry.name), expected, found);
      };
      const std::string range = text_of(entry.begin, " to ", entry.end);
      if (entry.end < entry.begin) wrong("the bytes of a tensor end before they begin", "an end of at least the beginning", range);
      if (entry.end > std::uint64_t(size))
        wrong("the bytes of a tensor lie outside of the file; it is truncated or damaged", text_of("an end of at most ", size), range);
      if (entry.begin < place) wrong("the bytes of two tensors overlap", text_of("a beginning at ", place), range);
      if (entry.begin > place) wrong("the bytes of tensors leave a hole", text_of("a beginning at ", place), range);
      const Index bytes = bytes_of(entry.type, entry.shape);
      if (bytes < 0 || std::uint64_t(bytes) != entry.end - entry.begin)
        fault("checkpoint.shape", text_of("the bytes of a tensor are those of its shape and type (tensor ", entry.name, ")"),
              offset_of(entry.name),
              text_of(bytes < 0 ? "a size that can be counted" : text_of(bytes, " bytes"), " for ", shape_text(entry.shape), " ",
                      name_of(entry.type)),
              text_of(entry.end - entry.begin, " bytes"));
      tensors_.push_back({entry.name, entry.type, entry.shape, file_.bytes.data() + start + entry.begin, bytes});
      place = entry.end;
    }
    if (place != std::uint64_t(size))
      fault("checkpoint.offsets", "bytes behind the last tensor belong to none; the file is damaged", start + Index(place),
            "the end of the file", text_of(std::uint64_t(size) - place, " bytes"));
    entries_.clear();
    std::sort(tensors_.begin(), tensors_.end(), [](const TensorView& a, const TensorView& b) { return a.name < b.name; });
  }

  data::FileBytes file_;
  std::string_view header_;
  std::vector<HeaderEntry> entries_;
  Metadata metadata_;
  std::vector<TensorView> tensors_;
};

}  // namespace weft::checkpoint
