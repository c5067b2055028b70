#include "data/encoded_dataset.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "data/augment_sample.h"
#include "data/image.h"
#include "data/load_clock.h"
#include "data/skips.h"

namespace regatta {
namespace {

std::string size_text(PixelSize size) {
  return std::to_string(size.height) + "x" + std::to_string(size.width);
}

class EncodedDataset final : public Dataset {
 public:
  EncodedDataset(DatasetInfo info, std::unique_ptr<const ImageStore> store,
                 const DatasetOptions& options)
      : store_(std::move(store)),
        augmentation_(options.augmentation),
        strict_(options.strict),
        blank_(options.blank_unreadable),
        skips_(blank_ ? std::numeric_limits<std::size_t>::max() : 5) {
    info_ = std::move(info);
    info_.count = store_->count();
    info_.dtype = Dtype::u8;
    info_.scale = 1.0f / 255.0f;
    info_.sample = sample_shape(options);
    normalise_as_imagenet(info_);
    resize_to_ = options.resize_to;
  }

  void read(std::span<const std::int64_t> indices, std::byte* samples,
            std::int32_t* labels) const override {
    for (const std::int64_t index : indices) {
      read_one(index, nullptr, samples, labels++);
      samples += sample_bytes(info_);
    }
  }

  void read(std::span<const Visit> visits, std::byte* samples,
            std::int32_t* labels) const override {
    for (const Visit& visit : visits) {
      read_one(visit.index, &visit.draw, samples, labels++);
      const LoadClock transforms(&LoadingTimes::transforms);
      augment_sample(augmentation_, visit.draw, info_.sample, info_.dtype, samples);
      samples += sample_bytes(info_);
    }
  }

  std::int32_t label(std::int64_t index) const override {
    require_index(index);
    return store_->label(index);
  }

  std::optional<std::int64_t> read_encoded(std::int64_t wanted, std::vector<std::byte>& image,
                                           std::int32_t* label) const override {
    require_index(wanted);
    std::int64_t found = wanted;
    const auto read_at = [&](std::int64_t index) {
      store_->fetch(index, image);
      image_header(image);
      thread_local DecodedImage decoded;  // only a whole decode tells that nothing is missing
      decode_image(image, 3, 8, {}, decoded);
      *label = store_->label(index);
      found = index;
    };
    read_or_next(
        wanted, info_.count, strict_, skips_, read_at,
        [&](std::int64_t index) { return store_->name(index); },
        [&] { store_->require_present(); });
    return found;
  }

  SkippedSamples skipped() const override { return skips_.report(); }
  std::string sample_name(std::int64_t index) const override { return store_->name(index); }
  std::int64_t bytes() const override { return store_->bytes(); }
  Json identity() const override {
    Json json = store_->identity();
    json["samples"] = info_.count;
    return json;
  }

 private:
  void fetch(std::int64_t index, std::vector<std::byte>& bytes) const {
    const LoadClock reading(&LoadingTimes::reading);
    store_->fetch(index, bytes);
  }

  // `draw` is null for a sample without augmentation.
  void read_one(std::int64_t wanted, const std::uint64_t* draw, std::byte* sample,
                std::int32_t* label) const {
    require_index(wanted);
    const auto target = reinterpret_cast<std::uint8_t*>(sample);
    thread_local std::vector<std::byte> bytes;
    std::optional<PixelSize> misfit;
    const auto read_at = [&](std::int64_t index) {
      fetch(index, bytes);
      const LoadClock decoding(&LoadingTimes::decoding);
      const ImageHeader header = image_header(bytes);
      if (one_size_ && header.size != size_of(info_.sample)) {
        misfit = header.size;
        wanted = index;
        return;
      }
      decode_sample(bytes, header, static_cast<int>(info_.sample.channels()),
                    framing(header.size, draw), target);
      *label = store_->label(index);
    };
    if (blank_) return read_or_blank(wanted, read_at, target, label);
    read_or_next(
        wanted, info_.count, strict_, skips_, read_at,
        [&](std::int64_t index) { return store_->name(index); },
        [&] { store_->require_present(); });
    if (misfit)
      throw InputError("'" + store_->name(wanted) + "' is " + size_text(*misfit) +
                       ", other images are " + size_text(size_of(info_.sample)) +
                       ": give --input " + "CxHxW, to which all are resized");
  }

  template <class Read>
  void read_or_blank(std::int64_t index, const Read& read, std::uint8_t* target,
                     std::int32_t* label) const try {
    read(index);
  } catch (const InputError& error) {
    store_->require_present();
    skips_.note(index, "'" + store_->name(index) + "': " + error.what());
    std::fill_n(target, sample_bytes(info_), std::uint8_t{0});
    *label = store_->label(index);
  }

  Framing framing(PixelSize image, const std::uint64_t* draw) const {
    if (draw && augmentation_.resized_crop)
      return resized_crop_framing(image, *augmentation_.resized_crop, *draw);
    return evaluation_framing(image, size_of(info_.sample), resize_to_);
  }

  Shape sample_shape(const DatasetOptions& options) {
    const auto& crop = augmentation_.resized_crop;
    if (options.input) {
      const Shape& input = *options.input;
      if (input.rank() != 3 || (input.channels() != 1 && input.channels() != 3))
        throw InputError("--input " + input.text() + ": images of '" + info_.spec +
                         "' are 3xHxW or 1xHxW");
      if (crop && size_of(input) != PixelSize{crop->height, crop->width})
        throw InputError("--input " + input.text() + " and a resize-crop to " +
                         size_text({crop->height, crop->width}) + " do not agree");
      return input;
    }
    if (crop) return {3, crop->height, crop->width};
    const PixelSize size = probed_size(options.undecoded);
    one_size_ = true;
    return {3, size.height, size.width};
  }

  // The size of the images, as far as a few spread over the data tell; of the first that can be
  // read, if sizes may differ.
  PixelSize probed_size(bool may_differ) const {
    constexpr std::int64_t probes = 32;
    std::optional<PixelSize> size;
    std::string first, complaint;
    std::vector<std::byte> bytes;
    for (std::int64_t i = 0; i < std::min(probes, info_.count); ++i) {
      const std::int64_t index = info_.count <= probes ? i : i * (info_.count - 1) / (probes - 1);
      try {
        store_->fetch(index, bytes);
        const PixelSize found = image_header(bytes).size;
        if (may_differ) return found;
        if (size && found != *size)
          complaint = "data '" + info_.spec + "' has images of many sizes ('" + first + "' is " +
                      size_text(*size) + ", '" + store_->name(index) + "' is " + size_text(found) +
                      "): give --input 3xHxW, to which all are resized";
        if (!size) first = store_->name(index);
        size = size.value_or(found);
      } catch (const InputError& error) {
        store_->require_present();
        if (first.empty()) first = "'" + store_->name(index) + "': " + error.what();
      }
      if (!complaint.empty()) throw InputError(complaint);
    }
    if (!size)
      throw InputError("data '" + info_.spec + "': no image can be read, such as " + first);
    return *size;
  }

  std::unique_ptr<const ImageStore> store_;
  Augmentation augmentation_;
  bool strict_, blank_;
  bool one_size_ = false;  // nothing is resized
  int resize_to_ = 0;
  mutable Skips skips_;
};

}  // namespace

void normalise_as_imagenet(DatasetInfo& info) {
  if (info.sample.channels() == 3) {
    info.mean = {0.485f, 0.456f, 0.406f};
    info.deviation = {0.229f, 0.224f, 0.225f};
  } else {
    info.mean = {0.449f};
    info.deviation = {0.226f};
  }
}

std::shared_ptr<const Dataset> encoded_dataset(DatasetInfo info,
                                               std::unique_ptr<const ImageStore> store,
                                               const DatasetOptions& options) {
  return std::make_shared<EncodedDataset>(std::move(info), std::move(store), options);
}

}  // namespace regatta
