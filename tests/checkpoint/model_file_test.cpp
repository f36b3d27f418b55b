// SPDX-License-Identifier: Apache-2.0
#include <weft/checkpoint/model_file.hpp>

#include <doctest/doctest.h>

#include <array>

#include "data/temporary_folder.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

struct Facts {
  std::array<Index, 2> extents;
};

// What save and load need of an engine.
struct Holder {
  using Real = float;
  std::vector<float> weight{1, 2, 3, 4, 5, 6}, statistics{7, 8}, gradient = std::vector<float>(6);

  template <class Visit>
  void for_each_parameter(Visit&& visit) {
    visit(std::string("fc.weight"), Facts{{3, 2}}, weight.data(), gradient.data());
    visit(std::string("norm.mean"), Facts{{1, 2}}, statistics.data(), static_cast<float*>(nullptr));
  }
};
struct NoReal {
  template <class Visit>
  void for_each_parameter(Visit&&) {}
};
static_assert(ShowsParameters<Holder> && !ShowsParameters<NoReal> && !ShowsParameters<int>, "what can be saved");

}  // namespace

TEST_CASE("save_and_load_of_a_holder_keep_parameters_and_buffers") {
  const TemporaryFolder folder;
  const checkpoint::Layout layout{.title = "paths", .by_path = true};
  Holder holder;
  save(holder, folder.path("a"), layout, {{"step", "3"}});
  Holder other;
  other.weight.assign(6, 0), other.statistics.assign(2, 0);
  CHECK(load(other, folder.path("a"), layout).at("step") == "3");
  CHECK((other.weight == holder.weight && other.statistics == holder.statistics));
  CHECK(checkpoint::SafetensorsFile(folder.path("a")).at("fc.weight").shape == std::vector<Index>{3, 2});
}
