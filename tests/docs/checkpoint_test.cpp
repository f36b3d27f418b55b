// SPDX-License-Identifier: Apache-2.0
// Saving and loading as examples/README.md shows it. Regions between marks such as [save] stand in documents: check_documents.py compares
// them.
#include <doctest/doctest.h>

#include <weft/checkpoint/layouts.hpp>
#include <weft/weft.hpp>

#include <filesystem>

namespace {

using Model = weft::Sequential<weft::Linear<3, 8>, weft::Relu, weft::Named<"head", weft::Linear<8, 2>>>;
using Train = weft::Plan<Model, weft::mesh(), weft::Batch{.global = 2, .micro = 2}>;

}  // namespace

TEST_CASE("parameters_saved_by_the_tutorial_come_back") {
  const std::string path = (std::filesystem::temp_directory_path() / "weft_docs_checkpoint_test.safetensors").string();
  auto trainer = weft::make_trainer<Train>(weft::SelfCommunicator{}, weft::AdamW{}, {}, {.seed = 1});
  auto other = weft::make_trainer<Train>(weft::SelfCommunicator{}, weft::AdamW{}, {}, {.seed = 2});
  const weft::Index elems = trainer.plan().graph.parameter_elems;
  const auto equal = [&] {
    return std::equal(trainer.engine().parameters(), trainer.engine().parameters() + elems, other.engine().parameters());
  };
  CHECK_FALSE(equal());
  // [save]
  weft::save(trainer.engine(), path, weft::checkpoint::path_layout());  // by one rank: each holds all parameters
  weft::load(other.engine(), path, weft::checkpoint::path_layout());    // by every rank
  // [save]
  CHECK(equal());
  std::filesystem::remove(path);
}
