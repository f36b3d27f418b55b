// SPDX-License-Identifier: Apache-2.0
// The items of an image classifier: pixels scaled and normalised, and a label.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "weft/data/idx.hpp"
#include "weft/shape/features.hpp"

namespace weft::data {

struct ImageShape {
  Index channels = 1, height = 0, width = 0;
};

// Mean and deviation of pixels scaled to [0, 1].
struct PixelScale {
  double mean = 0, deviation = 1;
};

// Of all pixels of a file, for instance the training images. Cost: reads the file once.
inline PixelScale pixel_scale(const IdxArray& images) {
  Index counts[256] = {};
  for (Index i = 0; i < images.num_items(); ++i)
    for (std::uint8_t pixel : images.item(i)) ++counts[pixel];
  const double total = double(images.num_items()) * double(images.item_bytes());
  double mean = 0, variance = 0;
  for (int p = 0; p < 256; ++p) mean += double(counts[p]) * (p / 255.0) / total;
  for (int p = 0; p < 256; ++p) variance += double(counts[p]) * (p / 255.0 - mean) * (p / 255.0 - mean) / total;
  return {mean, variance > 0 ? std::sqrt(variance) : 1};
}

struct ImageOptions {
  ImageShape shape{};  // what the model takes
  Index classes = 0;   // how many labels it knows
  PixelScale scale{};  // pixels become (value / 255 − mean) / deviation
};

// Source of a Loader. Item i: pixels (C·H·W) as Real and one label as int32. Cheap to copy.
template <class Real>
class LabelledImages {
 public:
  static_assert(std::is_floating_point_v<Real>,
                "weft[data.images]: pixels become floating-point numbers; use LabelledImages<float> or <double>");
  using Input = Real;

  // Errors: weft[data.images] for a file of another shape, weft[data.count] for another number of labels than images.
  LabelledImages(IdxArray images, IdxArray labels, const ImageOptions& options)
      : images_(std::move(images)), labels_(std::move(labels)), options_(options) {
    const auto& [channels, height, width] = options.shape;
    const IdxHeader& found = images_.header();
    const bool flat = found.num_extents == 3 && channels == 1 && found.extents[1] == height && found.extents[2] == width;
    const bool planes = found.num_extents == 4 && found.extents[1] == channels && found.extents[2] == height && found.extents[3] == width;
    if (!flat && !planes) {
      std::string extents;
      for (int i = 1; i < found.num_extents; ++i) extents += (i > 1 ? " x " : "") + std::to_string(found.extents[i]);
      file_fault("data.images", "the images have another shape than the model takes; change ImageOptions::shape and the model, or the file",
                 images_.file(), 4, text_of(channels, " x ", height, " x ", width), found.num_extents == 1 ? "single numbers" : extents);
    }
    if (labels_.header().num_extents != 1)
      file_fault("data.images", "labels are one number an image; are the two files exchanged?", labels_.file(), 3, "1 extent",
                 text_of(labels_.header().num_extents, " extents"));
    if (labels_.num_items() != images_.num_items())
      file_fault("data.count", text_of("images and labels differ in number; they belong to different sets (images ", images_.file(), ")"),
                 labels_.file(), 4, text_of(images_.num_items(), " labels"), text_of(labels_.num_items()));
    if (options.classes < 1)
      throw Error("data.images", text_of("ImageOptions::classes says how many labels the model knows (given ", options.classes, ")"));
    if (!(options.scale.deviation > 0)) throw Error("data.images", "PixelScale::deviation divides, so it is positive");
    for (int p = 0; p < 256; ++p) values_[p] = Real((p / 255.0 - options.scale.mean) / options.scale.deviation);
  }

  Index num_items() const { return images_.num_items(); }
  const IdxArray& images() const { return images_; }
  const IdxArray& labels() const { return labels_; }
  const std::string& name() const { return images_.file(); }
  Index inputs_per_item() const { return images_.item_bytes(); }
  Index targets_per_item() const { return 1; }
  Leading leading(Index batch) const { return {batch, 1, 0}; }

  // inputs: (items, C·H·W), targets: (items). Errors: weft[data.label] for a label that is not below `classes`.
  void read(std::uint64_t, Index, std::span<const Index> items, Real* inputs, std::int32_t* targets) const {
    for (Index item : items) {
      for (std::uint8_t pixel : images_.item(item)) *inputs++ = values_[pixel];
      const Index label = labels_.item(item)[0];
      if (label >= options_.classes)
        file_fault("data.label",
                   "a label is not one of the model's classes; enlarge ImageOptions::classes and the model, or check the file",
                   labels_.file(), labels_.offset_of(item), text_of("a label below ", options_.classes), text_of("label ", label));
      *targets++ = std::int32_t(label);
    }
  }

 private:
  IdxArray images_, labels_;
  ImageOptions options_;
  Real values_[256];
};

}  // namespace weft::data
