// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <set>

#include <weft/data/source.hpp>
#include <weft/data/token_windows.hpp>

#include "data/temporary_folder.hpp"

using namespace weft;
using namespace weft::data;
using weft::testing::contains;
using weft::testing::little_endian;
using weft::testing::message_of;
using Tokens = std::vector<std::int32_t>;

static_assert(ItemSource<TokenWindows>, "a Loader reads token windows");

namespace {
// Token i is i.
TokenSequence counting(Index count) {
  std::vector<std::uint16_t> tokens(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = std::uint16_t(i);
  return {bytes_in_memory(little_endian(tokens), "counting.bin"), TokenType::u16, 65536, 0, count};
}
struct Window {
  Tokens inputs, targets;
};
Window window(const TokenWindows& windows, Index item, Index epoch = 0) {
  Window out{Tokens(std::size_t(windows.sequence())), Tokens(std::size_t(windows.sequence()))};
  windows.read(1, epoch, {&item, 1}, out.inputs.data(), out.targets.data());
  return out;
}
}  // namespace

TEST_CASE("token_windows_are_sequences_and_the_tokens_that_follow") {
  const TokenWindows windows(counting(13), 4);
  CHECK(windows.num_items() == 3);
  CHECK(window(windows, 0).inputs == Tokens{0, 1, 2, 3});
  CHECK(window(windows, 2).inputs == Tokens{8, 9, 10, 11});
  CHECK(window(windows, 2).targets == Tokens{9, 10, 11, 12});
  CHECK(TokenWindows(counting(12), 4).num_items() == 2);
  CHECK(TokenWindows(counting(2), 1).num_items() == 1);
  CHECK(windows.leading(5) == Leading{5, 4, 0});
}

TEST_CASE("token_windows_of_several_items_lie_one_after_the_other") {
  const TokenWindows windows(counting(20), 3);
  const Index items[] = {4, 0};
  Tokens inputs(6), targets(6);
  windows.read(1, 0, items, inputs.data(), targets.data());
  CHECK(inputs == Tokens{12, 13, 14, 0, 1, 2});
  CHECK(targets == Tokens{13, 14, 15, 1, 2, 3});
}

TEST_CASE("token_windows_anywhere_reach_the_last_token_and_no_further") {
  const TokenWindows windows(counting(13), 4, WindowStarts::every_token);
  CHECK(windows.num_items() == 9);
  CHECK(window(windows, 8).targets == Tokens{9, 10, 11, 12});
}

TEST_CASE("token_windows_shifted_each_epoch_start_elsewhere_and_never_overlap") {
  const TokenWindows windows(counting(24), 8, WindowStarts::shifted_each_epoch);
  CHECK(windows.num_items() == 2);
  std::set<Index> shifts;
  for (Index epoch = 0; epoch < 200; ++epoch) {
    const Index first = windows.first_token(1, epoch, 0);
    shifts.insert(first);
    CHECK(windows.first_token(1, epoch, 1) == first + 8);
    CHECK(window(windows, 1, epoch).targets.back() == first + 16);
  }
  CHECK(shifts == std::set<Index>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("token_windows_of_too_few_tokens_name_both_numbers") {
  const std::string message = message_of([] { TokenWindows(counting(8), 8); });
  CHECK(contains(message, "weft[data.windows]"));
  CHECK(contains(message, "file counting.bin, sequence 8, expected at least 9 tokens, found 8"));
  CHECK(contains(message_of([] { TokenWindows(counting(15), 8, WindowStarts::shifted_each_epoch); }), "expected at least 16 tokens"));
  CHECK(contains(message_of([] { TokenWindows(counting(0), 1); }), "found 0"));
  CHECK(contains(message_of([] { TokenWindows(counting(9), 0); }), "weft[data.windows]"));
}

TEST_CASE("token_windows_with_a_bad_last_target_find_it") {
  const TokenSequence tokens(bytes_in_memory(little_endian<std::uint16_t>({1, 2, 3, 77}), "t.bin"), TokenType::u16, 50, 0, 4);
  CHECK(contains(message_of([&] { window(TokenWindows(tokens, 3), 0); }), "offset 6, expected a token below 50, found token 77"));
}
