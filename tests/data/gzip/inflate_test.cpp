// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <weft/data/gzip/inflate.hpp>

#include "data/gzip/gzip_bytes.hpp"
#include "data/temporary_folder.hpp"

using namespace weft;
using namespace weft::data;
using weft::testing::contains;
using weft::testing::gzip_bytes;
using weft::testing::message_of;

namespace {
std::string inflate_all(const std::string& packed, std::size_t step = 7) {
  const FileBytes file = bytes_in_memory(packed, "p.gz");
  gzip::Inflater inflater(file);
  std::string text;
  std::vector<std::byte> part(step);
  for (Index got = Index(step); got == Index(step);) {
    got = inflater.read(part);
    text.append(reinterpret_cast<const char*>(part.data()), std::size_t(got));
  }
  return text;
}
}  // namespace

TEST_CASE("inflater_gives_back_what_was_packed_in_any_steps") {
  const std::string text = "weft and warp, weft and warp, and again weft and warp";
  for (std::size_t step : {1u, 3u, 53u, 1000u}) CHECK(inflate_all(gzip_bytes(text), step) == text);
  CHECK(inflate_all(gzip_bytes("")).empty());
}

TEST_CASE("inflater_reads_several_members_as_one_file") {
  CHECK(inflate_all(gzip_bytes("first ") + gzip_bytes("") + gzip_bytes("second")) == "first second");
}

TEST_CASE("inflater_refuses_truncated_and_damaged_data") {
  const std::string packed = gzip_bytes("some text that is packed");
  for (std::size_t length = 1; length < packed.size(); ++length) CHECK_THROWS_AS(inflate_all(packed.substr(0, length)), Error);
  CHECK(contains(message_of([&] { inflate_all(packed.substr(0, 20)); }), "weft[data.gzip]"));
  CHECK(contains(message_of([&] { inflate_all(packed.substr(0, 20)); }),
                 "file p.gz, offset 20, expected gzip data, found the end of the file"));
  std::string flipped = packed;
  flipped[flipped.size() - 6] ^= 1;  // the checksum
  CHECK(contains(message_of([&] { inflate_all(flipped); }), "incorrect data check"));
  CHECK(contains(message_of([&] { inflate_all(packed + "trailing"); }), "weft[data.gzip]"));
}

TEST_CASE("is_gzip_knows_the_magic_number") {
  CHECK(gzip::is_gzip(bytes_in_memory(gzip_bytes("x"), "x").bytes));
  CHECK_FALSE(gzip::is_gzip(bytes_in_memory("\x1f", "x").bytes));
  CHECK_FALSE(gzip::is_gzip(bytes_in_memory("plain", "x").bytes));
}
