// SPDX-License-Identifier: Apache-2.0
// Work that may fail on some ranks only (files, mostly): all ranks learn of it before anyone goes on.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "weft/base/config.hpp"
#include "weft/base/error.hpp"
#include "weft/base/text.hpp"

namespace weft {

// Runs body() on this rank; returns when it has ended on all. Collective. Errors: what body threw, on every rank the one of the lowest rank
// that failed, with its id, naming the rank. Cost: one all-gather of an integer.
template <class Communicator, class Body>
void run_or_fail_together(Communicator& comm, Body&& body) {
  constexpr int none = 0, failed = 1;
  std::string id, text;
  std::int64_t state = none;
  try {
    body();
  } catch (const Error& error) { state = failed, id = error.id(), text = error.message(); } catch (const std::exception& error) {
    state = failed, id = "run.failed", text = error.what();
  }
  std::vector<std::int64_t> states(std::size_t(comm.size()));
  comm.all_gather(states.data(), &state, 1);
  for (int rank = 0; rank < comm.size(); ++rank) {
    if (states[std::size_t(rank)] == none) continue;
    std::int64_t lengths[2] = {std::int64_t(id.size()), std::int64_t(text.size())};
    comm.broadcast(lengths, 2, rank);
    const std::string both = id + text;
    std::vector<std::uint8_t> bytes(std::size_t(lengths[0] + lengths[1]));
    if (rank == comm.rank()) std::memcpy(bytes.data(), both.data(), both.size());
    comm.broadcast(bytes.data(), Index(bytes.size()), rank);
    const std::string all(bytes.begin(), bytes.end());
    throw Error(all.substr(0, std::size_t(lengths[0])), text_of("rank ", rank, ": ", all.substr(std::size_t(lengths[0]))));
  }
}

}  // namespace weft
