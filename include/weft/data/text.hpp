// SPDX-License-Identifier: Apache-2.0
// Text as characters: one token a byte, numbered in the order of the bytes that occur. A UTF-8 letter beyond ASCII is several tokens.
#pragma once

#include <algorithm>
#include <optional>

#include "weft/data/token_sequence.hpp"

namespace weft::data {

// What becomes of a text with more distinct characters than the model has tokens.
enum class ExcessCharacters : char {
  refuse,          // an error that names both numbers
  replace_rarest,  // the rarest are read as the replacement character, and so is any character met later that is not in the vocabulary
};

struct CharacterOptions {
  Index capacity = 256;  // the model's vocabulary
  ExcessCharacters excess = ExcessCharacters::refuse;
  char replacement = ' ';  // with replace_rarest; always in the vocabulary then
};

class CharacterVocabulary {
 public:
  // The characters of a text. Every rank that builds it reads the whole file once (1 byte an item, through the page cache that they share).
  // Errors: weft[data.empty], weft[data.vocabulary] for more characters than `capacity`.
  static CharacterVocabulary of_text(const FileBytes& text, const CharacterOptions& options = {}) {
    if (text.size() == 0)
      file_fault("data.empty", "a text without characters has no vocabulary", text.file, 0, "at least 1 byte", "0 bytes");
    if (options.capacity < 1)
      throw Error("data.vocabulary", text_of("a vocabulary has at least 1 character (given ", options.capacity, ")"));
    std::array<Index, 256> counts{};
    for (std::byte byte : text.bytes) ++counts[std::size_t(byte)];
    const bool replaces = options.excess == ExcessCharacters::replace_rarest;
    std::string found;
    for (int byte = 0; byte < 256; ++byte)
      if (counts[std::size_t(byte)] > 0) found += char(byte);
    if (Index(found.size()) > options.capacity && !replaces)
      throw Error(
          "data.vocabulary",
          text_of(
              "the text has more distinct characters than the model has tokens; enlarge the model's vocabulary, or say ExcessCharacters::"
              "replace_rarest (file ",
              text.file, ", characters ", found.size(), ", tokens ", options.capacity, ")"));
    if (!replaces) return CharacterVocabulary(found, std::nullopt);
    const auto rank = [&](char c) {
      return c == options.replacement ? std::numeric_limits<Index>::max() : counts[std::size_t(std::uint8_t(c))];
    };
    if (found.find(options.replacement) == std::string::npos) found += options.replacement;
    std::stable_sort(found.begin(), found.end(), [&](char a, char b) { return rank(a) > rank(b); });
    found.resize(std::min(found.size(), std::size_t(options.capacity)));
    return CharacterVocabulary(found, options.replacement);
  }

  // A vocabulary that was kept, for instance beside a checkpoint: what characters() and replacement() gave.
  // Errors: weft[data.vocabulary] for no characters, or one that comes twice, or a replacement that is none of them.
  explicit CharacterVocabulary(std::string characters, std::optional<char> replacement = std::nullopt)
      : characters_(std::move(characters)), replacement_(replacement) {
    std::sort(characters_.begin(), characters_.end(), [](char a, char b) { return std::uint8_t(a) < std::uint8_t(b); });
    if (characters_.empty() || std::adjacent_find(characters_.begin(), characters_.end()) != characters_.end())
      throw Error("data.vocabulary", text_of("a vocabulary has at least one character, and each once (given ", characters_.size(), ")"));
    ByteTokens tokens;
    tokens.fill(not_a_token);
    for (std::size_t i = 0; i < characters_.size(); ++i) tokens[std::uint8_t(characters_[i])] = std::int32_t(i);
    if (replacement_) {
      const std::int32_t instead = tokens[std::uint8_t(*replacement_)];
      if (instead == not_a_token)
        throw Error("data.vocabulary",
                    text_of("the replacement must be in the vocabulary itself (byte ", int(std::uint8_t(*replacement_)), ")"));
      for (std::int32_t& token : tokens)
        if (token == not_a_token) token = instead;
    }
    tokens_ = std::make_shared<const ByteTokens>(tokens);
  }

  Index size() const { return Index(characters_.size()); }
  const std::string& characters() const { return characters_; }  // sorted; token i is the i-th
  std::optional<char> replacement() const { return replacement_; }

  // The text as tokens, encoded where they are read. Errors at reading: weft[data.token] for a character that is not in the vocabulary.
  TokenSequence tokens(FileBytes text) const {
    const Index count = text.size();
    return {std::move(text), TokenType::u8, size(), 0, count, tokens_};
  }

  // Errors: weft[data.token].
  std::vector<std::int32_t> encode(std::string_view text) const {
    std::vector<std::int32_t> out(text.size());
    tokens(bytes_in_memory(text, "text in memory")).read(0, out);
    return out;
  }
  // Errors: weft[data.token].
  std::string decode(std::span<const std::int32_t> tokens) const {
    std::string text;
    for (std::int32_t token : tokens) {
      if (token < 0 || token >= size())
        throw Error("data.token", text_of("a token is outside the vocabulary, so it is no character (token number ", text.size(), ": ",
                                          token, ", vocabulary ", size(), ")"));
      text += characters_[std::size_t(token)];
    }
    return text;
  }

 private:
  std::string characters_;
  std::optional<char> replacement_;
  std::shared_ptr<const ByteTokens> tokens_;
};

}  // namespace weft::data
