// SPDX-License-Identifier: Apache-2.0
// GPT-2 and Llama under Hugging Face's names, with the files in tests/golden.
#include <weft/checkpoint/layouts.hpp>

#include <doctest/doctest.h>

#include <cstring>

#include "data/temporary_folder.hpp"

#ifndef WEFT_TEST_DATA
#define WEFT_TEST_DATA "tests/golden"
#endif

using namespace weft;
using namespace weft::testing;
using namespace weft::checkpoint;

namespace {

template <class Real>
struct Model {
  std::vector<std::vector<Real>> memory;
  std::vector<LogicalTensor<Real>> tensors;

  void add(const std::string& path, std::vector<Index> shape) {
    LogicalTensor<Real> tensor{path, std::move(shape), nullptr};
    memory.emplace_back(std::size_t(tensor.elems()), Real(-77));
    tensor.data = memory.back().data();
    tensors.push_back(std::move(tensor));
  }
  const std::vector<Real>& at(std::string_view path) const {
    for (std::size_t t = 0; t < tensors.size(); ++t)
      if (tensors[t].path == path) return memory[t];
    throw std::out_of_range(std::string(path));
  }
};

template <class Real = double>
Model<Real> gpt2_tiny() {  // V 65, S 16, C 32, L 2
  Model<Real> m;
  m.add("wte.table", {65, 32}), m.add("wpe.table", {16, 32});
  for (const char* b : {"blocks.0.", "blocks.1."}) {
    const std::string block = b;
    m.add(block + "attention.norm.gain", {32}), m.add(block + "attention.norm.shift", {32});
    m.add(block + "attention.qkv.weight", {96, 32}), m.add(block + "attention.qkv.bias", {96});
    m.add(block + "attention.projection.weight", {32, 32}), m.add(block + "attention.projection.bias", {32});
    m.add(block + "mlp.norm.gain", {32}), m.add(block + "mlp.norm.shift", {32});
    m.add(block + "mlp.up.weight", {128, 32}), m.add(block + "mlp.up.bias", {128});
    m.add(block + "mlp.down.weight", {32, 128}), m.add(block + "mlp.down.bias", {32});
  }
  m.add("norm.gain", {32}), m.add("norm.shift", {32});
  return m;
}
Model<double> llama_tiny() {  // V 48, C 32, H 4, two key/value heads, D 8, width 64 within the MLP, L 2
  Model<double> m;
  m.add("wte.table", {48, 32});
  for (const char* b : {"blocks.0.", "blocks.1."}) {
    const std::string block = b;
    m.add(block + "attention.norm.gain", {32});
    m.add(block + "attention.qkv.weight", {64, 32});
    m.add(block + "attention.projection.weight", {32, 32});
    m.add(block + "mlp.norm.gain", {32});
    m.add(block + "mlp.gate_up.weight", {128, 32});
    m.add(block + "mlp.down.weight", {32, 64});
  }
  m.add("norm.gain", {32}), m.add("head.weight", {48, 32});
  return m;
}
std::string golden(const char* name) { return std::string(WEFT_TEST_DATA "/") + name; }

// Every tensor of the file whose name begins with `prefix` stands in the other file under the rest of its name, with the same bytes.
void check_same_tensors(const SafetensorsFile& file, const std::string& prefix, const SafetensorsFile& other) {
  std::size_t count = 0;
  for (const TensorView& tensor : file.tensors()) {
    if (!tensor.name.starts_with(prefix)) continue;
    const TensorView& copy = other.at(tensor.name.substr(prefix.size()));
    CHECK((copy.type == tensor.type && copy.shape == tensor.shape && std::memcmp(copy.data, tensor.data, std::size_t(tensor.bytes)) == 0));
    ++count;
  }
  CHECK(count == other.tensors().size());
}

}  // namespace

TEST_CASE("gpt2_layout_loads_hugging_face_names_and_saves_them_again") {
  const TemporaryFolder folder;
  auto model = gpt2_tiny();
  const Metadata metadata = load_parameters(golden("gpt2_tiny.safetensors"), model.tensors, gpt2_layout(), {.prefix = "param/"});
  CHECK(metadata.at("model") == "gpt2");
  const SafetensorsFile file(golden("gpt2_tiny.safetensors"));
  const auto stored = elements_of<double>(file.at("param/h.1.attn.c_attn.weight"));  // (32, 96)
  const auto& weight = model.at("blocks.1.attention.qkv.weight");                    // (96, 32)
  for (std::size_t k = 0; k < 96; ++k)
    for (std::size_t c = 0; c < 32; ++c) REQUIRE(weight[k * 32 + c] == stored[c * 96 + k]);
  CHECK(model.at("wte.table") == elements_of<double>(file.at("param/wte.weight")));

  for (const char* prefix : {"", "transformer."}) {
    save_parameters(folder.path("saved"), model.tensors, gpt2_layout(), {}, {.prefix = prefix});
    if (!*prefix) check_same_tensors(file, "param/", SafetensorsFile(folder.path("saved")));
    auto again = gpt2_tiny();
    load_parameters(folder.path("saved"), again.tensors, gpt2_layout());
    CHECK(again.memory == model.memory);
  }
  auto single = gpt2_tiny<float>();
  load_parameters(golden("gpt2_tiny.safetensors"), single.tensors, gpt2_layout(), {.prefix = "param/"});
  CHECK(single.at("wpe.table")[5] == float(model.at("wpe.table")[5]));
}

TEST_CASE("gpt2_layout_accepts_masks_and_a_tied_head_that_is_equal") {
  const TemporaryFolder folder;
  auto model = gpt2_tiny();
  load_parameters(golden("gpt2_tiny.safetensors"), model.tensors, gpt2_layout(), {.prefix = "param/"});
  save_parameters(folder.path("plain"), model.tensors, gpt2_layout(), {}, {.prefix = "transformer."});
  const SafetensorsFile plain(folder.path("plain"));
  std::vector<TensorView> tensors = plain.tensors();
  TensorView head = plain.at("transformer.wte.weight"), mask = plain.at("transformer.h.0.ln_1.bias");
  head.name = "lm_head.weight", mask.name = "transformer.h.0.attn.bias";
  tensors.push_back(head), tensors.push_back(mask);
  write_safetensors(folder.path("more"), tensors);
  auto again = gpt2_tiny();
  load_parameters(folder.path("more"), again.tensors, gpt2_layout());
  CHECK(again.memory == model.memory);

  auto untied = gpt2_tiny();
  untied.add("head.weight", {65, 32});
  load_parameters(folder.path("more"), untied.tensors, gpt2_layout());
  CHECK(untied.at("head.weight") == model.at("wte.table"));

  std::vector<double> other = model.at("wte.table");
  other[0] += 1;
  tensors[tensors.size() - 2].data = reinterpret_cast<const std::byte*>(other.data());
  write_safetensors(folder.path("more"), tensors);
  CHECK(contains(message_of([&] { load_parameters(folder.path("more"), again.tensors, gpt2_layout()); }),
                 "lm_head.weight (differs from wte.weight"));
}

TEST_CASE("llama_layout_loads_hugging_face_names_and_saves_them_again") {
  const TemporaryFolder folder;
  auto model = llama_tiny();
  load_parameters(golden("llama_tiny.safetensors"), model.tensors, llama_layout(), {.prefix = "param/"});
  const SafetensorsFile file(golden("llama_tiny.safetensors"));
  const auto& qkv = model.at("blocks.0.attention.qkv.weight");
  const auto& gate_up = model.at("blocks.1.mlp.gate_up.weight");
  const auto rows = [](const std::vector<double>& from, Index first, Index count) {
    return std::vector<double>(from.begin() + first * 32, from.begin() + (first + count) * 32);
  };
  const std::string attention = "param/model.layers.0.self_attn.", mlp = "param/model.layers.1.mlp.";
  CHECK(rows(qkv, 0, 32) == elements_of<double>(file.at(attention + "q_proj.weight")));
  CHECK(rows(qkv, 32, 16) == elements_of<double>(file.at(attention + "k_proj.weight")));
  CHECK(rows(qkv, 48, 16) == elements_of<double>(file.at(attention + "v_proj.weight")));
  CHECK(rows(gate_up, 0, 64) == elements_of<double>(file.at(mlp + "gate_proj.weight")));
  CHECK(rows(gate_up, 64, 64) == elements_of<double>(file.at(mlp + "up_proj.weight")));

  save_parameters(folder.path("saved"), model.tensors, llama_layout());
  check_same_tensors(file, "param/", SafetensorsFile(folder.path("saved")));
  auto again = llama_tiny();
  load_parameters(folder.path("saved"), again.tensors, llama_layout());
  CHECK(again.memory == model.memory);
}

TEST_CASE("llama_layout_for_another_number_of_key_value_heads_is_refused") {
  auto model = llama_tiny();
  for (auto& tensor : model.tensors)
    if (tensor.path.ends_with("qkv.weight")) tensor.shape = {48, 32};
  const std::string message =
      message_of([&] { load_parameters(golden("llama_tiny.safetensors"), model.tensors, llama_layout(), {.prefix = "param/"}); });
  CHECK(contains(message,
                 "self_attn.k_proj.weight for blocks.0.attention.qkv.weight: expected (8, 32) floating-point, found (16, 32) float64"));
}

TEST_CASE("path_layout_loads_models_by_the_names_of_the_file") {
  Model<double> mlp;
  for (int i : {1, 2, 3}) {
    const Index extents[] = {64, 48, 32, 10};
    mlp.add("fc" + std::to_string(i) + ".weight", {extents[i], extents[i - 1]});
    mlp.add("fc" + std::to_string(i) + ".bias", {extents[i]});
  }
  load_parameters(golden("mlp_tiny.safetensors"), mlp.tensors, path_layout(), {.prefix = "param/"});
  CHECK(mlp.at("fc3.bias") == elements_of<double>(SafetensorsFile(golden("mlp_tiny.safetensors")).at("param/fc3.bias")));
}

TEST_CASE("golden_files_can_all_be_read") {
  for (const char* name : {"mlp_tiny.safetensors", "cnn_tiny.safetensors", "gpt2_tiny.safetensors", "llama_tiny.safetensors"}) {
    const SafetensorsFile file(golden(name));
    CHECK(file.metadata().contains("optimizer"));
    CHECK(elements_of<double>(file.at("losses")).size() == std::size_t(std::stoi(file.metadata().at("steps"))));
    CHECK(elements_of<std::int32_t>(file.at("target")).size() > 0);
  }
}
