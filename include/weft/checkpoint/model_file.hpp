// SPDX-License-Identifier: Apache-2.0
// Saves and loads what an engine holds.
#pragma once

#include "weft/checkpoint/parameters.hpp"
#include "weft/comm/agree.hpp"

namespace weft {

// Anything that shows its parameters and buffers, ties once: visit(path, facts, data, gradient or null); facts.extents is a range. Engine
// is one.
template <class T>
concept ShowsParameters = requires(T& holder) {
  typename T::Real;
  holder.for_each_parameter([](const std::string&, const auto&, typename T::Real*, const typename T::Real*) {});
};

template <ShowsParameters Holder>
std::vector<checkpoint::LogicalTensor<typename Holder::Real>> logical_tensors(Holder& holder) {
  std::vector<checkpoint::LogicalTensor<typename Holder::Real>> tensors;
  holder.for_each_parameter([&](const std::string& path, const auto& facts, typename Holder::Real* data, const typename Holder::Real*) {
    tensors.push_back({path, std::vector<Index>(facts.extents.begin(), facts.extents.end()), data});
  });
  return tensors;
}

// Not collective: the holder has all of them whole. Errors: those of checkpoint::save_parameters.
template <ShowsParameters Holder>
void save(Holder& holder, const std::string& path, const checkpoint::Layout& layout, const checkpoint::Metadata& metadata = {},
          const checkpoint::SaveOptions& options = {}) {
  checkpoint::save_parameters(path, logical_tensors(holder), layout, metadata, options);
}

// Not collective. Errors: those of checkpoint::load_parameters; nothing is modified then.
template <ShowsParameters Holder>
checkpoint::Metadata load(Holder& holder, const std::string& path, const checkpoint::Layout& layout,
                          const checkpoint::LoadOptions& options = {}) {
  return checkpoint::load_parameters(path, logical_tensors(holder), layout, options);
}

// One of several ranks that hold a model together and can make it whole. Engine is one.
template <class T>
concept HoldsPart = ShowsParameters<T> && requires(T& engine) {
  engine.communicator().rank();
  engine.distribute(engine.whole_model());
};

// Writes all parameters and buffers of an engine, whole, whatever the strategy; rank 0 writes. Collective, between steps: all ranks call
// it. Memory on rank 0: the whole model. Errors: those of checkpoint::save_parameters, on every rank; the file of before then stays.
template <HoldsPart Engine>
void save(Engine& engine, const std::string& path, const checkpoint::Layout& layout, const checkpoint::Metadata& metadata = {},
          const checkpoint::SaveOptions& options = {}) {
  auto model = engine.collect({}, 0);
  run_or_fail_together(engine.communicator(), [&] {
    if (engine.communicator().rank() == 0) save(model, path, layout, metadata, options);
  });
}

// Every rank reads the file and takes what it keeps. Collective, between steps: all ranks call it. Memory: the whole model.
// Errors: those of checkpoint::load_parameters, on every rank; nothing is modified then.
template <HoldsPart Engine>
checkpoint::Metadata load(Engine& engine, const std::string& path, const checkpoint::Layout& layout,
                          const checkpoint::LoadOptions& options = {}) {
  auto model = engine.whole_model();
  checkpoint::Metadata metadata;
  run_or_fail_together(engine.communicator(), [&] { metadata = load(model, path, layout, options); });
  engine.distribute(model);
  return metadata;
}

}  // namespace weft
