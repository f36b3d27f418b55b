// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <weft/data/gzip/read_idx.hpp>
#include <weft/data/labelled_images.hpp>

#include "data/gzip/gzip_bytes.hpp"
#include "data/temporary_folder.hpp"

using namespace weft;
using namespace weft::data;
using weft::testing::contains;
using weft::testing::gzip_bytes;
using weft::testing::idx_bytes;
using weft::testing::message_of;
using weft::testing::TemporaryFolder;

TEST_CASE("read_idx_reads_plain_and_compressed_files_alike") {
  TemporaryFolder folder;
  const std::string bytes = idx_bytes({2, 2, 2}, "abcdefgh");
  for (const std::string& content : {bytes, gzip_bytes(bytes)}) {
    const IdxArray images = gzip::read_idx(folder.write("images", content));
    CHECK(images.num_items() == 2);
    CHECK(images.item(1)[3] == 'h');
  }
  CHECK(gzip::read_idx(folder.write("labels", gzip_bytes(idx_bytes({3}, "abc")))).item(2)[0] == 'c');
}

TEST_CASE("read_idx_of_a_damaged_compressed_file_is_an_error_that_names_it") {
  TemporaryFolder folder;
  const auto fault = [&](const std::string& bytes) {
    const std::string path = folder.write("bad.gz", bytes);
    const std::string message = message_of([&] { gzip::read_idx(path); });
    CHECK(contains(message, path));
    return message;
  };
  const std::string plain = idx_bytes({2, 2, 2}, "abcdefgh"), packed = gzip_bytes(plain);
  for (std::size_t length = 2; length < packed.size(); ++length) CHECK(contains(fault(packed.substr(0, length)), "weft[data.gzip]"));
  CHECK(contains(fault(""), "weft[data.empty]"));
  CHECK(contains(fault(gzip_bytes("")), "weft[data.empty]"));
  CHECK(contains(fault(gzip_bytes("abc")), "weft[data.size]"));
  CHECK(contains(fault(gzip_bytes("no IDX file, whatever it is")), "weft[data.header]"));
  CHECK(contains(fault(gzip_bytes(packed)), "compressed"));
  CHECK(contains(fault(gzip_bytes(plain.substr(0, 14))), "expected 16 bytes, found 14 bytes"));
  CHECK(contains(fault(gzip_bytes(plain.substr(0, 20))), "expected 8 bytes after the header, found 4 bytes"));
  CHECK(contains(fault(gzip_bytes(plain + "!")), "expected 8 bytes after the header, found more"));
  CHECK(contains(message_of([&] { gzip::read_idx(folder.path("gone.gz")); }), "weft[data.open]"));
}

TEST_CASE("read_idx_allocates_nothing_for_headers_that_lie") {
  TemporaryFolder folder;
  const std::string path = folder.write("bomb.gz", gzip_bytes(idx_bytes({0xffffffff, 0xffff, 0x1fff}, "x")));
  CHECK(contains(message_of([&] { gzip::read_idx(path); }), "promises more than so small a file can hold"));
  const std::string large = folder.write("large.gz", gzip_bytes(idx_bytes({1000, 100}, std::string(100000, '\0'))));
  CHECK(gzip::read_idx(large).num_items() == 1000);
  const std::string message = message_of([&] { gzip::read_idx(large, {.most_bytes = 99999}); });
  CHECK(contains(message, "weft[data.gzip]"));
  CHECK(contains(message, "expected at most 99999 bytes, found 100000 bytes"));
}

TEST_CASE("fashion_mnist_is_read_where_it_is_installed") {
  const std::string folder = "/usr/share/datasets/fashion-mnist/";
  if (!std::filesystem::exists(folder + "train-images-idx3-ubyte.gz")) {
    MESSAGE("skipped: the Debian package dataset-fashion-mnist is not installed");
    return;
  }
  const LabelledImages<float> test(gzip::read_idx(folder + "t10k-images-idx3-ubyte.gz"),
                                   gzip::read_idx(folder + "t10k-labels-idx1-ubyte.gz"), {.shape = {1, 28, 28}, .classes = 10});
  CHECK(test.num_items() == 10000);
  int counts[10] = {};
  for (Index i = 0; i < test.num_items(); ++i) ++counts[test.labels().item(i)[0]];
  for (int count : counts) CHECK(count == 1000);
  const PixelScale scale = pixel_scale(test.images());
  CHECK(scale.mean == doctest::Approx(0.2868).epsilon(1e-3));
  CHECK(scale.deviation == doctest::Approx(0.3524).epsilon(1e-3));
}
