// SPDX-License-Identifier: Apache-2.0
// A model's parameters to and from a safetensors file under a layout.
#pragma once

#include <set>

#include "weft/checkpoint/file_part.hpp"
#include "weft/checkpoint/safetensors.hpp"

namespace weft::checkpoint {

struct SaveOptions {
  ElementType type = ElementType::none;  // of the file's elements, a floating-point one; none: the model's
  std::string prefix = {};               // before every name
};
struct LoadOptions {
  std::string prefix = {};  // only tensors whose names begin with it are looked at, without it
};

// Up to ten lines of one kind, for a message.
inline void append_list(std::string& text, std::string_view title, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  append_text(text, text.empty() ? "" : "; "), append_text(text, title), append_text(text, ": ");
  for (std::size_t i = 0; i < lines.size() && i < 10; ++i) append_text(text, i ? ", " : ""), append_text(text, lines[i]);
  if (lines.size() > 10) append_text(text, text_of(" and ", lines.size() - 10, " more"));
}

// Writes all parameters, in the layout's names and shapes. Not collective: called by one rank that holds them all.
// Errors: weft[checkpoint.layout] for parameters that the layout does not know or cannot cut; weft[checkpoint.range] for a number that the
// file's type cannot hold; those of write_safetensors. The file of before then stays.
template <class Real>
void save_parameters(const std::string& path, const std::vector<LogicalTensor<Real>>& tensors, const Layout& layout,
                     const Metadata& metadata = {}, const SaveOptions& options = {}) {
  const ElementType type = options.type == ElementType::none ? element_type_of<std::remove_const_t<Real>> : options.type;
  if (!is_floating(type))
    throw Error("checkpoint.type",
                text_of("parameters are saved in a floating-point type; name another (file ", path, ", type ", name_of(type), ")"));
  const FileParts planned = parts_of(tensors, layout);
  if (!planned.faults.empty()) {
    std::string text;
    append_list(text, "parameters", planned.faults);
    throw Error("checkpoint.layout",
                text_of("the layout does not fit the model; use another, or add rules (layout ", layout.title, "; ", text, ")"));
  }
  std::map<std::string, const FilePart*> parts;
  std::vector<TensorView> views;
  for (const FilePart& part : planned.parts) {
    views.push_back({options.prefix + part.name, type, part.shape});
    parts[views.back().name] = &part;
  }
  write_safetensors(path, std::move(views), metadata, [&](const TensorView& view, std::byte* out) {
    const FilePart& part = *parts.at(view.name);
    const LogicalTensor<Real>& tensor = tensors[part.tensor];
    const Index bad = write_part(part, static_cast<const std::remove_const_t<Real>*>(tensor.data), type, out);
    if (bad >= 0)
      throw Error("checkpoint.range", text_of("a parameter does not fit the file's type; save a wider one (file ", path, ", parameter ",
                                              tensor.path, ", tensor ", view.name, ", element ", bad, ", type ", name_of(type), ")"));
  });
}

// Names in a file without the prefixes that the options and the layout take off.
struct StoredTensors {
  std::map<std::string, const TensorView*> by_name;
  std::vector<std::string> twice;
};
inline StoredTensors stored_tensors(const SafetensorsFile& file, const Layout& layout, const std::string& prefix) {
  StoredTensors out;
  for (const TensorView& tensor : file.tensors()) {
    if (!tensor.name.starts_with(prefix)) continue;
    std::string name = tensor.name.substr(prefix.size());
    for (const std::string& known : layout.prefixes)
      if (name.starts_with(known)) {
        name.erase(0, known.size());
        break;
      }
    if (!out.by_name.emplace(name, &tensor).second) out.twice.push_back(text_of(tensor.name, " (as ", name, " once more)"));
  }
  return out;
}

// Whether a tensor that the model has no use for is one that the layout passes over; else why not.
inline bool is_spare(const StoredTensors& stored, const std::string& name, const TensorView& tensor, const Layout& layout,
                     std::string& reason) {
  std::string number;
  for (const SpareTensor& spare : layout.spare) {
    if (!matches(spare.name, name, number)) continue;
    if (spare.same_as.empty()) return true;
    const auto other = stored.by_name.find(with_number(spare.same_as, number));
    if (other != stored.by_name.end() && other->second->type == tensor.type && other->second->shape == tensor.shape &&
        (tensor.bytes == 0 || std::memcmp(other->second->data, tensor.data, std::size_t(tensor.bytes)) == 0))
      return true;
    reason = text_of(" (differs from ", with_number(spare.same_as, number), ", to which the model ties it)");
  }
  return false;
}

// Reads all parameters; floating-point types are converted, rounded to nearest. Returns the file's metadata.
// Not collective: every rank that holds parameters calls it; a mapped file is read from the disk once a machine.
// Errors, all before anything is modified: those of SafetensorsFile; weft[checkpoint.layout] as for saving; weft[checkpoint.mismatch] with
// all tensors of another shape or type, missing and unexpected ones, ten of each; weft[checkpoint.range] for a number beyond Real's range.
template <class Real>
Metadata load_parameters(const std::string& path, const std::vector<LogicalTensor<Real>>& tensors, const Layout& layout,
                         const LoadOptions& options = {}) {
  const SafetensorsFile file(path);
  const FileParts planned = parts_of(tensors, layout);
  StoredTensors stored = stored_tensors(file, layout, options.prefix);
  std::vector<std::string> wrong, missing, unexpected = stored.twice;
  std::vector<const TensorView*> sources;
  std::set<std::string_view> used;
  for (const FilePart& part : planned.parts) {
    const auto at = stored.by_name.find(part.name);
    sources.push_back(at == stored.by_name.end() ? nullptr : at->second);
    if (!sources.back()) {
      missing.push_back(text_of(options.prefix, part.name, " ", shape_text(part.shape), " for ", tensors[part.tensor].path));
      continue;
    }
    used.insert(at->first);
    const TensorView& tensor = *sources.back();
    if (tensor.shape != part.shape || !is_floating(tensor.type))
      wrong.push_back(text_of(tensor.name, " for ", tensors[part.tensor].path, ": expected ", shape_text(part.shape),
                              " floating-point, found ", shape_text(tensor.shape), " ", name_of(tensor.type)));
  }
  for (const auto& [name, tensor] : stored.by_name) {
    std::string reason;
    if (!used.contains(name) && !is_spare(stored, name, *tensor, layout, reason)) unexpected.push_back(tensor->name + reason);
  }
  std::string text;
  append_list(text, "without a place in the layout", planned.faults);
  append_list(text, "wrong shape or type", wrong);
  append_list(text, "missing", missing);
  append_list(text, "unexpected", unexpected);
  if (!text.empty())
    throw Error(
        planned.faults.empty() ? "checkpoint.mismatch" : "checkpoint.layout",
        text_of("the tensors of a file are those of the model; use the model, layout or prefix that the file was written with (file ", path,
                ", layout ", layout.title, ", prefix \"", options.prefix, "\"; ", text, ")"));

  // A number that does not fit is found before the first parameter is touched.
  if constexpr (!std::is_same_v<Real, double>) {
    for (const TensorView* tensor : sources) {
      if (tensor->type != ElementType::f64) continue;
      Real ignored;
      for (Index e = 0; e < tensor->elems(); ++e)
        if (convert_elements<Real, double>(1, tensor->data + e * Index(sizeof(double)), &ignored) >= 0)
          throw Error("checkpoint.range",
                      text_of("a number in the file does not fit the model's type; use a wider one (file ", path, ", tensor ", tensor->name,
                              ", element ", e, ", stored as float64, model ", name_of(element_type_of<Real>), ")"));
    }
  }
  for (std::size_t p = 0; p < planned.parts.size(); ++p) read_part(planned.parts[p], *sources[p], tensors[planned.parts[p].tensor].data);
  return file.metadata();
}

}  // namespace weft::checkpoint
