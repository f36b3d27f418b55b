// SPDX-License-Identifier: Apache-2.0
// How a model's parameters are named and laid out in a file: a list of rules, each for one family of parameters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/base/text.hpp"

namespace weft::checkpoint {

// One parameter of the model, or of all its blocks: {i} stands for a number, the same in path and name.
struct LayoutRule {
  std::string path;         // in the model: blocks.{i}.mlp.gate_up.weight
  std::string name;         // in the file; {gate,up} stands for several tensors, one after the other along the parameter's rows
  bool transposed = false;  // the file holds (in, out) where the model has (out, in)
  // Of several tensors, the first has as many rows as this parameter has columns, and the others share the rest alike (queries, and
  // fewer keys and values). Empty: all have the same number.
  std::string first_rows_from = {};
};

// A tensor that a file may hold and the model does not need.
struct SpareTensor {
  std::string name;          // with {i}
  std::string same_as = {};  // not empty: the tensor is only spare if it holds the same as this one (a tied head)
};

struct Layout {
  std::string title;  // in messages
  std::vector<LayoutRule> rules = {};
  std::vector<SpareTensor> spare = {};
  std::vector<std::string> prefixes = {};  // that names in a file may have; never written
  bool by_path = false;                    // parameters without a rule are named by their paths
};

// Whether text is the pattern with {i} as a number, which is then `number` ("" for a pattern without {i}).
inline bool matches(std::string_view pattern, std::string_view text, std::string& number) {
  const std::size_t at = pattern.find("{i}");
  number.clear();
  if (at == std::string_view::npos) return pattern == text;
  const std::string_view before = pattern.substr(0, at), behind = pattern.substr(at + 3);
  if (text.size() <= before.size() + behind.size() || !text.starts_with(before) || !text.ends_with(behind)) return false;
  number = text.substr(at, text.size() - before.size() - behind.size());
  return number.find_first_not_of("0123456789") == std::string::npos;
}

// The pattern with a number for {i}.
inline std::string with_number(std::string_view pattern, std::string_view number) {
  const std::size_t at = pattern.find("{i}");
  if (at == std::string_view::npos) return std::string(pattern);
  return text_of(pattern.substr(0, at), number, pattern.substr(at + 3));
}

// The names that {a,b,c} in a name stands for; the name itself if there is none.
inline std::vector<std::string> alternatives(std::string_view name) {
  const std::size_t open = name.find('{'), close = name.find('}');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {std::string(name)};
  std::vector<std::string> names;
  for (std::size_t at = open + 1; at <= close;) {
    std::size_t end = name.find_first_of(",}", at);
    names.push_back(text_of(name.substr(0, open), name.substr(at, end - at), name.substr(close + 1)));
    at = end + 1;
  }
  return names;
}

}  // namespace weft::checkpoint
