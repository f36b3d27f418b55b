// SPDX-License-Identifier: Apache-2.0
#include <weft/checkpoint/layouts.hpp>

#include <doctest/doctest.h>

#include "data/temporary_folder.hpp"

using namespace weft;
using namespace weft::testing;
using namespace weft::checkpoint;

namespace {

// Parameters with memory of their own: a distinct number at every place.
template <class Real>
struct Parameters {
  std::vector<std::vector<Real>> memory;
  std::vector<LogicalTensor<Real>> tensors;

  void add(const std::string& path, std::vector<Index> shape, double first = 1) {
    LogicalTensor<Real> tensor{path, std::move(shape), nullptr};
    memory.emplace_back(std::size_t(tensor.elems()));
    for (std::size_t e = 0; e < memory.back().size(); ++e) memory.back()[e] = Real(first + double(e));
    tensor.data = memory.back().data();
    tensors.push_back(std::move(tensor));
  }
  Parameters blank() const {
    Parameters out;
    for (const auto& tensor : tensors) out.add(tensor.path, tensor.shape, -1e6);
    return out;
  }
};

const Layout transposing{
    .title = "test",
    .rules = {{"b.{i}.w", "layer.{i}.w", true}, {"b.{i}.v", "layer.{i}.{x,y}.v"}, {"b.{i}.u", "layer.{i}.{q,k,v}", false, "b.{i}.w"}},
    .spare = {{"junk.{i}"}, {"copy", "layer.0.w"}},
    .prefixes = {"model."}};

Parameters<float> small() {
  Parameters<float> p;
  p.add("b.0.w", {2, 3});
  p.add("b.0.v", {4, 2}, 100);
  p.add("b.0.u", {7}, 200);  // 3 rows by the columns of w, then 2 and 2
  return p;
}
template <class Real>
std::string load_complaint(const std::string& path, const Parameters<Real>& like, const Layout& layout, const LoadOptions& options = {}) {
  auto target = like.blank();
  const auto before = target.memory;
  const std::string message = message_of([&] { load_parameters(path, target.tensors, layout, options); });
  CHECK(target.memory == before);
  return message;
}

}  // namespace

TEST_CASE("save_parameters_transposes_and_cuts_as_the_layout_says") {
  const TemporaryFolder folder;
  auto p = small();
  save_parameters(folder.path("a"), p.tensors, transposing, {{"who", "test"}});
  const SafetensorsFile file(folder.path("a"));
  CHECK(file.tensors().size() == 6);
  CHECK(file.at("layer.0.w").shape == std::vector<Index>{3, 2});
  CHECK(elements_of<float>(file.at("layer.0.w")) == std::vector<float>{1, 4, 2, 5, 3, 6});
  CHECK(elements_of<float>(file.at("layer.0.x.v")) == std::vector<float>{100, 101, 102, 103});
  CHECK(elements_of<float>(file.at("layer.0.y.v")) == std::vector<float>{104, 105, 106, 107});
  CHECK(file.at("layer.0.y.v").shape == std::vector<Index>{2, 2});
  CHECK(elements_of<float>(file.at("layer.0.q")) == std::vector<float>{200, 201, 202});
  CHECK(elements_of<float>(file.at("layer.0.k")) == std::vector<float>{203, 204});
  CHECK(elements_of<float>(file.at("layer.0.v")) == std::vector<float>{205, 206});

  auto target = p.blank();
  CHECK(load_parameters(folder.path("a"), target.tensors, transposing).at("who") == "test");
  CHECK(target.memory == p.memory);
}

TEST_CASE_TEMPLATE("load_parameters_converts_between_types", Real, float, double) {
  using Other = std::conditional_t<std::is_same_v<Real, float>, double, float>;
  const TemporaryFolder folder;
  Parameters<Real> p;
  p.add("w", {2, 2}, 0.5);
  p.add("scalar", {}, 3);
  p.add("none", {0, 4});
  save_parameters(folder.path("a"), p.tensors, path_layout());
  CHECK(SafetensorsFile(folder.path("a")).at("w").type == element_type_of<Real>);
  Parameters<Other> other;
  for (const auto& tensor : p.tensors) other.add(tensor.path, tensor.shape, -9);
  load_parameters(folder.path("a"), other.tensors, path_layout());
  CHECK(other.memory[0] == std::vector<Other>{0.5, 1.5, 2.5, 3.5});
  CHECK(other.memory[1] == std::vector<Other>{3});
  for (ElementType type : {ElementType::f16, ElementType::bf16, ElementType::f32, ElementType::f64}) {
    save_parameters(folder.path("b"), p.tensors, path_layout(), {}, {.type = type});
    auto target = p.blank();
    load_parameters(folder.path("b"), target.tensors, path_layout());
    CHECK(target.memory == p.memory);
  }
}

TEST_CASE("load_parameters_with_a_prefix_looks_at_those_tensors_only") {
  const TemporaryFolder folder;
  auto p = small();
  save_parameters(folder.path("a"), p.tensors, transposing, {}, {.prefix = "param/"});
  auto target = p.blank();
  load_parameters(folder.path("a"), target.tensors, transposing, {.prefix = "param/"});
  CHECK(target.memory == p.memory);
  CHECK(contains(load_complaint(folder.path("a"), p, transposing, {.prefix = "grad/"}), "missing: grad/layer.0.w (3, 2) for b.0.w"));
  CHECK(contains(load_complaint(folder.path("a"), p, transposing), "unexpected: param/layer.0."));
}

TEST_CASE("load_parameters_takes_a_known_prefix_off_and_refuses_a_name_with_and_without_it") {
  const TemporaryFolder folder;
  auto p = small();
  save_parameters(folder.path("a"), p.tensors, transposing, {}, {.prefix = "model."});
  auto target = p.blank();
  load_parameters(folder.path("a"), target.tensors, transposing);
  CHECK(target.memory == p.memory);

  Parameters<float> both;
  for (const char* name : {"w", "model.w"}) both.add(name, {1});
  save_parameters(folder.path("b"), both.tensors, path_layout());
  Parameters<float> one;
  one.add("w", {1});
  CHECK(contains(load_complaint(folder.path("b"), one, Layout{.title = "t", .prefixes = {"model."}, .by_path = true}), "as w once more"));
}

TEST_CASE("load_parameters_lists_all_that_is_wrong_in_one_error_and_modifies_nothing") {
  const TemporaryFolder folder;
  Parameters<float> stored, wanted;
  for (int i = 0; i < 13; ++i) stored.add("extra." + std::to_string(i), {1}), wanted.add("absent." + std::to_string(i), {1});
  stored.add("a", {2, 3}), wanted.add("a", {3, 2});
  stored.add("b", {2}), wanted.add("b", {2});
  save_parameters(folder.path("a"), stored.tensors, path_layout());
  const std::string message = load_complaint(folder.path("a"), wanted, path_layout());
  CHECK(contains(message, "weft[checkpoint.mismatch]"));
  CHECK(contains(message, "wrong shape or type: a for a: expected (3, 2) floating-point, found (2, 3) float32"));
  CHECK(contains(message, "missing: absent.0 (1) for absent.0"));
  CHECK(contains(message, "unexpected: extra.0, extra.1, extra.10"));
  CHECK(contains(message, " and 3 more; unexpected"));
  CHECK(contains(message, folder.path("a")));
}

TEST_CASE("load_parameters_of_integers_is_refused") {
  const TemporaryFolder folder;
  const std::int64_t number = 1;
  write_safetensors(folder.path("a"), {{"w", ElementType::i64, {1}, reinterpret_cast<const std::byte*>(&number), 8}});
  Parameters<float> wanted;
  wanted.add("w", {1});
  CHECK(contains(load_complaint(folder.path("a"), wanted, path_layout()), "expected (1) floating-point, found (1) int64"));
}

TEST_CASE("load_parameters_of_a_number_that_does_not_fit_is_refused_and_modifies_nothing") {
  const TemporaryFolder folder;
  Parameters<double> p;
  p.add("a", {2});
  p.add("b", {2}, 1e200);
  save_parameters(folder.path("a"), p.tensors, path_layout());
  Parameters<float> wanted;
  wanted.add("a", {2}), wanted.add("b", {2});
  const std::string message = load_complaint(folder.path("a"), wanted, path_layout());
  CHECK(contains(message, "weft[checkpoint.range]"));
  CHECK(contains(message, "tensor b, element 0"));
  CHECK(contains(message_of([&] { save_parameters(folder.path("c"), p.tensors, path_layout(), {}, {.type = ElementType::f32}); }),
                 "weft[checkpoint.range]"));
  CHECK_FALSE(std::filesystem::exists(folder.path("c")));
  CHECK(contains(message_of([&] { save_parameters(folder.path("c"), p.tensors, path_layout(), {}, {.type = ElementType::i32}); }),
                 "weft[checkpoint.type]"));
}

TEST_CASE("load_parameters_passes_over_spare_tensors_if_they_are_as_they_should") {
  const TemporaryFolder folder;
  auto p = small();
  save_parameters(folder.path("plain"), p.tensors, transposing);
  const SafetensorsFile plain(folder.path("plain"));
  // Loads the same file with one more tensor in it.
  const auto load_with = [&](const char* name, const char* bytes_of_tensor, bool changed = false) {
    std::vector<TensorView> tensors = plain.tensors();
    TensorView more = plain.at(bytes_of_tensor);
    std::vector<std::byte> bytes(more.data, more.data + more.bytes);
    if (changed) bytes[0] ^= std::byte{1};
    more.name = name, more.data = bytes.data();
    tensors.push_back(more);
    write_safetensors(folder.path("more"), tensors);
    auto target = p.blank();
    const std::string message = message_of([&] { load_parameters(folder.path("more"), target.tensors, transposing); });
    CHECK((target.memory == p.memory) == (message == "nothing was thrown"));
    return message;
  };
  CHECK(load_with("junk.7", "layer.0.q") == "nothing was thrown");
  CHECK(load_with("copy", "layer.0.w") == "nothing was thrown");
  CHECK(contains(load_with("copy", "layer.0.w", true), "unexpected: copy (differs from layer.0.w"));
  CHECK(contains(load_with("junk", "layer.0.q"), "unexpected: junk"));
}

TEST_CASE("layout_that_does_not_fit_the_model_is_refused_for_saving_and_loading") {
  const TemporaryFolder folder;
  Parameters<float> p;
  p.add("unknown", {2});
  p.add("b.0.v", {3, 2});  // not even
  p.add("b.1.w", {8});     // transposed
  p.add("b.2.u", {4});     // no b.2.w
  p.add("b.3.w", {1, 9});
  p.add("b.3.u", {4});  // fewer rows than the first part
  p.add("b.3.u", {4});  // twice
  const std::string message = message_of([&] { save_parameters(folder.path("a"), p.tensors, transposing); });
  CHECK(contains(message, "weft[checkpoint.layout]"));
  CHECK(contains(message, "unknown (2) has no name in this layout"));
  CHECK(contains(message, "b.0.v (3, 2) cannot be cut into 2 tensors"));
  CHECK(contains(message, "b.1.w (8) is transposed in this layout"));
  CHECK(contains(message, "b.2.u (4) is cut by b.2.w"));
  CHECK(contains(message, "b.3.u (4) cannot be cut into 3 tensors, the first of 9 rows"));
  CHECK(contains(message, "b.3.u stands twice"));
  CHECK_FALSE(std::filesystem::exists(folder.path("a")));
  write_safetensors(folder.path("a"), {});
  CHECK(contains(load_complaint(folder.path("a"), p, transposing), "weft[checkpoint.layout]"));
}
