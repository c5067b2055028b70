#include "data/statistics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "data/augment_sample.h"
#include "data/cifar.h"

namespace regatta {
namespace {

struct Sums {
  double sum = 0, squares = 0;
};

template <class Element>
void add(const std::byte* plane, std::int64_t count, Sums& sums) {
  for (std::int64_t i = 0; i < count; ++i) {
    Element value;
    std::memcpy(&value, plane + static_cast<std::size_t>(i) * sizeof value, sizeof value);
    sums.sum += static_cast<double>(value);
    sums.squares += static_cast<double>(value) * static_cast<double>(value);
  }
}

// As many numbers as `text` has between commas; empty if it has anything else.
std::vector<float> numbers_in(std::string_view text) {
  std::vector<float> numbers;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    float value = 0;
    const auto [stop, code] = std::from_chars(text.data(), text.data() + comma, value);
    if (code != std::errc{} || stop != text.data() + comma || !std::isfinite(value)) return {};
    numbers.push_back(value);
    if (comma == text.size()) return numbers;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

PixelStatistics pixel_statistics(const Dataset& data, std::int64_t most) {
  const DatasetInfo& info = data.info();
  PixelStatistics result;
  result.samples = std::min(most, info.count);
  const std::int64_t channels = info.sample.channels();
  const std::int64_t plane = info.sample.elements() / channels;
  std::vector<Sums> sums(static_cast<std::size_t>(channels));
  std::vector<std::byte> sample(sample_bytes(info));
  for (std::int64_t i = 0; i < result.samples; ++i) {
    const std::int64_t index = i * info.count / result.samples;
    std::int32_t label = 0;
    data.read(std::span(&index, 1), sample.data(), &label);
    const std::byte* next = sample.data();
    for (Sums& each : sums) {
      if (info.dtype == Dtype::u8)
        add<std::uint8_t>(next, plane, each);
      else
        add<float>(next, plane, each);
      next += static_cast<std::size_t>(plane) * dtype_bytes(info.dtype);
    }
  }
  const double count = static_cast<double>(result.samples) * static_cast<double>(plane);
  for (const Sums& each : sums) {
    const double mean = each.sum / count;
    result.mean.push_back(mean * info.scale);
    result.deviation.push_back(std::sqrt(std::max(0.0, each.squares / count - mean * mean)) *
                               info.scale);
  }
  return result;
}

Normalisation parse_normalisation(const std::string& text, std::int64_t channels, float scale) {
  const auto wanted = static_cast<std::size_t>(channels);
  Normalisation result{scale, {}, {}};
  if (text == "none") {
    result.mean.assign(wanted, 0.0f);
    result.deviation.assign(wanted, 1.0f);
  } else if (text == "imagenet") {
    result.mean = {0.485f, 0.456f, 0.406f};
    result.deviation = {0.229f, 0.224f, 0.225f};
  } else if (text == "cifar10" || text == "cifar100") {
    const CifarForm& form = text == "cifar10" ? cifar10_form() : cifar100_form();
    result.mean = form.mean;
    result.deviation = form.deviation;
  } else if (text == "mnist") {
    result.mean = {0.1307f};
    result.deviation = {0.3081f};
  } else if (const std::size_t colon = text.find(':'); colon != std::string::npos) {
    result.mean = numbers_in(std::string_view(text).substr(0, colon));
    result.deviation = numbers_in(std::string_view(text).substr(colon + 1));
  }
  const bool positive = std::ranges::all_of(result.deviation, [](float d) { return d > 0; });
  if (result.mean.size() != wanted || result.deviation.size() != wanted || !positive)
    throw InputError("normalisation '" + text + "': write a mean and a deviation for each of " +
                     std::to_string(channels) +
                     " channels, such as 0.5,0.5,0.5:0.2,0.2,0.2, or none, imagenet, cifar10, "
                     "cifar100, mnist");
  return result;
}

}  // namespace regatta
