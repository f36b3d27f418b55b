// SPDX-License-Identifier: Apache-2.0
#include <weft/checkpoint/write_safetensors.hpp>

#include <doctest/doctest.h>

#include <sstream>

#include "checkpoint/safetensors_bytes.hpp"

using namespace weft;
using namespace weft::testing;
using checkpoint::TensorView;

namespace {

template <class Number>
TensorView view(std::string name, std::vector<Index> shape, const std::vector<Number>& numbers) {
  return {std::move(name), element_type_of<Number>, std::move(shape), reinterpret_cast<const std::byte*>(numbers.data()),
          Index(numbers.size() * sizeof(Number))};
}
std::string bytes_of_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}
std::size_t files_in(const TemporaryFolder& folder) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("."))) count += entry.exists();
  return count;
}

const std::vector<double> doubles{1.5, -2};
const std::vector<float> floats{0.25F, 3, -7};
const std::vector<std::uint8_t> octets{1, 2, 255};
const std::vector<std::int64_t> integers{-100};

}  // namespace

TEST_CASE("write_safetensors_then_read_gives_the_same") {
  const TemporaryFolder folder;
  const std::string path = folder.path("all.safetensors");
  checkpoint::write_safetensors(path, {view("o", {3}, octets), view("f", {1, 3}, floats), view("d", {2}, doubles), view("i", {}, integers)},
                                {{"format", "pt"}, {"näme", "\"quoted\"\n"}});
  const checkpoint::SafetensorsFile file(path);
  CHECK(file.metadata() == checkpoint::Metadata{{"format", "pt"}, {"näme", "\"quoted\"\n"}});
  REQUIRE(file.tensors().size() == 4);
  CHECK(checkpoint::elements_of<double>(file.at("d")) == doubles);
  CHECK(checkpoint::elements_of<float>(file.at("f")) == floats);
  CHECK(file.at("f").shape == std::vector<Index>{1, 3});
  CHECK(checkpoint::elements_of<std::uint8_t>(file.at("o")) == octets);
  CHECK(checkpoint::elements_of<std::int64_t>(file.at("i")) == integers);
  for (const TensorView& tensor : file.tensors())
    CHECK(reinterpret_cast<std::uintptr_t>(tensor.data) % std::uintptr_t(bytes_of(tensor.type)) == 0);
}

TEST_CASE("write_safetensors_in_another_order_gives_the_same_bytes") {
  const TemporaryFolder folder;
  checkpoint::write_safetensors(folder.path("a"), {view("x", {3}, octets), view("b", {3}, floats), view("a", {3}, floats)}, {{"k", "v"}});
  checkpoint::write_safetensors(folder.path("b"), {view("a", {3}, floats), view("x", {3}, octets), view("b", {3}, floats)}, {{"k", "v"}});
  CHECK(bytes_of_file(folder.path("a")) == bytes_of_file(folder.path("b")));
}

TEST_CASE("write_safetensors_of_nothing_is_a_file") {
  const TemporaryFolder folder;
  checkpoint::write_safetensors(folder.path("a"), {});
  CHECK(checkpoint::SafetensorsFile(folder.path("a")).tensors().empty());
}

TEST_CASE("write_safetensors_that_fails_leaves_the_old_file_and_nothing_else") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", "old");
  const auto fails = [&](const char* id, auto... tensors) {
    CHECK(contains(message_of([&] { checkpoint::write_safetensors(path, {tensors...}); }), id));
    CHECK(bytes_of_file(path) == "old");
    CHECK(files_in(folder) == 1);
  };
  fails("weft[checkpoint.name]", view("a", {3}, floats), view("a", {3}, octets));
  fails("weft[checkpoint.name]", view("__metadata__", {3}, floats));
  fails("weft[checkpoint.name]", view("\xff", {3}, floats));
  fails("weft[checkpoint.shape]", view("a", {4}, floats));
  fails("weft[checkpoint.shape]", view("a", {-3}, floats));
  fails("weft[checkpoint.type]", TensorView{"a", ElementType::none, {}, nullptr, 0});
  const auto halfway = [](const TensorView&, std::byte*) { throw std::runtime_error("half-way"); };
  CHECK_THROWS_WITH(checkpoint::write_safetensors(path, std::vector{view("a", {3}, floats)}, {}, halfway), "half-way");
  CHECK(bytes_of_file(path) == "old");
  CHECK(files_in(folder) == 1);
}

TEST_CASE("write_safetensors_where_it_may_not_names_the_file_and_the_reason") {
  const std::string message = message_of([] { checkpoint::write_safetensors("/no/such/folder/a.safetensors", {}); });
  CHECK(contains(message, "weft[checkpoint.write]"));
  CHECK(contains(message, "/no/such/folder/a.safetensors"));
  CHECK(contains(message, "No such file"));
}
