#include "data/colour.h"

#include <algorithm>
#include <cmath>

namespace regatta {
namespace {

std::uint8_t clamped(float value) {
  return static_cast<std::uint8_t>(std::clamp(value, 0.0f, 255.0f));  // towards zero
}

// The three planes of a colour image; no planes if it is not one.
struct Planes {
  std::int64_t pixels = 0;
  std::uint8_t *red = nullptr, *green = nullptr, *blue = nullptr;

  Planes(const Shape& sample, std::uint8_t* first) {
    if (sample.channels() != 3) return;
    pixels = sample.height() * sample.width();
    red = first;
    green = first + pixels;
    blue = green + pixels;
  }
  std::uint8_t grey(std::int64_t i) const {
    const auto value = 0.2989f * static_cast<float>(red[i]) +
                       0.587f * static_cast<float>(green[i]) + 0.114f * static_cast<float>(blue[i]);
    return static_cast<std::uint8_t>(value);
  }
};

struct Hsv {
  float hue, saturation, value;
};

Hsv to_hsv(float r, float g, float b) {
  const float most = std::max({r, g, b}), least = std::min({r, g, b});
  const bool grey = most == least;
  const float range = most - least;
  const float divisor = grey ? 1.0f : range;
  const float rc = (most - r) / divisor, gc = (most - g) / divisor, bc = (most - b) / divisor;
  float hue = 0;
  if (most == r)
    hue = bc - gc;
  else if (most == g)
    hue = 2.0f + rc - bc;
  else
    hue = 4.0f + gc - rc;
  return {std::fmod(hue / 6.0f + 1.0f, 1.0f), range / (grey ? 1.0f : most), most};
}

std::uint8_t to_byte(float value) {  // from [0, 1]
  return static_cast<std::uint8_t>(value * (256.0f - 1e-3f));
}

}  // namespace

void adjust_brightness(const Shape& sample, double factor, std::uint8_t* pixels) {
  const auto f = static_cast<float>(factor);
  for (std::int64_t i = 0; i < sample.elements(); ++i)
    pixels[i] = clamped(f * static_cast<float>(pixels[i]));
}

void adjust_contrast(const Shape& sample, double factor, std::uint8_t* pixels) {
  std::int64_t sum = 0, count = sample.elements();
  if (const Planes planes(sample, pixels); planes.pixels > 0) {
    count = planes.pixels;
    for (std::int64_t i = 0; i < count; ++i) sum += planes.grey(i);
  } else {
    for (std::int64_t i = 0; i < count; ++i) sum += pixels[i];
  }
  const float mean = static_cast<float>(sum) / static_cast<float>(count);
  const auto f = static_cast<float>(factor), rest = static_cast<float>(1.0 - factor);
  for (std::int64_t i = 0; i < sample.elements(); ++i)
    pixels[i] = clamped(f * static_cast<float>(pixels[i]) + rest * mean);
}

void adjust_saturation(const Shape& sample, double factor, std::uint8_t* pixels) {
  const Planes planes(sample, pixels);
  const auto f = static_cast<float>(factor), rest = static_cast<float>(1.0 - factor);
  for (std::int64_t i = 0; i < planes.pixels; ++i) {
    const float grey = rest * static_cast<float>(planes.grey(i));
    for (std::uint8_t* plane : {planes.red, planes.green, planes.blue})
      plane[i] = clamped(f * static_cast<float>(plane[i]) + grey);
  }
}

void adjust_hue(const Shape& sample, double turn, std::uint8_t* pixels) {
  const Planes planes(sample, pixels);
  for (std::int64_t i = 0; i < planes.pixels; ++i) {
    auto [hue, s, v] = to_hsv(static_cast<float>(planes.red[i]) / 255.0f,
                              static_cast<float>(planes.green[i]) / 255.0f,
                              static_cast<float>(planes.blue[i]) / 255.0f);
    hue += static_cast<float>(turn);
    hue -= std::floor(hue);
    const float sector = std::floor(hue * 6.0f);
    const float f = hue * 6.0f - sector;
    const float p = std::clamp(v * (1.0f - s), 0.0f, 1.0f);
    const float q = std::clamp(v * (1.0f - s * f), 0.0f, 1.0f);
    const float t = std::clamp(v * (1.0f - s * (1.0f - f)), 0.0f, 1.0f);
    const float reds[]{v, q, p, p, t, v}, greens[]{t, v, v, q, p, p}, blues[]{p, p, t, v, v, q};
    const int which = static_cast<int>(sector) % 6;
    planes.red[i] = to_byte(reds[which]);
    planes.green[i] = to_byte(greens[which]);
    planes.blue[i] = to_byte(blues[which]);
  }
}

}  // namespace regatta
