// SPDX-License-Identifier: Apache-2.0
// Which rows of a parameter a tensor of a file holds, and how its elements get there and back.
#pragma once

#include <algorithm>
#include <map>

#include "weft/checkpoint/layout.hpp"
#include "weft/checkpoint/tensor_view.hpp"

namespace weft::checkpoint {

// A parameter of a model, or a buffer that is kept with it: what files hold, whatever the strategy. Real may be const for saving.
template <class Real>
struct LogicalTensor {
  std::string path;
  std::vector<Index> shape;
  Real* data = nullptr;

  Index elems() const {
    Index product = 1;
    for (Index extent : shape) product *= extent;
    return product;
  }
};

// A tensor of the file, as the layout wants it: rows [first_row, first_row + rows) of parameter number `tensor`.
struct FilePart {
  std::string name;
  std::vector<Index> shape;  // in the file
  std::size_t tensor = 0;
  Index first_row = 0, rows = 0, columns = 0;  // of the parameter; one row for a scalar
  bool transposed = false;

  Index elems() const { return rows * columns; }
};

// The parts of all parameters under a layout, or what is wrong with the layout for them, one line a parameter.
struct FileParts {
  std::vector<FilePart> parts;
  std::vector<std::string> faults;
};

template <class Real>
FileParts parts_of(const std::vector<LogicalTensor<Real>>& tensors, const Layout& layout) {
  FileParts out;
  std::map<std::string_view, std::size_t> by_path;
  for (std::size_t t = 0; t < tensors.size(); ++t)
    if (!by_path.emplace(tensors[t].path, t).second) out.faults.push_back(text_of(tensors[t].path, " stands twice in the model"));

  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const LogicalTensor<Real>& tensor = tensors[t];
    const auto fault = [&](const std::string& what) {
      out.faults.push_back(text_of(tensor.path, " ", shape_text(tensor.shape), " ", what));
    };
    std::string number;
    const auto rule =
        std::find_if(layout.rules.begin(), layout.rules.end(), [&](const LayoutRule& r) { return matches(r.path, tensor.path, number); });
    if (rule == layout.rules.end() && !layout.by_path) {
      fault("has no name in this layout");
      continue;
    }
    const LayoutRule own{tensor.path, tensor.path};
    const LayoutRule& used = rule == layout.rules.end() ? own : *rule;
    const std::vector<std::string> names =
        rule == layout.rules.end() ? std::vector{tensor.path} : alternatives(with_number(used.name, number));
    const Index count = Index(names.size()), rows = tensor.shape.empty() ? 1 : tensor.shape[0],
                columns = rows > 0 ? tensor.elems() / rows : 0;
    if (used.transposed && tensor.shape.size() != 2) {
      fault("is transposed in this layout, and so needs two extents");
      continue;
    }
    Index first_rows = rows / count;
    bool whole = rows % count == 0;
    if (!used.first_rows_from.empty()) {
      const auto other = by_path.find(with_number(used.first_rows_from, number));
      if (other == by_path.end()) {
        fault(text_of("is cut by ", with_number(used.first_rows_from, number), ", which the model has not"));
        continue;
      }
      first_rows = tensors[other->second].shape.empty() ? 0 : tensors[other->second].shape.back();
      whole = count > 1 && first_rows <= rows && (rows - first_rows) % (count - 1) == 0;
    }
    if (!whole) {
      fault(text_of("cannot be cut into ", count, " tensors, the first of ", first_rows, " rows"));
      continue;
    }
    Index first = 0;
    for (Index n = 0; n < count; ++n) {
      FilePart part{names[std::size_t(n)], tensor.shape, t, first, n == 0 ? first_rows : (rows - first_rows) / (count - 1), columns,
                    used.transposed};
      if (!part.shape.empty()) part.shape[0] = part.rows;
      if (part.transposed) std::swap(part.shape[0], part.shape[1]);
      first += part.rows;
      out.parts.push_back(std::move(part));
    }
  }
  return out;
}

// The stored tensor's elements into the rows of the parameter. The caller has compared the shapes.
// The place in the file's tensor of the first element that does not fit, or -1.
template <class Real>
Index read_part(const FilePart& part, const TensorView& stored, Real* parameter) {
  Real* rows = parameter + part.first_row * part.columns;
  return with_element_type(stored.type, [&]<class Stored>(Stored) -> Index {
    if (!part.transposed) return convert_elements<Real, Stored>(part.elems(), stored.data, rows);
    Index first_bad = -1;
    for (Index c = 0; c < part.columns; ++c)  // the file: (columns, rows)
      for (Index r = 0; r < part.rows; ++r) {
        const Index at = c * part.rows + r;
        Stored element;
        std::memcpy(&element, stored.data + at * Index(sizeof(Stored)), sizeof element);
        if (!convert_element(element, rows[r * part.columns + c]) && first_bad < 0) first_bad = at;
      }
    return first_bad;
  });
}

// The reverse: the rows of the parameter as the file's elements of this type.
template <class Real>
Index write_part(const FilePart& part, const Real* parameter, ElementType type, std::byte* out) {
  const Real* rows = parameter + part.first_row * part.columns;
  return with_element_type(type, [&]<class Stored>(Stored) -> Index {
    Index first_bad = -1;
    for (Index at = 0; at < part.elems(); ++at) {
      const Index from = part.transposed ? at % part.rows * part.columns + at / part.rows : at;
      Stored element;
      if (!convert_element(rows[from], element) && first_bad < 0) first_bad = at;
      std::memcpy(out + at * Index(sizeof(Stored)), &element, sizeof element);
    }
    return first_bad;
  });
}

}  // namespace weft::checkpoint
