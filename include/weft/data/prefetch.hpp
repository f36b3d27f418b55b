// SPDX-License-Identifier: Apache-2.0
// Reads micro-batches ahead of their use, on one thread of its own. What is read does not depend on it: it walks the same steps.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "weft/data/source.hpp"

namespace weft::data {

// The data of one micro-batch. items: which items of the source, in order.
template <class Input>
struct MicroBatchData {
  std::vector<Index> items;
  std::vector<Input> inputs;          // (items, inputs_per_item)
  std::vector<std::int32_t> targets;  // (items, targets_per_item)
};

// Keeps up to `depth` micro-batches read ahead in memory of its own: depth · (items + inputs + targets of a micro-batch), allocated at
// once. Errors of the source reach the caller of take() when it comes to the micro-batch that failed. The destructor waits for one read at
// most.
template <ItemSource Source>
class Prefetcher {
 public:
  using Data = MicroBatchData<typename Source::Input>;

  // Starts at the step that `batches` comes to next.
  Prefetcher(Source source, Order order, RankBatches batches, Index micro_items, Index depth)
      : source_(std::move(source)), order_(order), batches_(std::move(batches)), slots_(std::size_t(depth)) {
    for (Slot& slot : slots_) {
      slot.data.items.resize(std::size_t(micro_items));
      slot.data.inputs.resize(std::size_t(micro_items * source_.inputs_per_item()));
      slot.data.targets.resize(std::size_t(micro_items * source_.targets_per_item()));
    }
    thread_ = std::thread([this] { work(); });
  }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;
  ~Prefetcher() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // Waits for the next micro-batch, and calls use(const Data&) with it. `place` must be the next one of the same walk.
  // Errors: those of the source; weft[data.prefetch] for another place.
  template <class Use>
  void take(const MicroBatchPlace& place, Use&& use) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return num_read_ > num_taken_ || failure_; });
    if (num_read_ == num_taken_) std::rethrow_exception(failure_);
    const Slot& slot = slots_[std::size_t(num_taken_) % slots_.size()];
    lock.unlock();  // the slot is the caller's until num_taken_ grows
    if (slot.place != place)
      throw Error("data.prefetch", "a micro-batch was asked for that is not the next one; resume the loader at the position wanted");
    use(slot.data);
    lock.lock();
    ++num_taken_;
    lock.unlock();
    changed_.notify_all();
  }

 private:
  struct Slot {
    MicroBatchPlace place;
    Data data;
  };

  void work() {
    try {
      // A rank without a micro-batch in two epochs' steps has none in any: epochs are cut alike.
      const Index most_empty_steps = 2 * batches_.rule().steps_per_epoch();
      for (Index empty_steps = 0; empty_steps < most_empty_steps && !batches_.done() && !stopped(); ++empty_steps)
        for (Index micros = batches_.begin_step(); micros > 0; --micros, empty_steps = -1)
          if (!read(batches_.next())) return;
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
    changed_.notify_all();
  }

  bool stopped() {
    const std::lock_guard lock(mutex_);
    return stop_;
  }

  // False: to stop.
  bool read(const MicroBatchPlace& place) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stop_ || num_read_ - num_taken_ < Index(slots_.size()); });
    if (stop_) return false;
    Slot& slot = slots_[std::size_t(num_read_) % slots_.size()];
    lock.unlock();
    slot.place = place;
    read_micro_batch(source_, order_, place, slot.data.items, slot.data.inputs.data(), slot.data.targets.data());
    lock.lock();
    ++num_read_;
    lock.unlock();
    changed_.notify_all();
    return true;
  }

  const Source source_;
  Order order_;
  RankBatches batches_;
  std::vector<Slot> slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Index num_read_ = 0, num_taken_ = 0;  // micro-batches, since the start
  bool stop_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace weft::data
