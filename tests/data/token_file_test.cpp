// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <weft/data/token_file.hpp>

#include "data/temporary_folder.hpp"

using namespace weft;
using namespace weft::data;
using weft::testing::contains;
using weft::testing::little_endian;
using weft::testing::message_of;
using weft::testing::TemporaryFolder;
using Tokens = std::vector<std::int32_t>;

namespace {
Tokens all_of(const TokenSequence& sequence) {
  Tokens out(std::size_t(sequence.size()));
  sequence.read(0, out);
  return out;
}
std::string llm_c(std::uint32_t magic, std::uint32_t version, std::uint32_t count, const std::string& payload) {
  std::vector<std::uint32_t> header(256);
  header[0] = magic, header[1] = version, header[2] = count;
  return little_endian(header) + payload;
}
}  // namespace

TEST_CASE("token_file_written_is_read_back_in_every_format") {
  TemporaryFolder folder;
  const Tokens tokens{0, 17, 255, 3};
  for (TokenFormat format : {TokenFormat::u8, TokenFormat::u16, TokenFormat::u32, TokenFormat::llm_c}) {
    write_tokens(folder.path("t.bin"), tokens, format);
    CHECK(all_of(open_tokens(folder.path("t.bin"), format, 256)) == tokens);
  }
  CHECK_FALSE(std::filesystem::exists(folder.path("t.bin.part")));
  write_tokens(folder.path("none.bin"), {}, TokenFormat::u16);
  CHECK(open_tokens(folder.path("none.bin"), TokenFormat::u16, 9).size() == 0);
}

TEST_CASE("token_file_without_header_is_what_numpy_writes") {
  TemporaryFolder folder;
  const std::string path = folder.write("train.bin", std::string("\x01\x02\xff\x00", 4));  // uint16 0x0201, 0x00ff
  CHECK(all_of(open_tokens(path, TokenFormat::u16, 1024)) == Tokens{513, 255});
}

TEST_CASE("token_file_with_llm_c_header_of_either_kind_is_read") {
  TemporaryFolder folder;
  CHECK(all_of(open_tokens(folder.write("gpt2.bin", llm_c(20240520, 1, 2, little_endian<std::uint16_t>({50256, 1}))), TokenFormat::llm_c,
                           50257)) == Tokens{50256, 1});
  CHECK(all_of(open_tokens(folder.write("llama.bin", llm_c(20240801, 7, 1, little_endian<std::uint32_t>({128000}))), TokenFormat::llm_c,
                           128256)) == Tokens{128000});
}

TEST_CASE("token_file_that_is_damaged_names_file_expectation_and_finding") {
  TemporaryFolder folder;
  const auto fault = [&](const std::string& bytes, TokenFormat format) {
    const std::string path = folder.write("bad.bin", bytes);
    const std::string message = message_of([&] { open_tokens(path, format, 100); });
    CHECK(contains(message, "file " + path));
    return message;
  };
  CHECK(contains(fault("abc", TokenFormat::u16), "weft[data.size]"));
  CHECK(contains(fault("abc", TokenFormat::u16), "offset 2, expected a multiple of 2 bytes, found 3 bytes"));
  CHECK(contains(fault("abcdef", TokenFormat::u32), "offset 4, expected a multiple of 4 bytes, found 6 bytes"));
  CHECK(contains(fault("", TokenFormat::llm_c), "expected 1024 bytes, found 0 bytes"));
  CHECK(contains(fault(llm_c(20240520, 1, 3, "1234"), TokenFormat::llm_c), "expected 1030 bytes for 3 tokens, found 1028 bytes"));
  CHECK(contains(fault(llm_c(20240520, 1, 1, "1234"), TokenFormat::llm_c), "expected 1026 bytes for 1 tokens, found 1028 bytes"));
  CHECK(contains(fault(llm_c(20240520, 2, 1, "12"), TokenFormat::llm_c), "expected version 1, found version 2"));
  CHECK(contains(fault(llm_c(77, 1, 1, "12"), TokenFormat::llm_c), "weft[data.header]"));
  CHECK(contains(fault(llm_c(77, 1, 1, "12"), TokenFormat::llm_c), "found magic 77"));
  CHECK(contains(message_of([&] { open_tokens(folder.path("gone.bin"), TokenFormat::u16, 100); }), "weft[data.open]"));
}

TEST_CASE("write_tokens_refuses_what_the_element_type_cannot_hold") {
  TemporaryFolder folder;
  CHECK(contains(message_of([&] { write_tokens(folder.path("x"), Tokens{1, 256}, TokenFormat::u8); }), "weft[data.token]"));
  CHECK(contains(message_of([&] { write_tokens(folder.path("x"), Tokens{65536}, TokenFormat::u16); }), "token number 0: 65536"));
  CHECK(contains(message_of([&] { write_tokens(folder.path("x"), Tokens{-1}, TokenFormat::u32); }), "weft[data.token]"));
  CHECK_FALSE(std::filesystem::exists(folder.path("x")));
  const std::string message = message_of([&] { write_tokens(folder.path("no/such/x"), Tokens{1}, TokenFormat::u32); });
  CHECK(contains(message, "weft[data.write]"));
  CHECK(contains(message, "No such file"));
}
