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
  // All ranks call both, whatever the strategy.
  weft::save(trainer.engine(), path, weft::checkpoint::path_layout());  // rank 0 writes what all hold together
  weft::load(other.engine(), path, weft::checkpoint::path_layout());    // every rank reads, and keeps its part
  // [save]
  CHECK(equal());
  {
    // [collect]
    const auto model = trainer.engine().collect();  // on all ranks; collect({}, 0): on rank 0 only
    for (const auto& tensor : model.tensors) std::printf("%s: %zu numbers\n", tensor.path.c_str(), tensor.data.size());
    other.engine().distribute(model);  // into an engine with another strategy, if you like
    // [collect]
    CHECK(equal());
  }
  std::filesystem::remove(path);
}
