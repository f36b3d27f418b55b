// SPDX-License-Identifier: Apache-2.0
// A rank's loader: its part of every global batch, micro-batch by micro-batch.
#pragma once

#include <algorithm>
#include <concepts>
#include <type_traits>

#include "weft/data/prefetch.hpp"

namespace weft::data {

struct LoaderOptions {
  Index global_batch = 0;       // items of a step, over all ranks
  Index micro_batch = 0;        // items of a micro-batch at most
  Index rank = 0, ranks = 1;    // along the data axis
  std::vector<Index> shares{};  // items of each rank in a full batch; empty: equal
  std::uint64_t seed = 1;
  Order order = Order::shuffled;
  LastBatch last_batch = LastBatch::keep;
  Index epochs = 0;                  // 0: without end
  Index epoch_items = 0;             // 0: all; fewer: the first of each epoch's order; more: only with_replacement
  Index prefetch_micro_batches = 0;  // read so many ahead on a thread of the loader's own; 0: no thread
};

// Every item once, in order, whatever the number of ranks: for exact evaluation.
inline LoaderOptions evaluation_options(Index global_batch, Index micro_batch, Index rank = 0, Index ranks = 1) {
  return {.global_batch = global_batch, .micro_batch = micro_batch, .rank = rank, .ranks = ranks, .order = Order::sequential, .epochs = 1};
}

// What a micro-batch holds. items: their numbers in the source, valid until the next one is read.
struct MicroBatchItems {
  Leading leading{};
  Index epoch = 0;
  Index first_item = 0;  // place of the first one in the global batch
  std::span<const Index> items{};
};

// All ranks make their loader with the same options but `rank`, and call begin_step equally often; then the global batches are the same for
// every number of ranks, and a rank without items in a step has no micro-batches in it. Nothing is allocated after construction, but by
// resume and set_shares. Movable. No communication.
template <ItemSource Source>
class Loader {
 public:
  using Input = typename Source::Input;

  // Errors: weft[data.options], weft[data.shares].
  Loader(Source source, const LoaderOptions& options)
      : source_(std::move(source)),
        options_(checked(options, source_)),
        batches_(walk(options_)),
        items_(std::size_t(options_.micro_batch)) {
    start_prefetch();
  }

  const Source& source() const { return source_; }
  const LoaderOptions& options() const { return options_; }

  // Goes to the next global batch; the epoch advances by itself. Returns how many micro-batches of it this rank reads: maybe none.
  // Errors: weft[data.step] if micro-batches of the step before have not been read.
  Index begin_step() {
    require_between_steps();
    return batches_.begin_step();
  }

  // Whether no step follows those begun so far; the same on all ranks. Never true without an end of epochs.
  bool done() const { return batches_.done(); }

  // The global batch of the step begun last.
  const GlobalBatch& batch() const { return batches_.batch(); }
  Index steps_per_epoch() const { return batches_.rule().steps_per_epoch(); }

  // Reads the step's next micro-batch. inputs: (items, inputs_per_item), targets: (items, targets_per_item), both with room for `capacity`.
  // Errors: weft[data.step] if there is none, weft[data.capacity], those of the source (weft[data.token], weft[data.label]).
  MicroBatchItems read(Input* inputs, std::int32_t* targets, Leading capacity) {
    if (batches_.micro_batches_left() == 0)
      throw Error("data.step", "the step has no more micro-batches for this rank; read as many as begin_step returned");
    const MicroBatchPlace place = batches_.next();
    const Leading leading = source_.leading(place.items);
    if (leading.batch > capacity.batch || leading.sequence > capacity.sequence)
      throw Error("data.capacity",
                  text_of("a micro-batch does not fit its buffers; use the plan's micro-batch and sequence for the loader too (given ",
                          leading.batch, " x ", leading.sequence, ", capacity ", capacity.batch, " x ", capacity.sequence, ")"));
    if (prefetcher_) {
      prefetcher_->take(place, [&](const MicroBatchData<Input>& data) {
        std::copy_n(data.items.begin(), place.items, items_.begin());
        std::copy_n(data.inputs.begin(), place.items * source_.inputs_per_item(), inputs);
        std::copy_n(data.targets.begin(), place.items * source_.targets_per_item(), targets);
      });
    } else {
      read_micro_batch(source_, options_.order, place, items_, inputs, targets);
    }
    return {leading, place.epoch, place.first_item, std::span(items_).first(std::size_t(place.items))};
  }

  // The same, into what the engine hands out: its buffers, with the capacity in micro.leading, which becomes what was read.
  template <class Micro>
  requires requires(Micro& micro) { micro.leading, micro.first_item, micro.integer_targets(); }
  MicroBatchItems fill(Micro& micro) {
    const MicroBatchItems got = [&] {
      if constexpr (std::is_same_v<Input, std::int32_t>)
        return read(micro.tokens(), micro.integer_targets(), micro.leading);
      else
        return read(micro.values(), micro.integer_targets(), micro.leading);
    }();
    micro.leading = got.leading, micro.first_item = got.first_item;
    return got;
  }

  // Where the next step begins: the same on all ranks, whatever their number. Ask between steps.
  const Position& position() const { return batches_.position(); }

  // Goes on from a position, of this run or of one with other ranks, shares or batch: the items follow as they would have without a break.
  // Errors: weft[data.position] for one that does not lie in the data.
  void resume(const Position& position) {
    if (position.epoch < 0 || position.consumed < 0 || position.consumed > batches_.rule().epoch_items)
      throw Error("data.position",
                  text_of("the position does not lie in the data; resume with the data and the epoch_items of the run that kept it (",
                          source_.name(), ", epoch ", position.epoch, ", consumed ", position.consumed, " of ", batches_.rule().epoch_items,
                          " items)"));
    prefetcher_.reset();
    batches_.resume(position);
    start_prefetch();
  }

  // Other shares from the next step on, on all ranks alike; they add up to the global batch. Errors: weft[data.shares], weft[data.step].
  void set_shares(const std::vector<Index>& shares) {
    require_between_steps();
    Shares checked = checked_shares(shares, options_.global_batch, options_.ranks);
    prefetcher_.reset();
    options_.shares = shares;
    batches_.set_shares(std::move(checked));
    start_prefetch();
  }

 private:
  static Shares checked_shares(const std::vector<Index>& shares, Index global_batch, Index ranks) {
    if (shares.empty()) return Shares::equal(global_batch, ranks);
    Shares checked = Shares::of_ranks(shares);
    if (checked.ranks() != ranks || checked.global_items() != global_batch)
      throw Error("data.shares",
                  text_of("there is one share a rank, and they add up to the global batch (", checked.ranks(), " shares for ", ranks,
                          " ranks, sum ", checked.global_items(), ", global batch ", global_batch, ")"));
    return checked;
  }

  static LoaderOptions checked(LoaderOptions options, const Source& source) {
    const auto require = [&](bool holds, std::string_view rule, Index given) {
      if (!holds) throw Error("data.options", text_of(rule, " (", source.name(), ", given ", given, ")"));
    };
    const Index num_items = source.num_items();
    require(num_items > 0, "a loader has at least one item", num_items);
    require(options.global_batch > 0 && options.global_batch <= most_share_items, "LoaderOptions::global_batch lies between 1 and 2^31",
            options.global_batch);
    require(options.micro_batch > 0, "LoaderOptions::micro_batch is positive", options.micro_batch);
    require(options.ranks > 0 && options.ranks <= most_share_items, "LoaderOptions::ranks lies between 1 and 2^31", options.ranks);
    require(options.rank >= 0 && options.rank < options.ranks, "LoaderOptions::rank lies between 0 and ranks - 1", options.rank);
    require(options.epochs >= 0, "LoaderOptions::epochs is not negative", options.epochs);
    require(options.prefetch_micro_batches >= 0, "LoaderOptions::prefetch_micro_batches is not negative", options.prefetch_micro_batches);
    require(options.epoch_items >= 0, "LoaderOptions::epoch_items is not negative", options.epoch_items);
    require(options.order == Order::with_replacement || options.epoch_items <= num_items,
            text_of("an epoch of more items than there are (", num_items, ") needs Order::with_replacement"), options.epoch_items);
    if (options.epoch_items == 0) options.epoch_items = num_items;
    require(options.last_batch == LastBatch::keep || options.epoch_items >= options.global_batch,
            text_of("with LastBatch::drop an epoch needs the items of one global batch (", options.global_batch,
                    "); keep it, or take a smaller batch"),
            options.epoch_items);
    return options;
  }

  static RankBatches walk(const LoaderOptions& options) {
    const BatchRule rule{options.epoch_items, options.global_batch, options.last_batch, options.epochs};
    return {rule, checked_shares(options.shares, options.global_batch, options.ranks), options.rank, options.micro_batch,
            Position{options.seed, 0, 0}};
  }

  void require_between_steps() const {
    if (batches_.micro_batches_left() > 0)
      throw Error("data.step", text_of("a step ends when its micro-batches have been read; read the rest, or resume at a position (left ",
                                       batches_.micro_batches_left(), ")"));
  }

  void start_prefetch() {
    if (options_.prefetch_micro_batches > 0)
      prefetcher_ =
          std::make_unique<Prefetcher<Source>>(source_, options_.order, batches_, options_.micro_batch, options_.prefetch_micro_batches);
  }

  Source source_;
  LoaderOptions options_;
  RankBatches batches_;
  std::vector<Index> items_;
  std::unique_ptr<Prefetcher<Source>> prefetcher_;
};

}  // namespace weft::data
