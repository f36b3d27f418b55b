// SPDX-License-Identifier: Apache-2.0
// Token files and text: whatever the bytes are, every token read lies within the vocabulary, or a weft::Error says why not.
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude tests/fuzz/tokens_fuzz.cpp -pthread -o tokens_fuzz
//   ./tokens_fuzz -max_total_time=60 -max_len=4096
#include <weft/data/loader.hpp>
#include <weft/data/text.hpp>
#include <weft/data/token_file.hpp>
#include <weft/data/token_windows.hpp>

namespace {
// One epoch through a loader.
void read_all(const weft::data::TokenSequence& tokens, weft::Index sequence, weft::data::WindowStarts starts) {
  weft::data::Loader<weft::data::TokenWindows> loader({tokens, sequence, starts},
                                                      {.global_batch = 4, .micro_batch = 3, .epochs = 1, .epoch_items = 1});
  std::vector<std::int32_t> inputs(std::size_t(3 * sequence)), targets(inputs.size());
  while (!loader.done())
    for (weft::Index micros = loader.begin_step(); micros > 0; --micros) {
      const auto micro = loader.read(inputs.data(), targets.data(), {3, sequence, 0});
      for (std::size_t i = 0; i < std::size_t(micro.leading.rows()); ++i)
        if (inputs[i] < 0 || inputs[i] >= tokens.vocabulary() || targets[i] < 0 || targets[i] >= tokens.vocabulary()) __builtin_trap();
    }
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::data;
  if (size < 4) return 0;
  const auto format = TokenFormat(data[0] % 4);
  const auto starts = WindowStarts(data[1] % 3);
  const weft::Index vocabulary = weft::Index(1) << (data[2] % 33), sequence = data[3] % 40;  // some of both are refused
  const FileBytes file = bytes_in_memory({reinterpret_cast<const char*>(data) + 4, size - 4}, "fuzz");
  try {
    read_all(tokens_of(file, format, vocabulary), sequence, starts);
  } catch (const weft::Error&) {}
  try {
    const CharacterOptions options{.capacity = vocabulary, .excess = ExcessCharacters(data[0] / 4 % 2), .replacement = char(data[1])};
    const auto characters = CharacterVocabulary::of_text(file, options);
    if (characters.size() > options.capacity) __builtin_trap();
    read_all(characters.tokens(file), sequence, starts);
  } catch (const weft::Error&) {}
  return 0;
}
