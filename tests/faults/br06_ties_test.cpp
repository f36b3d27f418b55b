// SPDX-License-Identifier: Apache-2.0
// BR-06, ties lost while building or loading: two layers share one weight. It is counted once, has one optimizer state and one copy in a
// file, gets the gradients of both, and all that hold it hold the same bits, whatever is sharded, after updates and after loading.
#include <weft/checkpoint/layouts.hpp>
#include <weft/checkpoint/model_file.hpp>
#include <weft/run/check_copies.hpp>

#include "data/temporary_folder.hpp"
#include "layer/split_cases.hpp"

using namespace weft;
using namespace weft::test;
using weft::testing::TemporaryFolder;

namespace {

// y = w (w x): the gradient is 2 w x.
using Scalar = Sequential<Named<"first", Linear<1, 1, Bias::no>>, Tied<"first.weight", Linear<1, 1, Bias::no>>>;
static_assert(lower<Scalar>().num_parameters() == 1, "a tie is one parameter");

// A table for tokens and classes, for stages and tensor ranks.
using Text = Sequential<Named<"table", Embedding<13, 8>>, Repeat<2, Residual<LayerNorm<8>, Linear<8, 8>>>,
                        Tied<"table.table", Linear<8, 13, Bias::no>>>;

// Calls body(engine) on all ranks; Fresh engines have the layers' own initial values.
template <class Model, class Loss, Index tensor = 1, class MeshType, class Body>
void on_ranks(const MeshType& strategy, const Batch& batch, Body&& body) {
  const PlanData plan = plan_at_start<Model, Recipe<Fp64, Loss, AdamW>>(strategy, batch);
  launch(int(plan.strategy.ranks), [&](ThreadCommunicator& comm) {
    using TheEngine = EngineOf<Model, Loss, double, AdamW, ThreadCommunicator>;
    TheEngine engine(plan, model_code<typename TheEngine::Kernels, double, Model, Loss, tensor>(), comm, AdamW{.rate = 0.1},
                     {.poison = true});
    body(engine);
  });
}

std::mutex mutex;  // doctest's checks from one rank at a time

// All elements that ranks hold of a tied parameter, by place: as many values as there are differing ones.
template <class Engine>
void add_held(Engine& engine, std::map<Index, std::set<double>>& values, Index& holders) {
  const std::lock_guard lock(mutex);
  engine.state().for_each_held([&](int p, Index, const ParameterSite& site, const auto& held) {
    if (p != 0) return;
    holders += held.elems > 0;
    for_each_stretch(site, engine.plan().graph.tensor_ranks, engine.place().tensor, [&](Index own, Index whole, Index count) {
      for (Index i = std::max(own, held.first); i < std::min(own + count, held.first + held.elems); ++i)
        values[whole + i - own].insert(held.data[i - held.first]);
    });
  });
}

// Row by row; targets play no part in the sum of outputs.
void give_two(MicroBatchInput<double>& micro) { give(2)(micro); }

template <class MeshType>
void one_scalar(const MeshType& strategy) {
  const TemporaryFolder folder;
  const std::string file = folder.path("scalar");
  const Index data = lower_strategy(strategy).data();
  std::map<Index, std::set<double>> loaded, updated;
  Index holders = 0, ignored = 0;
  double written = 0;
  on_ranks<Scalar, SumLoss>(strategy, {.global = data, .micro = 1}, [&](auto& engine) {
    // Set through one holder: what the file holds of the first layer.
    auto model = engine.whole_model();
    REQUIRE(model.tensors.size() == 1);
    model.tensors[0].data = {3};
    engine.distribute(model);
    save(engine, file, checkpoint::path_layout());
    model.tensors[0].data = {100};
    engine.distribute(model);
    load(engine, file, checkpoint::path_layout());
    add_held(engine, loaded, ignored);
    // Read through the other.
    const double* y = engine.predict(give_two);
    if (y) {
      const std::lock_guard lock(mutex);
      CHECK(*y == 3 * 3 * 2);
    }
    engine.communicator().barrier();
    const StepResult result = engine.step(1, give_two, 0.1);
    {
      const std::lock_guard lock(mutex);
      CHECK(result.gradient_norm == doctest::Approx(2 * 3 * 2).epsilon(1e-12));  // of both uses
    }
    add_held(engine, updated, holders);
    check_copies(engine);
    save(engine, file, checkpoint::path_layout());
    const auto collected = engine.collect(Collected::first_state, -1);
    const std::lock_guard lock(mutex);
    REQUIRE(collected.tensors.size() == 1);
    CHECK(collected.tensors[0].data.size() == 1);
    CHECK(collected.tensors[0].data[0] == doctest::Approx(0.1 * 12).epsilon(1e-12));  // Adam's first moment, once
  });
  CHECK(loaded.at(0) == std::set<double>{3});
  REQUIRE(updated.at(0).size() == 1);  // the same bits for all
  CHECK(*updated.at(0).begin() < 3);
  CHECK(holders >= 1);
  const checkpoint::SafetensorsFile saved(file);
  REQUIRE(saved.tensors().size() == 1);
  CHECK(saved.tensors()[0].elems() == 1);
  std::memcpy(&written, saved.tensors()[0].data, sizeof written);
  CHECK(written == *updated.at(0).begin());
}

constexpr Batch text_batch{.global = 8, .micro = 2, .sequence = 3};

// Trains from a file and gives what is saved then.
template <Index tensor = 1, class MeshType>
std::map<std::string, std::vector<double>> train_text(const MeshType& strategy, const std::string& from, const std::string& to) {
  std::map<Index, std::set<double>> held;
  Index holders = 0;
  const SplitCase how{.items = 8, .micro = 2, .sequence = 3};
  on_ranks<Text, SoftmaxCrossEntropy<>, tensor>(strategy, text_batch, [&](auto& engine) {
    if (from.empty())
      save(engine, to + ".first", checkpoint::path_layout());
    else
      load(engine, from, checkpoint::path_layout());
    GraphData whole = engine.plan().graph;
    if (tensor == 1) whole.whole_output = whole.output;
    const Index per_rank = 8 / engine.plan().strategy.data();
    for (int step = 0; step < 3; ++step)
      engine.step(
          per_rank / 2, [&](auto& micro) { fill_by_place(micro, whole, how, engine.place().data * per_rank + micro.number * 2); }, 0.01);
    add_held(engine, held, holders);
    save(engine, to, checkpoint::path_layout());
  });
  for (const auto& element : held) CHECK_MESSAGE(element.second.size() == 1, "element " << element.first);
  CHECK(held.size() == 13 * 8);
  const checkpoint::SafetensorsFile saved(to);
  std::map<std::string, std::vector<double>> out;
  for (const auto& tensor_view : saved.tensors()) {
    std::vector<double>& data = out[tensor_view.name];
    data.resize(std::size_t(tensor_view.elems()));
    std::memcpy(data.data(), tensor_view.data, data.size() * sizeof(double));
  }
  return out;
}

}  // namespace

TEST_CASE("br06_one_scalar_for_two_layers_however_it_is_kept") {
  one_scalar(mesh());
  for (Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::parameters}) {
    INFO("shard " << int(shard));
    one_scalar(mesh(DataParallel{.ranks = 2, .shard = shard}));
    one_scalar(mesh(DataParallel{.ranks = 2, .shard = shard}, Pipeline<>{.stages = 2}));  // the layers on two stages
  }
  one_scalar(mesh(Pipeline<schedule::ZeroBubbleH1>{.stages = 2}));
}

TEST_CASE("br06_a_table_for_tokens_and_classes_is_one_in_memory_and_in_files") {
  const TemporaryFolder folder;
  const auto one = train_text(mesh(), "", folder.path("one"));
  const std::string first = folder.path("one.first");
  CHECK(one.size() == 1 + 2 * 4);  // the table; two blocks of gain, bias, weight, bias
  const PlanData plan = plan_at_start<Text, Recipe<Fp64, SoftmaxCrossEntropy<>, AdamW>>(mesh(), text_batch);
  CHECK(plan.graph.num_parameters() == 13 * 8 + 2 * (8 + 8 + 64 + 8));
  const auto same = [&](const auto& found, const char* what) {
    REQUIRE(found.size() == one.size());
    for (const auto& [name, data] : one) compare_numbers(found.at(name), data, 1e-10, std::string(what) + ", " + name);
  };
  const std::string to = folder.path("other");
  same(train_text(mesh(DataParallel{.ranks = 2, .shard = Shard::parameters}), first, to), "sharded");
  same(train_text(mesh(Pipeline<>{.stages = 2}), first, to), "two stages");
  same(train_text(mesh(DataParallel{.ranks = 2, .shard = Shard::parameters}, Pipeline<>{.stages = 2}), first, to), "sharded, two stages");
  same(train_text<2>(mesh(TensorParallel{.ranks = 2}), first, to), "two tensor ranks");
  same(train_text<2>(mesh(DataParallel{.ranks = 2, .shard = Shard::optimizer}, ModelParallel<>{.pipeline = 2, .tensor = 2}), first, to),
       "all axes");
}
