// SPDX-License-Identifier: Apache-2.0
// The JSON header of a safetensors file: an object of tensors, each with dtype, shape and data_offsets, and __metadata__ of texts.
// Read event by event, so that a name that stands twice is seen, which a tree of values hides.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "weft/checkpoint/tensor_view.hpp"

namespace weft::checkpoint {

using Metadata = std::map<std::string, std::string>;

struct ElementTypeName {
  const char* name;
  ElementType type;
};
// BOOL is read as u8; it comes last, so that u8 is written as U8.
inline constexpr ElementTypeName element_type_names[] = {
    {"F64", ElementType::f64}, {"F32", ElementType::f32}, {"F16", ElementType::f16}, {"BF16", ElementType::bf16}, {"I64", ElementType::i64},
    {"I32", ElementType::i32}, {"I16", ElementType::i16}, {"I8", ElementType::i8},   {"U64", ElementType::u64},   {"U32", ElementType::u32},
    {"U16", ElementType::u16}, {"U8", ElementType::u8},   {"BOOL", ElementType::u8}};

struct HeaderEntry {
  std::string name;
  ElementType type = ElementType::none;
  std::vector<Index> shape;
  std::uint64_t begin = 0, end = 0;  // behind the header
};

// What is wrong with a header; no rule: nothing.
struct HeaderFault {
  std::string_view id = "checkpoint.header";
  std::string rule, expected, found;
  std::string about;   // the name of the tensor, if it is one's
  Index position = 0;  // in the header, if it is the JSON itself that is wrong
};

// The events of nlohmann::json::sax_parse; each returns whether to go on.
class HeaderParser {
 public:
  std::vector<HeaderEntry> entries;
  Metadata metadata;

  HeaderFault parse(std::string_view header) {
    if (header.empty() || header.front() != '{') {
      refuse("the header of a safetensors file is a JSON object", "'{'", header.empty() ? "nothing" : "another character");
    } else {
      nlohmann::json::sax_parse(header.begin(), header.end(), this);
    }
    return fault_;
  }

  bool start_object(std::size_t) {
    if (place_ == Place::before) return place_ = Place::top, true;
    if (place_ != Place::top) return unexpected("an object");
    place_ = key_ == metadata_name ? Place::metadata : Place::tensor;
    if (place_ == Place::tensor)
      entries.push_back({.name = key_, .type = ElementType::none, .shape = {}}), has_type_ = has_shape_ = false, offsets_.clear();
    return true;
  }
  bool key(std::string& text) {
    key_ = text;
    if (place_ == Place::top) {
      about_ = text;
      if (!names_.insert(text).second)
        return refuse("a name stands once in a header", "each name once", text_of("\"", text, "\" again"), "checkpoint.name");
    } else if (place_ == Place::metadata) {
      if (metadata.contains(text))
        return refuse("a key stands once in the metadata", "each key once", text_of("\"", text, "\" again"), "checkpoint.name");
    } else {
      const bool again = text == "dtype" ? has_type_ : text == "shape" ? has_shape_ : text == "data_offsets" ? !offsets_.empty() : true;
      if (again) return refuse("a tensor has dtype, shape and data_offsets, each once", "one of these", text_of("\"", text, "\""));
    }
    return true;
  }
  bool string(std::string& text) {
    if (place_ == Place::metadata) return metadata[key_] = text, true;
    if (place_ != Place::tensor || key_ != "dtype") return unexpected("a text");
    has_type_ = true;
    for (const ElementTypeName& known : element_type_names)
      if (text == known.name) return entries.back().type = known.type, true;
    std::string names;
    for (const ElementTypeName& known : element_type_names) names += (names.empty() ? "" : ", "), names += known.name;
    return refuse("the element type of a tensor is not known", "one of " + names, text_of("\"", text, "\""), "checkpoint.type");
  }
  bool start_array(std::size_t) {
    if (place_ == Place::tensor && key_ == "shape") return has_shape_ = true, place_ = Place::shape, true;
    if (place_ == Place::tensor && key_ == "data_offsets") return place_ = Place::offsets, true;
    return unexpected("an array");
  }
  bool number_unsigned(std::uint64_t number) {
    if (place_ == Place::shape) {
      if (number > std::uint64_t(std::numeric_limits<Index>::max())) return unexpected(std::to_string(number));
      return entries.back().shape.push_back(Index(number)), true;
    }
    if (place_ != Place::offsets || offsets_.size() == 2) return unexpected(std::to_string(number));
    return offsets_.push_back(number), true;
  }
  bool end_array() {
    if (place_ == Place::offsets && offsets_.size() != 2) return unexpected("an array of " + std::to_string(offsets_.size()));
    if (place_ == Place::offsets) entries.back().begin = offsets_[0], entries.back().end = offsets_[1];
    place_ = Place::tensor;
    return true;
  }
  bool end_object() {
    if (place_ == Place::tensor && !(has_type_ && has_shape_ && offsets_.size() == 2))
      return refuse("a tensor has dtype, shape and data_offsets, each once", "all three",
                    text_of("no ", !has_type_    ? "dtype"
                                   : !has_shape_ ? "shape"
                                                 : "data_offsets"));
    place_ = place_ == Place::top ? Place::behind : Place::top;
    return true;
  }
  bool null() { return unexpected("null"); }
  bool boolean(bool value) { return unexpected(value ? "true" : "false"); }
  bool number_integer(std::int64_t number) { return unexpected(std::to_string(number)); }
  bool number_float(double, const std::string& text) { return unexpected(text); }
  bool binary(nlohmann::json::binary_t&) { return unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) {
    refuse("the header of a safetensors file is JSON in UTF-8", "JSON", error.what());
    fault_.about.clear(), fault_.position = position > 0 ? Index(position) - 1 : 0;
    return false;
  }

 private:
  enum class Place : char { before, top, metadata, tensor, shape, offsets, behind };
  static constexpr const char* metadata_name = "__metadata__";

  bool refuse(std::string rule, std::string expected, std::string found, std::string_view id = "checkpoint.header") {
    if (!about_.empty()) rule += " (entry " + about_ + ")";
    fault_ = {id, std::move(rule), std::move(expected), std::move(found), about_};
    return false;
  }
  bool unexpected(const std::string& found) {
    switch (place_) {
      case Place::top: return refuse("every entry of the header is an object", "an object", found);
      case Place::metadata: return refuse("metadata are texts", "a text", found);
      case Place::shape: return refuse("the extents of a shape are integers from 0 to 2^63 - 1", "such an integer", found);
      case Place::offsets: return refuse("data_offsets are two integers from 0 to 2^64 - 1", "two such integers", found);
      case Place::tensor:
        return refuse("dtype is a text, shape and data_offsets are arrays of integers", key_ == "dtype" ? "a text" : "an array", found);
      case Place::before:
      case Place::behind: break;
    }
    return refuse("the header of a safetensors file is one JSON object", "an object", found);
  }

  Place place_ = Place::before;
  std::string key_, about_;
  std::set<std::string> names_;
  bool has_type_ = false, has_shape_ = false;
  std::vector<std::uint64_t> offsets_;
  HeaderFault fault_;
};

}  // namespace weft::checkpoint
