// SPDX-License-Identifier: Apache-2.0
// Saves and loads what an engine holds.
#pragma once

#include "weft/checkpoint/parameters.hpp"

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

// Called by one rank, between steps: with data parallelism every rank holds all parameters. Errors: those of checkpoint::save_parameters.
template <ShowsParameters Holder>
void save(Holder& holder, const std::string& path, const checkpoint::Layout& layout, const checkpoint::Metadata& metadata = {},
          const checkpoint::SaveOptions& options = {}) {
  checkpoint::save_parameters(path, logical_tensors(holder), layout, metadata, options);
}

// Called by every rank, between steps. Errors: those of checkpoint::load_parameters; nothing is modified then.
template <ShowsParameters Holder>
checkpoint::Metadata load(Holder& holder, const std::string& path, const checkpoint::Layout& layout,
                          const checkpoint::LoadOptions& options = {}) {
  return checkpoint::load_parameters(path, logical_tensors(holder), layout, options);
}

}  // namespace weft
