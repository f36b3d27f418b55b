// SPDX-License-Identifier: Apache-2.0
// What weft throws. Every message reads `weft[area.rule]: the rule; what to change (numbers)`, so that it can be searched for by its id.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace weft {

class Error : public std::runtime_error {
 public:
  // id: `area.rule`, stable over versions. message: the rule, the numbers that break it, and what to change.
  Error(std::string_view id, std::string_view message) : std::runtime_error(full(id, message)), id_(id) {}

  const std::string& id() const noexcept { return id_; }
  // what() without the id: to be said again under the same id, with more about it.
  std::string message() const { return std::string(what()).substr(id_.size() + sizeof("weft[]: ") - 1); }

 private:
  static std::string full(std::string_view id, std::string_view message) {  // appended: g++ 12 warns falsely about "literal" + std::string
    std::string text("weft[");
    return text.append(id).append("]: ").append(message);
  }

  std::string id_;
};

}  // namespace weft
