// SPDX-License-Identifier: Apache-2.0
// The items of a language model: windows of S tokens, each with the S tokens that follow its own one by one as targets.
#pragma once

#include "weft/data/order.hpp"
#include "weft/data/token_sequence.hpp"
#include "weft/shape/features.hpp"

namespace weft::data {

// Where windows begin.
enum class WindowStarts : char {
  every_sequence,      // at 0, S, 2S, …: every token is a target once an epoch, but the first and fewer than S at the end
  shifted_each_epoch,  // at d, d + S, d + 2S, … with a random d < S for each epoch: other cuts each time, one window fewer if need be
  every_token,         // anywhere: windows overlap. With Order::with_replacement this is nanoGPT's sampling
};

// Source of a Loader. Item i: tokens (S) and targets (S) as int32. Cheap to copy.
class TokenWindows {
 public:
  using Input = std::int32_t;

  // Errors: weft[data.windows] for fewer than S + 1 tokens (2 S when shifted).
  TokenWindows(TokenSequence tokens, Index sequence, WindowStarts starts = WindowStarts::every_sequence)
      : tokens_(std::move(tokens)), sequence_(sequence), starts_(starts) {
    if (sequence < 1) throw Error("data.windows", text_of("a window has at least one token (given ", sequence, ")"));
    const Index needed = starts == WindowStarts::shifted_each_epoch ? 2 * sequence : sequence + 1;
    if (tokens_.size() < needed)
      throw Error("data.windows",
                  text_of("too few tokens for one window and its targets; take a shorter sequence or more data (file ", tokens_.file(),
                          ", sequence ", sequence, ", expected at least ", needed, " tokens, found ", tokens_.size(), ")"));
    num_items_ = starts == WindowStarts::every_token      ? tokens_.size() - sequence
                 : starts == WindowStarts::every_sequence ? (tokens_.size() - 1) / sequence
                                                          : (tokens_.size() - sequence) / sequence;
  }

  Index num_items() const { return num_items_; }
  Index sequence() const { return sequence_; }
  const TokenSequence& tokens() const { return tokens_; }
  const std::string& name() const { return tokens_.file(); }
  Index inputs_per_item() const { return sequence_; }
  Index targets_per_item() const { return sequence_; }
  Leading leading(Index batch) const { return {batch, sequence_, 0}; }

  // The first token of an item. Requires 0 <= item < num_items().
  Index first_token(std::uint64_t seed, Index epoch, Index item) const {
    if (starts_ == WindowStarts::every_token) return item;
    return item * sequence_ + (starts_ == WindowStarts::shifted_each_epoch ? shift(seed, epoch) : 0);
  }

  // inputs, targets: (items, S). Errors: weft[data.token].
  void read(std::uint64_t seed, Index epoch, std::span<const Index> items, std::int32_t* inputs, std::int32_t* targets) const {
    const Index shifted = starts_ == WindowStarts::shifted_each_epoch ? shift(seed, epoch) : 0;
    const std::size_t width = std::size_t(sequence_);
    for (Index item : items) {
      const Index first = starts_ == WindowStarts::every_token ? item : item * sequence_ + shifted;
      tokens_.read(first, {inputs, width});
      std::memcpy(targets, inputs + 1, (width - 1) * sizeof *inputs);
      tokens_.read(first + sequence_, {targets + width - 1, 1});
      inputs += width, targets += width;
    }
  }

 private:
  Index shift(std::uint64_t seed, Index epoch) const {
    return Index(random::integer_below(random::Words(window_shift_stream(seed, epoch)), 0, std::uint64_t(sequence_)));
  }

  TokenSequence tokens_;
  Index sequence_, num_items_ = 0;
  WindowStarts starts_;
};

}  // namespace weft::data
