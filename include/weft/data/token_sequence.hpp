// SPDX-License-Identifier: Apache-2.0
// A sequence of tokens that lies in a file: read where it is needed, checked as it is read.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "weft/data/mapped_file.hpp"

namespace weft::data {

static_assert(std::endian::native == std::endian::little, "weft::data reads token files as they lie in memory: they are little-endian");

enum class TokenType : char { u8 = 1, u16 = 2, u32 = 4 };  // unsigned, little-endian; the value is the size in bytes

// Which token each byte of a text is; not_a_token for a byte that is none.
inline constexpr std::int32_t not_a_token = -1;
using ByteTokens = std::array<std::int32_t, 256>;

// Cheap to copy: copies share the file.
class TokenSequence {
 public:
  // `count` tokens from byte `first_byte` on, each below `vocabulary`. bytes: for TokenType::u8, what token a byte stands for; null:
  // itself. Errors: weft[data.vocabulary] for a vocabulary that is not positive or above 2^31; weft[data.size] for tokens beyond the end.
  TokenSequence(FileBytes file, TokenType type, Index vocabulary, Index first_byte, Index count,
                std::shared_ptr<const ByteTokens> bytes = nullptr)
      : file_(std::move(file)), bytes_(std::move(bytes)), type_(type), vocabulary_(vocabulary), first_byte_(first_byte), count_(count) {
    if (vocabulary < 1 || vocabulary > Index(1) << 31)
      throw Error("data.vocabulary", text_of("a vocabulary has 1 to 2^31 tokens (file ", file_.file, ", given ", vocabulary, ")"));
    if (first_byte < 0 || count < 0 || first_byte > file_.size() || count > (file_.size() - first_byte) / token_bytes())
      file_fault("data.size", "the tokens reach beyond the end of the file; it is truncated, or its element type is another", file_.file,
                 first_byte, text_of(count, " tokens of ", token_bytes(), " bytes"), text_of(file_.size(), " bytes in all"));
  }

  Index size() const { return count_; }
  Index vocabulary() const { return vocabulary_; }
  TokenType type() const { return type_; }
  const std::string& file() const { return file_.file; }

  // Errors: weft[data.range].
  TokenSequence part(Index first, Index count) const {
    require_range(first, count);
    TokenSequence sequence = *this;
    sequence.first_byte_ += first * token_bytes(), sequence.count_ = count;
    return sequence;
  }

  // out = tokens first … first + out.size() − 1.
  // Errors: weft[data.range] outside the sequence; weft[data.token] for a token outside the vocabulary, with file, offset and both numbers.
  void read(Index first, std::span<std::int32_t> out) const {
    require_range(first, Index(out.size()));
    const std::byte* from = file_.bytes.data() + first_byte_ + first * token_bytes();
    std::uint32_t largest = 0;  // not_a_token is the largest of all
    if (type_ == TokenType::u32) largest = copy<std::uint32_t>(from, out);
    if (type_ == TokenType::u16) largest = copy<std::uint16_t>(from, out);
    if (type_ == TokenType::u8 && !bytes_) largest = copy<std::uint8_t>(from, out);
    if (type_ == TokenType::u8 && bytes_) largest = look_up(from, out);
    if (Index(largest) >= vocabulary_) refuse(first, out);
  }

 private:
  Index token_bytes() const { return Index(type_); }

  template <class Token>
  static std::uint32_t copy(const std::byte* from, std::span<std::int32_t> out) {
    std::uint32_t largest = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      Token token;  // files need not be aligned
      std::memcpy(&token, from + i * sizeof token, sizeof token);
      largest = token > largest ? token : largest;
      out[i] = std::int32_t(token);
    }
    return largest;
  }
  std::uint32_t look_up(const std::byte* from, std::span<std::int32_t> out) const {
    std::uint32_t largest = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = (*bytes_)[std::size_t(from[i])];
      largest = std::uint32_t(out[i]) > largest ? std::uint32_t(out[i]) : largest;
    }
    return largest;
  }

  void require_range(Index first, Index count) const {
    if (first < 0 || count < 0 || first > count_ || count > count_ - first)
      throw Error("data.range", text_of("tokens outside the sequence are asked for (file ", file_.file, ", tokens ", first, " to ",
                                        first + count, ", the sequence has ", count_, ")"));
  }
  [[noreturn]] void refuse(Index first, std::span<const std::int32_t> tokens) const {
    std::size_t i = 0;
    while (Index(std::uint32_t(tokens[i])) < vocabulary_) ++i;
    const Index offset = first_byte_ + (first + Index(i)) * token_bytes();
    if (tokens[i] == not_a_token && bytes_)
      file_fault(
          "data.token", "a character of the text is not in the vocabulary; build the vocabulary from this text too, or name a replacement",
          file_.file, offset, text_of("one of ", vocabulary_, " characters"), text_of("byte ", int(file_.bytes[std::size_t(offset)])));
    file_fault("data.token", "a token is outside the vocabulary; enlarge it, or check the element type and the tokenizer of the file",
               file_.file, offset, text_of("a token below ", vocabulary_), text_of("token ", std::uint32_t(tokens[i])));
  }

  FileBytes file_;
  std::shared_ptr<const ByteTokens> bytes_;
  TokenType type_;
  Index vocabulary_, first_byte_, count_;
};

// Training and validation data of one sequence: the first ⌊fraction · size⌋ tokens, and the rest.
struct TokenSplit {
  TokenSequence training, validation;
};

// Errors: weft[data.range] for a fraction outside [0, 1].
inline TokenSplit split_tokens(const TokenSequence& tokens, double training_fraction = 0.9) {
  if (!(training_fraction >= 0 && training_fraction <= 1))
    throw Error("data.range",
                text_of("the fraction of training data lies between 0 and 1 (given ", std::to_string(training_fraction), ")"));
  const Index first = Index(double(tokens.size()) * training_fraction);
  return {tokens.part(0, first), tokens.part(first, tokens.size() - first)};
}

}  // namespace weft::data
