// SPDX-License-Identifier: Apache-2.0
// BR-21, one rank fails in a checkpoint: every rank gets one error with that rank's text, and the file of before stays.
#include <weft/checkpoint/layouts.hpp>
#include <weft/checkpoint/model_file.hpp>

#include "data/temporary_folder.hpp"
#include "layer/split_cases.hpp"

using namespace weft;
using namespace weft::test;
using weft::testing::TemporaryFolder;

namespace {

using Model = Sequential<Linear<4, 6>, Gelu, Linear<6, 2>>;

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What every rank of three was told by body(engine, rank), and how launch ended.
struct Told {
  std::vector<std::string> ranks = std::vector<std::string>(3);
  std::string all = "nothing was thrown";
};
template <class Body>
Told told(Shard shard, Body&& body) {
  Told out;
  const PlanData plan = plan_at_start<Model, Recipe<Fp64, SoftmaxCrossEntropy<>, Sgd>>(mesh(DataParallel{.ranks = 3, .shard = shard}),
                                                                                       {.global = 3, .micro = 1});
  out.all = weft::testing::message_of([&] {
    launch(3, [&](ThreadCommunicator& comm) {
      using TheEngine = EngineOf<Model, SoftmaxCrossEntropy<>, double, Sgd, ThreadCommunicator>;
      TheEngine engine(plan, model_code<typename TheEngine::Kernels, double, Model, SoftmaxCrossEntropy<>>(), comm, Sgd{.rate = 0.1});
      try {
        body(engine, comm.rank());
      } catch (const Error& error) {
        out.ranks[std::size_t(comm.rank())] = error.what();
        throw;
      }
    });
  });
  return out;
}

template <class Engine>
void step(Engine& engine) {
  engine.step(
      1,
      [](auto& micro) {
        micro.leading = {1, 1, 0};
        for (int i = 0; i < 4; ++i) micro.values()[i] = i;
        micro.integer_targets()[0] = 1;
      },
      0.1);
}

}  // namespace

TEST_CASE("br21_a_folder_that_cannot_be_written_is_an_error_on_all_ranks") {
  const TemporaryFolder folder;
  const std::string file = folder.path("model"), nowhere = folder.path("no such folder/model");
  for (Shard shard : {Shard::none, Shard::parameters}) {
    const Told found = told(shard, [&](auto& engine, int) {
      save(engine, file, checkpoint::path_layout());
      const std::string before = bytes_of(file);
      step(engine);
      std::string text;
      try {
        save(engine, nowhere, checkpoint::path_layout());
      } catch (const Error& error) { text = error.what(); }
      if (bytes_of(file) != before || before.empty()) throw Error("test.file", "the file of before has changed");
      step(engine);  // the ranks are together still
      save(engine, file, checkpoint::path_layout());
      if (bytes_of(file) == before) throw Error("test.file", "the second save did nothing");
      throw Error("test.told", text);
    });
    for (const std::string& text : found.ranks) {
      CHECK_MESSAGE(text.find("weft[checkpoint.write]: rank 0:") != text.npos, text);
      CHECK_MESSAGE(text.find("no such folder") != text.npos, text);
    }
  }
}

TEST_CASE("br21_a_file_that_one_rank_does_not_see_is_an_error_on_all_ranks") {
  const TemporaryFolder folder;
  const std::string file = folder.path("model");
  for (Shard shard : {Shard::none, Shard::parameters}) {
    const Told found = told(shard, [&](auto& engine, int rank) {
      save(engine, file, checkpoint::path_layout());
      step(engine);
      const auto before = engine.collect();
      std::string text;
      try {
        load(engine, rank == 2 ? file + ".hidden" : file, checkpoint::path_layout());
      } catch (const Error& error) { text = error.what(); }
      const auto behind = engine.collect();
      for (std::size_t t = 0; t < before.tensors.size(); ++t)
        if (before.tensors[t].data != behind.tensors[t].data) throw Error("test.parameters", "a load that failed has modified something");
      load(engine, file, checkpoint::path_layout());
      if (engine.collect().tensors[0].data == before.tensors[0].data) throw Error("test.parameters", "the second load did nothing");
      throw Error("test.told", text);
    });
    for (const std::string& text : found.ranks) {
      CHECK_MESSAGE(text.find("weft[data.open]") != text.npos, text);
      CHECK_MESSAGE(text.find("rank 2:") != text.npos, text);
      CHECK_MESSAGE(text.find(".hidden") != text.npos, text);
    }
  }
}

// The others go on training, or leave: nobody waits for ever, and what was there stays.
TEST_CASE("br21_a_save_that_only_one_rank_calls_is_an_error") {
  const TemporaryFolder folder;
  const std::string file = folder.path("model");
  std::string before;
  told(Shard::none, [&](auto& engine, int rank) {
    save(engine, file, checkpoint::path_layout());
    if (rank == 0) before = bytes_of(file);
  });
  REQUIRE(!before.empty());
  for (Shard shard : {Shard::none, Shard::parameters}) {
    const Told training = told(shard, [&](auto& engine, int rank) {
      step(engine);
      if (rank == 0)
        save(engine, file, checkpoint::path_layout());
      else
        step(engine);
    });
    for (const std::string& text : training.ranks) CHECK_MESSAGE(text.find("weft[comm.") == 0, text);
    CHECK(training.all.find("weft[comm.") == 0);
    CHECK(bytes_of(file) == before);
    const Told leaving = told(shard, [&](auto& engine, int rank) {
      step(engine);
      if (rank == 0) save(engine, file, checkpoint::path_layout());
    });
    CHECK(leaving.ranks[0].find("weft[comm.rank_left]") == 0);
    CHECK(leaving.all.find("weft[comm.rank_left]") == 0);
    CHECK(bytes_of(file) == before);
  }
}
