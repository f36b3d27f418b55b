// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <weft/data/text.hpp>

#include "data/temporary_folder.hpp"

using namespace weft;
using namespace weft::data;
using weft::testing::contains;
using weft::testing::message_of;
using Tokens = std::vector<std::int32_t>;

namespace {
FileBytes text(std::string_view characters) { return bytes_in_memory(characters, "some.txt"); }
}  // namespace

TEST_CASE("character_vocabulary_is_the_sorted_bytes_of_the_text") {
  const auto vocabulary = CharacterVocabulary::of_text(text("hello\nworld\xff"));
  CHECK(vocabulary.characters() == "\ndehlorw\xff");
  CHECK(vocabulary.size() == 9);
  CHECK(vocabulary.encode("hell") == Tokens{3, 2, 4, 4});
  CHECK(vocabulary.decode(vocabulary.encode("wordled\n\xff")) == "wordled\n\xff");
}

TEST_CASE("character_vocabulary_of_a_file_encodes_it_where_it_is_read") {
  testing::TemporaryFolder folder;
  const FileBytes file = map_file(folder.write("t.txt", "abcabd"));
  const auto vocabulary = CharacterVocabulary::of_text(file, {.capacity = 4});
  const TokenSequence tokens = vocabulary.tokens(file);
  CHECK(tokens.size() == 6);
  CHECK(tokens.vocabulary() == 4);
  Tokens out(3);
  tokens.read(3, out);
  CHECK(out == Tokens{0, 1, 3});
}

TEST_CASE("character_vocabulary_larger_than_the_model_is_refused_with_both_numbers") {
  const std::string message = message_of([] { CharacterVocabulary::of_text(text("abcde"), {.capacity = 4}); });
  CHECK(contains(message, "weft[data.vocabulary]"));
  CHECK(contains(message, "file some.txt, characters 5, tokens 4"));
}

TEST_CASE("character_vocabulary_replaces_the_rarest_when_told_to") {
  const CharacterOptions options{.capacity = 3, .excess = ExcessCharacters::replace_rarest, .replacement = '?'};
  const auto vocabulary = CharacterVocabulary::of_text(text("aaabbcccd"), options);
  CHECK(vocabulary.characters() == "?ac");
  CHECK(vocabulary.decode(vocabulary.encode("abcdZ")) == "a?c??");
  const auto all = CharacterVocabulary::of_text(text("ab?"), options);
  CHECK(all.characters() == "?ab");
  const CharacterVocabulary kept(vocabulary.characters(), vocabulary.replacement());
  CHECK(kept.encode("abcd") == vocabulary.encode("abcd"));
}

TEST_CASE("character_vocabulary_does_not_know_characters_of_another_text") {
  const auto vocabulary = CharacterVocabulary::of_text(text("abc"));
  const std::string message = message_of([&] {
    Tokens out(4);
    vocabulary.tokens(text("abxa")).read(0, out);
  });
  CHECK(contains(message, "weft[data.token]"));
  CHECK(contains(message, "offset 2, expected one of 3 characters, found byte 120"));
  CHECK(contains(message_of([&] { vocabulary.decode(Tokens{0, 3}); }), "token number 1: 3, vocabulary 3"));
  CHECK(contains(message_of([&] { vocabulary.decode(Tokens{-1}); }), "weft[data.token]"));
}

TEST_CASE("character_vocabulary_of_nothing_or_of_repeats_is_an_error") {
  CHECK(contains(message_of([] { CharacterVocabulary::of_text(text("")); }), "weft[data.empty]"));
  CHECK(contains(message_of([] { CharacterVocabulary::of_text(text("a"), {.capacity = 0}); }), "weft[data.vocabulary]"));
  CHECK(contains(message_of([] { CharacterVocabulary(""); }), "weft[data.vocabulary]"));
  CHECK(contains(message_of([] { CharacterVocabulary("aba"); }), "weft[data.vocabulary]"));
  CHECK(contains(message_of([] { CharacterVocabulary("ab", '?'); }), "weft[data.vocabulary]"));
}
