// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <weft/data/mapped_file.hpp>

#include "data/temporary_folder.hpp"

using namespace weft;
using namespace weft::data;
using weft::testing::contains;
using weft::testing::message_of;

TEST_CASE("mapped_file_of_bytes_shows_them") {
  testing::TemporaryFolder folder;
  const std::string path = folder.write("a.bin", "weft");
  MappedFile file(path);
  REQUIRE(file.size() == 4);
  CHECK(file.path() == path);
  CHECK(char(file.bytes()[0]) == 'w');
  MappedFile other(std::move(file));
  CHECK(file.size() == 0);
  CHECK(char(other.bytes()[3]) == 't');
  MappedFile third(folder.write("b.bin", "x"));
  third = std::move(other);
  CHECK(third.size() == 4);
  CHECK(third.path() == path);
}

TEST_CASE("mapped_file_that_is_empty_has_no_bytes") {
  testing::TemporaryFolder folder;
  MappedFile file(folder.write("empty", ""));
  CHECK(file.size() == 0);
  CHECK(file.bytes().empty());
}

TEST_CASE("mapped_file_that_is_missing_is_an_error_with_name_and_reason") {
  testing::TemporaryFolder folder;
  const std::string message = message_of([&] { MappedFile(folder.path("nowhere.bin")); });
  CHECK(contains(message, "weft[data.open]"));
  CHECK(contains(message, folder.path("nowhere.bin")));
  CHECK(contains(message, "No such file"));
}

TEST_CASE("mapped_file_that_is_a_folder_is_an_error") {
  testing::TemporaryFolder folder;
  const std::string message = message_of([&] { MappedFile(folder.path("")); });
  CHECK(contains(message, "weft[data.open]"));
  CHECK(contains(message, "directory"));
}

TEST_CASE("file_bytes_outlive_the_folder_and_are_shared_by_copies") {
  FileBytes bytes;
  {
    testing::TemporaryFolder folder;
    FileBytes mapped = map_file(folder.write("a.bin", "abc"));
    bytes = mapped;
  }
  CHECK(bytes.size() == 3);
  CHECK(char(bytes.bytes[2]) == 'c');
  const FileBytes memory = bytes_in_memory("xy", "memory");
  CHECK(memory.file == "memory");
  CHECK(char(memory.bytes[1]) == 'y');
}
