// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <weft/data/token_sequence.hpp>

#include "data/temporary_folder.hpp"

using namespace weft;
using namespace weft::data;
using weft::testing::contains;
using weft::testing::little_endian;
using weft::testing::message_of;
using Tokens = std::vector<std::int32_t>;

namespace {
TokenSequence of_u16(const std::vector<std::uint16_t>& tokens, Index vocabulary) {
  return {bytes_in_memory(little_endian(tokens), "tokens"), TokenType::u16, vocabulary, 0, Index(tokens.size())};
}
Tokens read(const TokenSequence& sequence, Index first, Index count) {
  Tokens out(std::size_t(count), -7);
  sequence.read(first, out);
  return out;
}
}  // namespace

TEST_CASE("token_sequence_reads_every_element_type") {
  CHECK(read(of_u16({5, 65535, 0, 7}, 65536), 1, 3) == Tokens{65535, 0, 7});
  const TokenSequence wide(bytes_in_memory(little_endian<std::uint32_t>({1, 128255, 3}), "wide"), TokenType::u32, 128256, 0, 3);
  CHECK(read(wide, 0, 3) == Tokens{1, 128255, 3});
  const TokenSequence bytes(bytes_in_memory("a\xff", "bytes"), TokenType::u8, 256, 0, 2);
  CHECK(read(bytes, 0, 2) == Tokens{97, 255});
  const TokenSequence odd(bytes_in_memory("x" + little_endian<std::uint16_t>({300, 301}), "odd"), TokenType::u16, 512, 1, 2);
  CHECK(read(odd, 0, 2) == Tokens{300, 301});
  CHECK(read(odd, 2, 0).empty());
}

TEST_CASE("token_sequence_part_counts_from_its_own_start") {
  const TokenSequence part = of_u16({10, 11, 12, 13, 14}, 20).part(2, 2);
  CHECK(part.size() == 2);
  CHECK(read(part, 0, 2) == Tokens{12, 13});
  CHECK(contains(message_of([&] { read(part, 1, 2); }), "weft[data.range]"));
  CHECK(contains(message_of([&] { part.part(0, 3); }), "weft[data.range]"));
  CHECK(contains(message_of([&] { part.part(-1, 1); }), "weft[data.range]"));
}

TEST_CASE("token_sequence_with_a_token_outside_the_vocabulary_names_file_offset_and_numbers") {
  const TokenSequence part = of_u16({1, 2, 3, 99, 4}, 50).part(1, 4);
  CHECK(read(part, 0, 2) == Tokens{2, 3});
  const std::string message = message_of([&] { read(part, 1, 3); });
  CHECK(contains(message, "weft[data.token]"));
  CHECK(contains(message, "file tokens, offset 6, expected a token below 50, found token 99"));
  const TokenSequence wide(bytes_in_memory(little_endian<std::uint32_t>({0xffffffffu}), "wide"), TokenType::u32, Index(1) << 31, 0, 1);
  CHECK(contains(message_of([&] { read(wide, 0, 1); }), "found token 4294967295"));
}

TEST_CASE("token_sequence_beyond_the_file_is_an_error") {
  const FileBytes file = bytes_in_memory("12345", "short.bin");
  CHECK(contains(message_of([&] { TokenSequence(file, TokenType::u16, 9, 0, 3); }), "weft[data.size]"));
  CHECK(contains(message_of([&] { TokenSequence(file, TokenType::u16, 9, 6, 0); }), "expected 0 tokens of 2 bytes, found 5 bytes in all"));
  CHECK(contains(message_of([&] { TokenSequence(file, TokenType::u8, 9, 0, PTRDIFF_MAX); }), "weft[data.size]"));
  CHECK(contains(message_of([&] { TokenSequence(file, TokenType::u8, 0, 0, 1); }), "weft[data.vocabulary]"));
  CHECK(contains(message_of([&] { TokenSequence(file, TokenType::u8, (Index(1) << 31) + 1, 0, 1); }), "weft[data.vocabulary]"));
}

TEST_CASE("split_tokens_gives_the_first_part_to_training") {
  std::vector<std::uint16_t> tokens(101);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = std::uint16_t(i);
  const TokenSplit split = split_tokens(of_u16(tokens, 101));
  CHECK(split.training.size() == 90);
  CHECK(split.validation.size() == 11);
  CHECK(read(split.validation, 0, 1) == Tokens{90});
  CHECK(split_tokens(of_u16(tokens, 101), 1).validation.size() == 0);
  CHECK(contains(message_of([&] { split_tokens(of_u16(tokens, 101), 1.5); }), "weft[data.range]"));
}
