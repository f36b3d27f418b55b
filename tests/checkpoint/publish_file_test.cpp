// SPDX-License-Identifier: Apache-2.0
#include <weft/checkpoint/publish_file.hpp>

#include <doctest/doctest.h>

#include "data/temporary_folder.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

std::string text_of_file(const std::string& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}
void write_text(checkpoint::FileToPublish& file, std::string_view text) { file.write(std::as_bytes(std::span(text))); }

}  // namespace

TEST_CASE("file_to_publish_is_not_seen_before_it_is_published") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", "old");
  checkpoint::FileToPublish file(path);
  write_text(file, "ne");
  write_text(file, "w");
  CHECK(text_of_file(path) == "old");
  file.publish();
  CHECK(text_of_file(path) == "new");
}

TEST_CASE("file_to_publish_that_is_given_up_leaves_nothing") {
  const TemporaryFolder folder;
  { checkpoint::FileToPublish file(folder.path("a")), other(folder.path("a")); }
  CHECK(std::filesystem::is_empty(folder.path(".")));
}

TEST_CASE("file_to_publish_onto_a_folder_is_refused") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("a"));
  checkpoint::FileToPublish file(folder.path("a"));
  CHECK(contains(message_of([&] { file.publish(); }), "weft[checkpoint.write]: a file cannot be renamed"));
}
