// SPDX-License-Identifier: Apache-2.0
// Token files: little-endian unsigned tokens, one after the other, without a header (nanoGPT's .bin) or with the header of llm.c.
#pragma once

#include <cstdio>

#include "weft/data/token_sequence.hpp"

namespace weft::data {

enum class TokenFormat : char {
  u8,     // one byte a token, no header: the bytes of any file
  u16,    // two bytes a token, no header: what nanoGPT's prepare scripts write
  u32,    // four bytes a token, no header
  llm_c,  // 256 int32: magic, version, number of tokens, zeros; then u16 tokens (magic 20240520, version 1) or u32 (20240801, version 7)
};

inline constexpr Index llm_c_header_bytes = 1024;
struct LlmcKind {
  std::uint32_t magic, version;
  TokenType type;
};
inline constexpr LlmcKind llm_c_kinds[] = {{20240520, 1, TokenType::u16}, {20240801, 7, TokenType::u32}};

inline std::uint32_t little_endian_u32(std::span<const std::byte> bytes, Index offset) {
  std::uint32_t value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

inline TokenSequence tokens_after_llm_c_header(FileBytes file, Index vocabulary) {
  if (file.size() < llm_c_header_bytes)
    file_fault("data.size", "the file is shorter than llm.c's header; it is truncated, or has no header", file.file, 0,
               text_of(llm_c_header_bytes, " bytes"), text_of(file.size(), " bytes"));
  const std::uint32_t magic = little_endian_u32(file.bytes, 0), version = little_endian_u32(file.bytes, 4);
  const Index count = little_endian_u32(file.bytes, 8);
  for (const LlmcKind& kind : llm_c_kinds) {
    if (kind.magic != magic) continue;
    if (kind.version != version)
      file_fault("data.header", "the file has a version of llm.c's token format that is not known", file.file, 4,
                 text_of("version ", kind.version), text_of("version ", version));
    const Index expected = llm_c_header_bytes + count * Index(kind.type);
    if (file.size() != expected)
      file_fault("data.size", "the size of the file does not match the number of tokens in its header; it is truncated or damaged",
                 file.file, 8, text_of(expected, " bytes for ", count, " tokens"), text_of(file.size(), " bytes"));
    return {std::move(file), kind.type, vocabulary, llm_c_header_bytes, count};
  }
  file_fault("data.header", "the file does not begin with the magic number of llm.c's token format; name another TokenFormat", file.file, 0,
             text_of("magic ", llm_c_kinds[0].magic, " or ", llm_c_kinds[1].magic), text_of("magic ", magic));
}

// Errors: weft[data.size] for a size that is no multiple of the element's or not what the header says; weft[data.header].
inline TokenSequence tokens_of(FileBytes file, TokenFormat format, Index vocabulary) {
  if (format == TokenFormat::llm_c) return tokens_after_llm_c_header(std::move(file), vocabulary);
  const TokenType type = format == TokenFormat::u8 ? TokenType::u8 : format == TokenFormat::u16 ? TokenType::u16 : TokenType::u32;
  const Index size = file.size(), token_bytes = Index(type);
  if (size % token_bytes != 0)
    file_fault("data.size", "the size of a token file is a multiple of its element's; it is truncated, or its element type is another",
               file.file, size - size % token_bytes, text_of("a multiple of ", token_bytes, " bytes"), text_of(size, " bytes"));
  return {std::move(file), type, vocabulary, 0, size / token_bytes};
}

// The tokens of a file, mapped. vocabulary: how many tokens the model knows; a larger one in the file is an error where it is read.
// Errors: those of MappedFile and of tokens_of.
inline TokenSequence open_tokens(const std::string& path, TokenFormat format, Index vocabulary) {
  return tokens_of(map_file(path), format, vocabulary);
}

// Writes a token file that open_tokens reads: beside its place first, then renamed, so that nobody reads half of it.
// Errors: weft[data.token] for a token that the element type cannot hold; weft[data.write].
inline void write_tokens(const std::string& path, std::span<const std::int32_t> tokens, TokenFormat format) {
  const bool header = format == TokenFormat::llm_c;
  const Index token_bytes = format == TokenFormat::u8 ? 1 : format == TokenFormat::u32 ? 4 : 2;
  std::vector<std::byte> bytes(std::size_t((header ? llm_c_header_bytes : 0) + Index(tokens.size()) * token_bytes));
  if (header) {
    if (tokens.size() > std::numeric_limits<std::uint32_t>::max())
      throw Error("data.write",
                  text_of("llm.c's header counts at most 2^32 - 1 tokens; write a file without a header (", tokens.size(), " tokens)"));
    const std::uint32_t words[] = {llm_c_kinds[0].magic, llm_c_kinds[0].version, std::uint32_t(tokens.size())};
    std::memcpy(bytes.data(), words, sizeof words);
  }
  std::byte* to = bytes.data() + (header ? llm_c_header_bytes : 0);
  for (std::size_t i = 0; i < tokens.size(); ++i, to += token_bytes) {
    if (tokens[i] < 0 || (token_bytes < 4 && tokens[i] >> (8 * token_bytes) != 0))
      throw Error("data.token", text_of("a token does not fit the element type of the file; take a wider one (file ", path,
                                        ", token number ", i, ": ", tokens[i], ", ", token_bytes, " bytes each)"));
    std::memcpy(to, &tokens[i], std::size_t(token_bytes));  // the low bytes come first
  }
  const std::string beside = path + ".part";
  std::FILE* file = std::fopen(beside.c_str(), "wb");
  bool written = file && (bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size());
  int reason = errno;
  if (file && std::fclose(file) != 0 && written) written = false, reason = errno;
  if (written && std::rename(beside.c_str(), path.c_str()) != 0) written = false, reason = errno;
  if (!written) {
    std::remove(beside.c_str());
    throw Error("data.write", text_of("a token file cannot be written; check its folder and the space left (file ", path, ", ",
                                      bytes.size(), " bytes: ", std::generic_category().message(reason), ")"));
  }
}

}  // namespace weft::data
