// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <weft/data/labelled_images.hpp>
#include <weft/data/source.hpp>

#include "data/temporary_folder.hpp"

using namespace weft;
using namespace weft::data;
using weft::testing::contains;
using weft::testing::idx_bytes;
using weft::testing::message_of;

static_assert(ItemSource<LabelledImages<float>> && ItemSource<LabelledImages<double>>, "a Loader reads images");

namespace {
IdxArray idx(const std::vector<std::uint32_t>& extents, const std::string& payload, const std::string& name) {
  return IdxArray(bytes_in_memory(idx_bytes(extents, payload), name));
}
IdxArray images() { return idx({3, 1, 2}, std::string("\x00\xff\x33\x66\x01\x02", 6), "images"); }
IdxArray labels() { return idx({3}, std::string("\x00\x02\x09", 3), "labels"); }
}  // namespace

TEST_CASE_TEMPLATE("labelled_images_are_scaled_and_normalised", Real, float, double) {
  const LabelledImages<Real> source(images(), labels(), {.shape = {1, 1, 2}, .classes = 10, .scale = {0.5, 0.25}});
  CHECK(source.num_items() == 3);
  CHECK(source.inputs_per_item() == 2);
  CHECK(source.leading(3) == Leading{3, 1, 0});
  const Index items[] = {1, 0};
  Real inputs[4];
  std::int32_t targets[2];
  source.read(1, 0, items, inputs, targets);
  CHECK(inputs[0] == Real((0x33 / 255.0 - 0.5) / 0.25));
  CHECK(inputs[1] == doctest::Approx((0.4 - 0.5) / 0.25));
  CHECK(inputs[2] == Real(-2));
  CHECK(inputs[3] == Real(2));
  CHECK(targets[0] == 2);
  CHECK(targets[1] == 0);
}

TEST_CASE("labelled_images_with_channels_are_read_as_they_lie") {
  const LabelledImages<float> source(idx({1, 3, 1, 1}, "\x01\x02\x03", "rgb"), idx({1}, "\x01", "l"), {.shape = {3, 1, 1}, .classes = 2});
  const Index item = 0;
  float inputs[3];
  std::int32_t target;
  source.read(1, 0, {&item, 1}, inputs, &target);
  CHECK(inputs[2] == 3 / 255.0f);
}

TEST_CASE("labelled_images_that_do_not_match_are_errors") {
  const ImageOptions good{.shape = {1, 1, 2}, .classes = 10};
  const auto fault = [](const IdxArray& i, const IdxArray& l, const ImageOptions& options) {
    return message_of([&] { LabelledImages<float>(i, l, options); });
  };
  CHECK(contains(fault(images(), labels(), good), "nothing was thrown"));
  CHECK(contains(fault(images(), idx({2}, "ab", "labels"), good), "weft[data.count]"));
  CHECK(contains(fault(images(), idx({2}, "ab", "labels"), good), "images images) (file labels, offset 4, expected 3 labels, found 2"));
  CHECK(contains(fault(images(), labels(), {.shape = {1, 2, 2}, .classes = 10}), "file images, offset 4, expected 1 x 2 x 2, found 1 x 2"));
  CHECK(contains(fault(labels(), images(), good), "weft[data.images]"));
  CHECK(contains(fault(images(), images(), good), "are the two files exchanged?"));
  CHECK(contains(fault(images(), labels(), {.shape = {1, 1, 2}}), "ImageOptions::classes"));
  CHECK(contains(fault(images(), labels(), {.shape = {1, 1, 2}, .classes = 10, .scale = {0, 0}}), "PixelScale::deviation"));
}

TEST_CASE("labelled_images_with_a_label_beyond_the_classes_name_its_place") {
  const LabelledImages<float> source(images(), labels(), {.shape = {1, 1, 2}, .classes = 9});
  const Index item = 2;
  float inputs[2];
  std::int32_t target;
  CHECK(contains(message_of([&] {
                   source.read(1, 0, {&item, 1}, inputs, &target);
                 }),
                 "file labels, offset 10, expected a label below 9, found label 9"));
}

TEST_CASE("pixel_scale_is_the_mean_and_deviation_of_all_pixels") {
  const PixelScale scale = pixel_scale(idx({2, 1, 2}, std::string("\x00\xff\x00\xff", 4), "i"));
  CHECK(scale.mean == doctest::Approx(0.5));
  CHECK(scale.deviation == doctest::Approx(0.5));
  CHECK(pixel_scale(idx({2}, "aa", "i")).deviation == 1);
}
