// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <weft/data/idx.hpp>

#include "data/temporary_folder.hpp"

using namespace weft;
using namespace weft::data;
using weft::testing::contains;
using weft::testing::idx_bytes;
using weft::testing::message_of;

TEST_CASE("idx_array_shows_items_of_every_rank") {
  testing::TemporaryFolder folder;
  const IdxArray images = read_idx(folder.write("images", idx_bytes({2, 2, 3}, "abcdefghijkl")));
  CHECK(images.num_items() == 2);
  CHECK(images.item_bytes() == 6);
  CHECK(images.header().num_extents == 3);
  CHECK(images.item(1)[0] == 'g');
  CHECK(images.offset_of(1) == 22);
  const IdxArray labels = read_idx(folder.write("labels", idx_bytes({3}, "\x01\x02\xff")));
  CHECK(labels.item_bytes() == 1);
  CHECK(labels.item(2)[0] == 255);
  CHECK(IdxArray(bytes_in_memory(idx_bytes({1, 3, 1, 2}, "abcdef"), "colour")).header().extents[1] == 3);
  CHECK(contains(message_of([&] { labels.item(3); }), "weft[data.range]"));
  CHECK(contains(message_of([&] { labels.item(-1); }), "weft[data.range]"));
}

TEST_CASE("idx_array_of_a_damaged_file_names_file_offset_expectation_and_finding") {
  testing::TemporaryFolder folder;
  const auto fault = [&](const std::string& bytes) {
    const std::string path = folder.write("bad", bytes);
    const std::string message = message_of([&] { read_idx(path); });
    CHECK(contains(message, "file " + path + ", offset "));
    CHECK(contains(message, ", expected "));
    CHECK(contains(message, ", found "));
    return message;
  };
  const std::string good = idx_bytes({2, 2, 2}, "12345678");
  CHECK(contains(fault(""), "weft[data.empty]"));
  CHECK(contains(fault(good.substr(0, 3)), "weft[data.size]"));
  CHECK(contains(fault(good.substr(0, 15)), "expected 16 bytes, found 15 bytes"));
  CHECK(contains(fault(good.substr(0, 23)), "offset 16, expected 8 bytes after the header, found 7 bytes"));
  CHECK(contains(fault(good + "x"), "expected 8 bytes after the header, found 9 bytes"));
  CHECK(contains(fault("PNG!" + good), "weft[data.header]"));
  CHECK(contains(fault("\x1f\x8b" + good), "compressed"));
  CHECK(contains(fault(std::string("\0\0\x0d\x01", 4) + good), "found element type 13"));
  CHECK(contains(fault(std::string("\0\0\x08\0", 4) + good), "found 0 extents"));
  CHECK(contains(fault(std::string("\0\0\x08\x05", 4) + good), "found 5 extents"));
  CHECK(contains(fault(idx_bytes({2, 0, 2}, "")), "offset 8, expected at least 1, found 0"));
  CHECK(contains(fault(idx_bytes({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, "")), "weft[data.header]"));
  CHECK(contains(fault(idx_bytes({0xffffffff}, "few")), "expected 4294967295 bytes after the header, found 3 bytes"));
  CHECK(contains(message_of([&] { read_idx(folder.path("gone")); }), "weft[data.open]"));
}

TEST_CASE("idx_array_truncated_anywhere_is_an_error") {
  const std::string good = idx_bytes({2, 2, 2}, "12345678");
  for (std::size_t length = 0; length < good.size(); ++length)
    CHECK_THROWS_AS(IdxArray(bytes_in_memory(good.substr(0, length), "cut")), Error);
  CHECK(IdxArray(bytes_in_memory(good, "whole")).num_items() == 2);
}
