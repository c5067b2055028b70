#include "data/array_dataset.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"
#include "data/load_clock.h"

namespace regatta {
namespace {

// A label beyond this is a mistake: it would ask for a network with as many outputs.
constexpr std::int64_t most_classes = 1 << 20;

class ArrayDataset final : public Dataset {
 public:
  ArrayDataset(DatasetInfo info, std::string samples, std::vector<std::int32_t> labels)
      : samples_(std::move(samples)), labels_(std::move(labels)) {
    info_ = std::move(info);
    sample_bytes_ = static_cast<std::size_t>(info_.sample.elements()) * dtype_bytes(info_.dtype);
  }

  void read(std::span<const std::int64_t> indices, std::byte* samples,
            std::int32_t* labels) const override {
    const LoadClock reading(&LoadingTimes::reading);
    for (const std::int64_t index : indices) {
      require_index(index);
      const auto row = static_cast<std::size_t>(index);
      std::memcpy(samples, samples_.data() + row * sample_bytes_, sample_bytes_);
      samples += sample_bytes_;
      *labels++ = labels_[row];
    }
  }

  std::int64_t bytes() const override { return std::ssize(samples_) + std::ssize(labels_) * 4; }

  Json identity() const override {
    const std::string_view labels(reinterpret_cast<const char*>(labels_.data()),
                                  labels_.size() * sizeof(std::int32_t));
    return {{"samples", info_.count},
            {"sample size", info_.sample.text()},
            {"pixels", crc32c(samples_)},
            {"labels", crc32c(labels)}};
  }

 private:
  std::string samples_;
  std::vector<std::int32_t> labels_;
  std::size_t sample_bytes_ = 0;
};

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t extent : shape)
    text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

std::int64_t integer_at(const NpyArray& array, std::size_t index) {
  const auto load = [&]<class T>(T value) {
    std::memcpy(&value, array.bytes.data() + index * sizeof value, sizeof value);
    return static_cast<std::int64_t>(value);
  };
  switch (array.dtype) {
    case Dtype::u8:
      return load(std::uint8_t{});
    case Dtype::i32:
      return load(std::int32_t{});
    default:
      return load(std::int64_t{});
  }
}

std::vector<std::int32_t> checked_labels(const FileArray& labels) {
  const NpyArray& array = labels.array;
  if (array.dtype != Dtype::u8 && array.dtype != Dtype::i32 && array.dtype != Dtype::i64)
    throw InputError("'" + labels.file + "' holds fractions; labels are whole numbers");
  if (array.shape.size() != 1)
    throw InputError("'" + labels.file + "' has shape " + shape_text(array.shape) +
                     "; labels are a plain list");
  std::vector<std::int32_t> values(static_cast<std::size_t>(array.shape[0]));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t label = integer_at(array, i);
    if (label < 0 || label >= most_classes)
      throw InputError("'" + labels.file + "' has label " + std::to_string(label) + " at sample " +
                       std::to_string(i) + "; labels count classes from 0 to at most " +
                       std::to_string(most_classes - 1));
    values[i] = static_cast<std::int32_t>(label);
  }
  return values;
}

Shape sample_shape(const FileArray& images) {
  std::vector<std::int64_t> extents = images.array.shape;
  if (extents.size() == 3) extents.insert(extents.begin() + 1, 1);  // one channel
  if (extents.size() != 4)
    throw InputError("'" + images.file + "' has shape " + shape_text(images.array.shape) +
                     "; images are N x C x H x W or N x H x W");
  if (std::ranges::find(extents, 0) != extents.end())
    throw InputError("'" + images.file + "' has shape " + shape_text(images.array.shape) +
                     ": there is nothing in it");
  return Shape(std::span<const std::int64_t>(extents).subspan(1));
}

// No picture is so low or narrow, and no other number of channels is stored so often.
bool looks_like_nhwc(const std::vector<std::int64_t>& shape) {
  const auto image_channels = [](std::int64_t extent) { return extent == 1 || extent == 3; };
  return shape.size() == 4 && image_channels(shape[3]) && !image_channels(shape[1]) &&
         shape[1] > 4 && shape[2] > 4;
}

}  // namespace

void to_nchw(FileArray& images, std::optional<Layout> stored) {
  NpyArray& array = images.array;
  if (stored == Layout::nhwc && array.shape.size() != 4)
    throw InputError("'" + images.file + "' has shape " + shape_text(array.shape) +
                     "; as nhwc, images are N x H x W x C");
  if (stored ? stored != Layout::nhwc : !looks_like_nhwc(array.shape)) return;
  const auto extent = [&](int axis) {
    return static_cast<std::size_t>(array.shape[static_cast<std::size_t>(axis)]);
  };
  const std::size_t pixels = extent(1) * extent(2), channels = extent(3);
  const std::size_t element = dtype_bytes(array.dtype);
  std::string turned(array.bytes.size(), '\0');
  char* target = turned.data();
  for (std::size_t n = 0; n < extent(0); ++n)
    for (std::size_t c = 0; c < channels; ++c)
      for (std::size_t i = 0; i < pixels; ++i, target += element)
        std::memcpy(target, array.bytes.data() + ((n * pixels + i) * channels + c) * element,
                    element);
  array.bytes = std::move(turned);
  array.shape = {array.shape[0], array.shape[3], array.shape[1], array.shape[2]};
}

std::shared_ptr<const Dataset> array_dataset(DatasetInfo info, FileArray images,
                                             const FileArray& labels) {
  info.dtype = images.array.dtype;
  if (info.dtype != Dtype::u8 && info.dtype != Dtype::f32)
    throw InputError("'" + images.file + "' holds neither uint8 nor float32; convert its images");
  info.sample = sample_shape(images);
  info.count = images.array.shape[0];
  std::vector<std::int32_t> values = checked_labels(labels);
  if (static_cast<std::int64_t>(values.size()) != info.count)
    throw InputError("'" + images.file + "' has " + std::to_string(info.count) + " images, '" +
                     labels.file + "' has " + std::to_string(values.size()) + " labels");
  info.classes = std::max(info.classes, *std::ranges::max_element(values) + 1);
  info.scale = info.dtype == Dtype::u8 ? 1.0f / 255.0f : 1.0f;
  const auto channels = static_cast<std::size_t>(info.sample.channels());
  if (info.mean.empty()) info.mean.assign(channels, 0.0f);
  if (info.deviation.empty()) info.deviation.assign(channels, 1.0f);
  return std::make_shared<ArrayDataset>(std::move(info), std::move(images.array.bytes),
                                        std::move(values));
}

}  // namespace regatta
