#include "data/augment.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "data/augment_sample.h"
#include "data/colour.h"
#include "data/dataset.h"
#include "data/load_clock.h"

namespace regatta {
namespace {

constexpr int largest_side = 1 << 14;

std::vector<std::string_view> pieces_of(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  while (true) {
    const std::size_t end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc{} || stop != end) return std::nullopt;
  return value;
}

[[noreturn]] void refuse(std::string_view piece, const std::string& way_out) {
  throw InputError("augmentation '" + std::string(piece) + "': " + way_out);
}

double share_of(std::string_view piece, std::string_view text, double most) {
  const std::optional<double> value = number_of<double>(text);
  if (!value || !(*value >= 0 && *value <= most)) {
    std::ostringstream range;
    range << "'" << text << "' is not a number from 0 to " << most;
    refuse(piece, range.str());
  }
  return *value;
}

int side_of(std::string_view piece, std::string_view text) {
  const std::optional<int> value = number_of<int>(text);
  if (!value || *value < 1 || *value > largest_side)
    refuse(piece, "'" + std::string(text) + "' is not a number of pixels");
  return *value;
}

void parse_jitter(std::string_view piece, std::string_view value, Augmentation& result) {
  const std::vector<std::string_view> numbers = pieces_of(value, '/');
  if (numbers.size() != 1 && numbers.size() != 4)
    refuse(piece, "write jitter:X or jitter:BRIGHTNESS/CONTRAST/SATURATION/HUE");
  result.brightness = result.contrast = result.saturation = share_of(piece, numbers[0], 10);
  if (numbers.size() == 1) return;
  result.contrast = share_of(piece, numbers[1], 10);
  result.saturation = share_of(piece, numbers[2], 10);
  result.hue = share_of(piece, numbers[3], 0.5);
}

void parse_resized_crop(std::string_view piece, std::string_view value, Augmentation& result) {
  const std::vector<std::string_view> parts = pieces_of(value, '/');
  const std::vector<std::string_view> sides = pieces_of(parts[0], 'x');
  if (parts.size() > 2 || sides.size() > 2)
    refuse(piece, "write resize-crop:SIDE or resize-crop:HxW, with /AREA for the least area");
  Augmentation::ResizedCrop crop;
  crop.height = side_of(piece, sides.front());
  crop.width = side_of(piece, sides.back());
  if (parts.size() == 2) crop.least_area = share_of(piece, parts[1], 1);
  result.resized_crop = crop;
}

void require_sense(const Augmentation& result) {
  if (result.resized_crop && result.crop_padding > 0)
    throw InputError("augmentation: crop and resize-crop exclude each other; give one");
}

void parse_piece(std::string_view piece, Augmentation& result) {
  const std::size_t colon = piece.find(':');
  const std::string_view name = piece.substr(0, colon);
  const bool valued = colon != std::string_view::npos;
  const std::string_view value = valued ? piece.substr(colon + 1) : std::string_view();
  if (name == "crop" && valued)
    result.crop_padding = side_of(piece, value);
  else if (name == "resize-crop" && valued)
    parse_resized_crop(piece, value, result);
  else if (name == "jitter" && valued)
    parse_jitter(piece, value, result);
  else if (name == "flip" && !valued)
    result.flip = true;
  else
    refuse(piece, "use crop:PADDING, resize-crop:SIDE, flip or jitter:X");
}

std::string text_of(double value) {  // the shortest that reads back the same
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

// Stored samples, changed on the way out.
class AugmentedDataset final : public Dataset {
 public:
  AugmentedDataset(std::shared_ptr<const Dataset> inner, const Augmentation& augmentation,
                   const std::optional<Shape>& input)
      : inner_(std::move(inner)), augmentation_(augmentation) {
    info_ = inner_->info();
    const Shape& stored = inner_->info().sample;
    const auto& crop = augmentation.resized_crop;
    if (stored.rank() != 3) refuse_data("holds no images to augment");
    if (crop) info_.sample = {stored.channels(), crop->height, crop->width};
    if (input && crop && size_of(*input) != size_of(info_.sample))
      refuse_data("is to be " + input->text() + " and cropped to " + info_.sample.text());
    if (input && input->channels() == stored.channels()) info_.sample = *input;
    if (info_.dtype != Dtype::u8 && (info_.sample != stored || crop || augmentation.jitters()))
      refuse_data("holds float32; resizing and jitter change bytes: give uint8 images");
  }

  void read(std::span<const std::int64_t> indices, std::byte* samples,
            std::int32_t* labels) const override {
    if (info_.sample == inner_->info().sample) return inner_->read(indices, samples, labels);
    const LoadClock transforms(&LoadingTimes::transforms);
    const Framing framing =
        evaluation_framing(size_of(inner_->info().sample), size_of(info_.sample));
    for (const std::int64_t index : indices) {
      read_framed(index, framing, samples, labels++);
      samples += sample_bytes(info_);
    }
  }

  void read(std::span<const Visit> visits, std::byte* samples,
            std::int32_t* labels) const override {
    const LoadClock transforms(&LoadingTimes::transforms);
    for (const Visit& visit : visits) {
      if (augmentation_.resized_crop)
        read_framed(visit.index,
                    resized_crop_framing(size_of(inner_->info().sample),
                                         *augmentation_.resized_crop, visit.draw),
                    samples, labels);
      else
        read(std::span(&visit.index, 1), samples, labels);
      augment_sample(augmentation_, visit.draw, info_.sample, info_.dtype, samples);
      samples += sample_bytes(info_);
      ++labels;
    }
  }

  std::vector<std::int64_t> order(std::uint64_t seed, std::int64_t epoch,
                                  bool shuffle) const override {
    return inner_->order(seed, epoch, shuffle);
  }
  SkippedSamples skipped() const override { return inner_->skipped(); }
  std::string sample_name(std::int64_t index) const override { return inner_->sample_name(index); }
  std::int64_t bytes() const override { return inner_->bytes(); }
  Json identity() const override { return inner_->identity(); }

 private:
  [[noreturn]] void refuse_data(const std::string& why) const {
    throw InputError("data '" + info_.spec + "' " + why);
  }

  void read_framed(std::int64_t index, const Framing& framing, std::byte* sample,
                   std::int32_t* label) const {
    thread_local std::vector<std::byte> whole;
    whole.resize(sample_bytes(inner_->info()));
    inner_->read(std::span(&index, 1), whole.data(), label);
    frame_sample(inner_->info().sample, whole.data(), framing, sample);
  }

  std::shared_ptr<const Dataset> inner_;
  Augmentation augmentation_;
};

}  // namespace

Augmentation parse_augmentation(std::string_view text) {
  Augmentation result;
  if (text.empty() || text == "none") return result;
  std::vector<std::string_view> seen;
  for (const std::string_view piece : pieces_of(text, ',')) {
    const std::string_view name = piece.substr(0, piece.find(':'));
    if (std::ranges::find(seen, name) != seen.end()) refuse(piece, "it is given twice");
    seen.push_back(name);
    parse_piece(piece, result);
  }
  require_sense(result);
  return result;
}

std::string augmentation_text(const Augmentation& augmentation) {
  std::vector<std::string> pieces;
  if (augmentation.crop_padding > 0)
    pieces.push_back("crop:" + std::to_string(augmentation.crop_padding));
  if (const auto& crop = augmentation.resized_crop) {
    std::string piece =
        "resize-crop:" + std::to_string(crop->height) + "x" + std::to_string(crop->width);
    if (crop->least_area != Augmentation::ResizedCrop{}.least_area)
      piece += "/" + text_of(crop->least_area);
    pieces.push_back(piece);
  }
  if (augmentation.flip) pieces.emplace_back("flip");
  if (augmentation.jitters())
    pieces.push_back("jitter:" + text_of(augmentation.brightness) + "/" +
                     text_of(augmentation.contrast) + "/" + text_of(augmentation.saturation) + "/" +
                     text_of(augmentation.hue));
  std::string text;
  for (const std::string& piece : pieces) text += (text.empty() ? "" : ",") + piece;
  return text.empty() ? "none" : text;
}

Json to_json(const Augmentation& augmentation) {
  Json json{{"crop_padding", augmentation.crop_padding},
            {"resized_crop", nullptr},
            {"flip", augmentation.flip},
            {"brightness", augmentation.brightness},
            {"contrast", augmentation.contrast},
            {"saturation", augmentation.saturation},
            {"hue", augmentation.hue}};
  if (const auto& crop = augmentation.resized_crop)
    json["resized_crop"] = {{"height", crop->height},
                            {"width", crop->width},
                            {"area", {crop->least_area, crop->most_area}},
                            {"ratio", {crop->least_ratio, crop->most_ratio}}};
  return json;
}

Augmentation augmentation_from_json(const Json& json) {
  Augmentation result;
  try {
    result.crop_padding = json.at("crop_padding");
    result.flip = json.at("flip");
    result.brightness = json.at("brightness");
    result.contrast = json.at("contrast");
    result.saturation = json.at("saturation");
    result.hue = json.at("hue");
    if (const Json& crop = json.at("resized_crop"); !crop.is_null())
      result.resized_crop = Augmentation::ResizedCrop{
          crop.at("height"),     crop.at("width"),       crop.at("area").at(0),
          crop.at("area").at(1), crop.at("ratio").at(0), crop.at("ratio").at(1)};
  } catch (const Json::exception& error) {
    throw InputError(std::string("an augmentation does not read: ") + error.what());
  }
  const auto require = [](bool fine, const char* what) {
    if (!fine) throw InputError(std::string("an augmentation's ") + what + " makes no sense");
  };
  const auto within = [](double value, double least, double most) {
    return value >= least && value <= most;
  };
  require(within(result.crop_padding, 0, largest_side), "crop_padding");
  for (const double value : {result.brightness, result.contrast, result.saturation})
    require(within(value, 0, 10), "jitter");
  require(within(result.hue, 0, 0.5), "hue");
  if (const auto& crop = result.resized_crop) {
    require(within(crop->height, 1, largest_side) && within(crop->width, 1, largest_side),
            "resized_crop size");
    require(within(crop->least_area, 0, crop->most_area) && crop->most_area <= 1,
            "resized_crop area");
    require(crop->least_ratio > 0 && within(crop->most_ratio, crop->least_ratio, 1e3),
            "resized_crop ratio");
  }
  require_sense(result);
  return result;
}

std::shared_ptr<const Dataset> augmented(std::shared_ptr<const Dataset> inner,
                                         const Augmentation& augmentation,
                                         const std::optional<Shape>& input) {
  if (!augmentation.any() && (!input || *input == inner->info().sample)) return inner;
  return std::make_shared<AugmentedDataset>(std::move(inner), augmentation, input);
}

}  // namespace regatta
