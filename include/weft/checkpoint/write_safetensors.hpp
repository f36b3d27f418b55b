// SPDX-License-Identifier: Apache-2.0
// Writes safetensors files. The same tensors and metadata give the same bytes.
#pragma once

#include <algorithm>

#include "weft/checkpoint/header_parser.hpp"
#include "weft/checkpoint/publish_file.hpp"

namespace weft::checkpoint {

constexpr const char* safetensors_name(ElementType type) {
  for (const ElementTypeName& known : element_type_names)
    if (known.type == type) return known.name;
  return nullptr;
}

// The length and the JSON header of tensors that lie one after the other; `tensors` are in the order of their bytes. Blanks make the
// tensors begin at a multiple of 64 bytes, so that a mapped file can be read in place.
// Errors: weft[checkpoint.name] for a name that is not UTF-8.
inline std::string safetensors_header(const std::vector<TensorView>& tensors, const Metadata& metadata) {
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  Index place = 0;
  for (const TensorView& tensor : tensors) {
    header[tensor.name] = {
        {"dtype", safetensors_name(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {place, place + tensor.bytes}}};
    place += tensor.bytes;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::type_error& error) {
    throw Error("checkpoint.name", text_of("names and metadata of a safetensors file are UTF-8 (", error.what(), ")"));
  }
  const std::uint64_t length = std::uint64_t(round_up(8 + Index(text.size()), alignment_bytes)) - 8;
  text.resize(std::size_t(length), ' ');
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + text;
}

// Writes tensors whose bytes fill(tensor, out) gives, one after the other, into a buffer of tensor.bytes bytes that is used again: what is
// needed besides the model is the largest tensor. tensor.data and tensor.bytes are not looked at. In the file, larger elements come first,
// then names in order, so that every tensor is aligned to its elements.
// Errors: weft[checkpoint.name] for a name that stands twice, is reserved or is not UTF-8; weft[checkpoint.shape] for an extent that is
// negative or a size that cannot be counted; weft[checkpoint.type]; weft[checkpoint.write]. The file of before then stays.
template <class Fill>
void write_safetensors(const std::string& path, std::vector<TensorView> tensors, const Metadata& metadata, Fill&& fill) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorView& a, const TensorView& b) { return a.name < b.name; });
  Index most = 0;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    TensorView& tensor = tensors[t];
    if (tensor.name == "__metadata__" || (t > 0 && tensors[t - 1].name == tensor.name))
      throw Error("checkpoint.name", text_of("a name stands once in a file, and __metadata__ is reserved; rename a tensor (file ", path,
                                             ", tensor ", tensor.name, ")"));
    if (!safetensors_name(tensor.type))
      throw Error("checkpoint.type", text_of("a tensor has an element type (file ", path, ", tensor ", tensor.name, ")"));
    tensor.bytes = bytes_of(tensor.type, tensor.shape);
    if (tensor.bytes < 0)
      throw Error("checkpoint.shape", text_of("extents are not negative, and their product can be counted (file ", path, ", tensor ",
                                              tensor.name, ", shape ", shape_text(tensor.shape), ")"));
    most = std::max(most, tensor.bytes);
  }
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const TensorView& a, const TensorView& b) { return weft::bytes_of(a.type) > weft::bytes_of(b.type); });
  const std::string header = safetensors_header(tensors, metadata);
  FileToPublish file(path);
  file.write(std::as_bytes(std::span(header)));
  std::vector<std::byte> buffer(static_cast<std::size_t>(most));
  for (const TensorView& tensor : tensors) {
    fill(tensor, buffer.data());
    file.write(std::span<const std::byte>(buffer).first(std::size_t(tensor.bytes)));
  }
  file.publish();
}

// The same for tensors that lie in memory as they shall in the file. Errors: also weft[checkpoint.shape] for bytes that are not those of
// shape and type.
inline void write_safetensors(const std::string& path, const std::vector<TensorView>& tensors, const Metadata& metadata = {}) {
  for (const TensorView& tensor : tensors)
    if (tensor.bytes != bytes_of(tensor.type, tensor.shape))
      throw Error("checkpoint.shape",
                  text_of("the bytes of a tensor are those of its shape and type (file ", path, ", tensor ", tensor.name, ", shape ",
                          shape_text(tensor.shape), ", expected ", bytes_of(tensor.type, tensor.shape), ", given ", tensor.bytes, ")"));
  write_safetensors(path, tensors, metadata, [](const TensorView& tensor, std::byte* out) {
    if (tensor.bytes > 0) std::memcpy(out, tensor.data, std::size_t(tensor.bytes));
  });
}

}  // namespace weft::checkpoint
