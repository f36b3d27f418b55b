// SPDX-License-Identifier: Apache-2.0
#include <weft/checkpoint/read_safetensors.hpp>

#include <doctest/doctest.h>

#include "checkpoint/safetensors_bytes.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

// What reading these bytes complains about.
std::string complaint(std::string_view header, std::string_view payload = "", std::int64_t length = -1) {
  const std::string bytes = safetensors_bytes(header, payload, length);
  return message_of([&] { read_bytes(bytes); });
}

// A file with the one entry "a", as the text behind `"a":`.
std::string complaint_of(const std::string& entry, std::string_view payload = "12345678") {
  return complaint(R"({"a":)" + entry + "}", payload);
}

}  // namespace

TEST_CASE("safetensors_with_tensors_gives_them_by_name") {
  const auto file = read_bytes(safetensors_bytes(
      R"({"z":{"dtype":"I32","shape":[2],"data_offsets":[0,8]},"__metadata__":{"by":"hand"},"a":{"shape":[2,1,1],"data_offsets":[8,10],"dtype":"U8"}}  )",
      std::string("\1\0\0\0\2\0\0\0\3\4", 10)));
  REQUIRE(file.tensors().size() == 2);
  CHECK((file.tensors()[0].name == "a" && file.tensors()[1].name == "z"));
  CHECK(file.metadata().at("by") == "hand");
  CHECK(file.at("a").shape == std::vector<Index>{2, 1, 1});
  CHECK(checkpoint::elements_of<int>(file.at("z")) == std::vector<int>{1, 2});
  CHECK(checkpoint::elements_of<float>(file.at("a")) == std::vector<float>{3, 4});
  CHECK(file.find("b") == nullptr);
  CHECK(contains(message_of([&] { file.at("b"); }), "weft[checkpoint.missing]"));
}

TEST_CASE("safetensors_without_tensors_is_empty") {
  CHECK(read_bytes(safetensors_bytes("{}", "")).tensors().empty());
  CHECK(read_bytes(safetensors_bytes(R"({"__metadata__":{}})", "")).tensors().empty());
}

TEST_CASE("safetensors_scalar_and_empty_tensors_are_tensors") {
  const auto file = read_bytes(
      safetensors_bytes(R"({"b":{"dtype":"F32","shape":[3,0],"data_offsets":[0,0]},"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
                        std::string("\0\0\x80\x3f", 4)));
  CHECK(file.at("b").elems() == 0);
  CHECK(checkpoint::elements_of<double>(file.at("s")) == std::vector<double>{1});
}

TEST_CASE("safetensors_file_that_is_cut_off_is_refused_with_file_place_and_sizes") {
  const TemporaryFolder folder;
  CHECK(contains(message_of([&] { checkpoint::SafetensorsFile(folder.path("none")); }), "weft[data.open]"));
  const std::string empty = folder.write("empty", "");
  const std::string message = message_of([&] { checkpoint::SafetensorsFile{empty}; });
  CHECK(contains(message, "weft[checkpoint.size]"));
  CHECK(contains(message, "file " + empty + ", offset 0, expected at least 8 bytes, found 0 bytes"));
  CHECK(contains(message_of([] { read_bytes("1234567"); }), "expected at least 8 bytes, found 7 bytes"));
  CHECK(contains(complaint("{}", "", 3), "given.safetensors, offset 0, expected a header of at most 2 bytes, found 3 bytes"));
  CHECK(contains(complaint("{}", "", std::int64_t(1) << 62), "weft[checkpoint.size]"));
  CHECK(contains(message_of([] { read_bytes(std::string(8, '\xff') + "{}"); }), "found 18446744073709551615 bytes"));
}

TEST_CASE("safetensors_cut_at_every_byte_is_refused_every_time") {
  const std::string whole = safetensors_bytes(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", "123");
  CHECK_NOTHROW(read_bytes(whole));
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK(contains(message_of([&] { read_bytes(whole.substr(0, size)); }), "weft[checkpoint."));
}

TEST_CASE("safetensors_header_that_is_not_json_is_refused_with_its_place") {
  CHECK(contains(complaint(""), "weft[checkpoint.header]"));
  CHECK(contains(complaint("[]"), "expected '{'"));
  CHECK(contains(complaint(" {}"), "expected '{'"));
  CHECK(contains(complaint("{\"a\":"), "weft[checkpoint.header]"));
  CHECK(contains(complaint("{},"), "offset 10, expected JSON"));
  CHECK(contains(complaint("{\"\xff\":1}"), "UTF-8"));
  CHECK(contains(complaint(std::string("{\"a\":") + std::string(100000, '[')), "weft[checkpoint.header]"));
  CHECK(contains(complaint("{\"a\":1e999}"), "weft[checkpoint.header]"));
}

TEST_CASE("safetensors_name_that_stands_twice_is_refused") {
  const std::string entry = R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  CHECK(contains(complaint("{" + entry + "," + entry + "}", "1"), "weft[checkpoint.name]"));
  CHECK(contains(complaint("{" + entry + R"(,"\u0061":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}})", "1"), "weft[checkpoint.name]"));
  CHECK(contains(complaint(R"({"__metadata__":{"x":"1","x":"2"}})"), "weft[checkpoint.name]"));
  CHECK(contains(complaint(R"({"__metadata__":{},"__metadata__":{}})"), "weft[checkpoint.name]"));
}

TEST_CASE("safetensors_entry_that_is_not_a_tensor_is_refused") {
  for (const char* entry : {"1",
                            "null",
                            "true",
                            "\"x\"",
                            "[]",
                            "1.5",
                            "-1",
                            R"({"dtype":"U8","shape":[8]})",
                            R"({"dtype":"U8","data_offsets":[0,8]})",
                            R"({"shape":[8],"data_offsets":[0,8]})",
                            R"({"dtype":"U8","shape":8,"data_offsets":[0,8]})",
                            R"({"dtype":"U8","shape":[-8],"data_offsets":[0,8]})",
                            R"({"dtype":"U8","shape":[8.0],"data_offsets":[0,8]})",
                            R"({"dtype":"U8","shape":["8"],"data_offsets":[0,8]})",
                            R"({"dtype":"U8","shape":[[8]],"data_offsets":[0,8]})",
                            R"({"dtype":"U8","shape":[8],"data_offsets":[8]})",
                            R"({"dtype":"U8","shape":[8],"data_offsets":[0,8,8]})",
                            R"({"dtype":"U8","shape":[8],"data_offsets":[-1,8]})",
                            R"({"dtype":1,"shape":[8],"data_offsets":[0,8]})",
                            R"({"dtype":"U8","shape":[8],"data_offsets":[0,8],"x":1})",
                            R"({"dtype":"U8","dtype":"U8","shape":[8],"data_offsets":[0,8]})",
                            R"({"dtype":"U8","shape":[8],"data_offsets":[0,8],"shape":[8]})",
                            R"({"dtype":"U8","shape":[8],"data_offsets":{}})",
                            R"({"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,8]})",
                            R"({"dtype":"U8","shape":[8],"data_offsets":[0,99999999999999999999]})"}) {
    CAPTURE(entry);
    CHECK(contains(complaint_of(entry), "weft[checkpoint.header]"));
  }
  CHECK(contains(complaint(R"({"__metadata__":{"x":1}})"), "metadata are texts"));
  CHECK(contains(complaint(R"({"__metadata__":[]})"), "weft[checkpoint.header]"));
}

TEST_CASE("safetensors_element_type_that_is_not_known_is_refused_with_those_that_are") {
  const std::string message = complaint_of(R"({"dtype":"F128","shape":[1],"data_offsets":[0,8]})");
  CHECK(contains(message, "weft[checkpoint.type]"));
  CHECK(contains(message, "expected one of F64, F32"));
  CHECK(contains(message, "offset 9,"));  // where "a" stands
}

TEST_CASE("safetensors_bytes_that_are_not_those_of_shape_and_type_are_refused") {
  CHECK(contains(complaint_of(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"), "expected 12 bytes for (3) float32, found 8 bytes"));
  CHECK(contains(complaint_of(R"({"dtype":"F32","shape":[],"data_offsets":[0,8]})"), "weft[checkpoint.shape]"));
  CHECK(contains(complaint_of(R"({"dtype":"F64","shape":[4611686018427387904,4],"data_offsets":[0,8]})"),
                 "expected a size that can be counted"));
  CHECK(contains(complaint_of(R"({"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,8]})"),
                 "weft[checkpoint.shape]"));  // 2^64 is 0 mod 2^64
  CHECK(contains(complaint_of(R"({"dtype":"U8","shape":[9223372036854775807,0],"data_offsets":[0,8]})"), "weft[checkpoint.shape]"));
}

TEST_CASE("safetensors_places_that_overlap_leave_holes_or_lie_outside_are_refused") {
  const auto two = [](const char* a, const char* b) {
    return complaint(std::string(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)") + a +
                         R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}",
                     "12345678");
  };
  CHECK(two("[0,4]", "[4,8]") == "nothing was thrown");
  CHECK(two("[4,8]", "[0,4]") == "nothing was thrown");
  CHECK(contains(two("[0,4]", "[3,7]"), "overlap"));
  CHECK(contains(two("[0,4]", "[0,4]"), "overlap"));
  CHECK(contains(two("[0,4]", "[5,9]"), "outside"));
  CHECK(contains(two("[0,4]", "[4,9]"), "outside"));
  CHECK(contains(two("[1,5]", "[5,8]"), "hole"));
  CHECK(contains(two("[0,4]", "[18446744073709551612,18446744073709551615]"), "outside"));
  CHECK(contains(two("[0,4]", "[8,4]"), "end before they begin"));
  CHECK(contains(complaint_of(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})"), "behind the last tensor"));
  CHECK(contains(complaint("{}", "x"), "behind the last tensor"));
}
