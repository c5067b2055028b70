#include "data/synthetic.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "base/error.h"
#include "base/random.h"

namespace regatta {
namespace {

constexpr std::int64_t most_elements = 1 << 28;
constexpr std::int64_t most_classes = 1 << 20;
constexpr std::int64_t most_samples = std::int64_t{1} << 40;

// Grey levels (standard deviations) of what a sample is made of, and how far it is shifted. Chosen
// so that of ten classes at 3x32x32 a linear classifier tells some 80% apart and LeNet-5 97% after
// three epochs.
constexpr float pattern_levels = 40.0f;
constexpr float distraction_levels = 36.0f;
constexpr int noise_eighths = 3;         // times uniform bytes: 28 levels
constexpr float farthest_shift = 0.25f;  // of the width or height

// A smooth pattern is a matrix of Fourier coefficients, in grey levels: 1, cos and sin of the
// lowest harmonics down the image times the same across it. A row is one vector register.
constexpr std::size_t harmonics = 3;
constexpr std::size_t waves = 1 + 2 * harmonics;
constexpr std::size_t lanes = 8;
using Lanes = std::int16_t __attribute__((vector_size(lanes * sizeof(std::int16_t))));
using Bytes = std::uint8_t __attribute__((vector_size(lanes)));
using Pattern = std::array<std::array<float, waves>, waves>;  // [down][across]

// Coefficients up to 255 times waves of 127 just fit 16 bits.
constexpr int largest_coefficient = 255;
constexpr int wave_unit = 127;

constexpr std::size_t harmonic_of(std::size_t wave) { return (wave + 1) / 2; }

// Low harmonics weigh more, so that patterns are smooth; the constant is only a tint.
constexpr float weight(std::size_t down, std::size_t across) {
  const std::size_t harmonic = harmonic_of(down) + harmonic_of(across);
  return harmonic == 0 ? 0.25f : 1.0f / static_cast<float>(harmonic);
}

// The factor that gives a pattern of uniform coefficients in [-1, 1] the deviation 1.
float unit_scale() {
  float variance = 0.0f;
  for (std::size_t down = 0; down < waves; ++down)
    for (std::size_t across = 0; across < waves; ++across)
      variance += weight(down, across) * weight(down, across) / 3.0f * (down > 0 ? 0.5f : 1.0f) *
                  (across > 0 ? 0.5f : 1.0f);
  return 1.0f / std::sqrt(variance);
}

// Adds a random pattern, a function of its three coordinates alone, to `sum`.
void add_pattern(Pattern& sum, float levels, std::uint64_t seed, std::uint64_t stream,
                 std::uint64_t index) {
  static const float unit = unit_scale();
  const std::uint64_t own_seed = random_bits(seed, stream, index);
  std::uint64_t bits = 0;
  for (std::size_t k = 0; k < waves * waves; ++k) {
    if (k % 4 == 0) bits = random_bits(own_seed, stream, k);  // four coefficients of 16 bits
    const float uniform = static_cast<float>(bits & 0xffff) * (2.0f / 65535.0f) - 1.0f;
    bits >>= 16;
    sum[k / waves][k % waves] += levels * unit * weight(k / waves, k % waves) * uniform;
  }
}

// Moves a pattern by fractions of the image: each pair of cos and sin is rotated.
void shift(Pattern& pattern, float down, float across) {
  for (std::size_t harmonic = 1; harmonic <= harmonics; ++harmonic) {
    const std::size_t cosine = 2 * harmonic - 1, sine = 2 * harmonic;
    const float turn = 2.0f * std::numbers::pi_v<float> * static_cast<float>(harmonic);
    const float cos_down = std::cos(turn * down), sin_down = std::sin(turn * down);
    const float cos_across = std::cos(turn * across), sin_across = std::sin(turn * across);
    for (std::size_t k = 0; k < waves; ++k) {
      const float c = pattern[cosine][k], s = pattern[sine][k];
      pattern[cosine][k] = c * cos_down - s * sin_down;
      pattern[sine][k] = c * sin_down + s * cos_down;
    }
    for (std::size_t k = 0; k < waves; ++k) {
      const float c = pattern[k][cosine], s = pattern[k][sine];
      pattern[k][cosine] = c * cos_across - s * sin_across;
      pattern[k][sine] = c * sin_across + s * cos_across;
    }
  }
}

// Wave `wave` at `position` of `positions`, in wave_unit.
std::int16_t wave_at(std::size_t wave, std::size_t position, std::size_t positions) {
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(harmonic_of(wave) * position) /
                       static_cast<double>(positions);
  const double value = wave == 0 || wave % 2 == 1 ? std::cos(angle) : std::sin(angle);
  return static_cast<std::int16_t>(std::lround(value * wave_unit));
}

Lanes clamp(Lanes values, std::int16_t low, std::int16_t high) {
  const Lanes least = Lanes{} + low, most = Lanes{} + high;
  values = values < least ? least : values;
  return values > most ? most : values;
}

class SyntheticDataset final : public Dataset {
 public:
  SyntheticDataset(const std::string& spec, const SyntheticSize& size, Split split,
                   std::uint64_t seed)
      : seed_(seed),
        stream_(stream_of(split == Split::train ? "synth-train" : "synth-test")),
        class_stream_(stream_of("synth-class")),
        height_(static_cast<std::size_t>(size.sample.height())),
        width_(static_cast<std::size_t>(size.sample.width())),
        down_(height_),
        across_((width_ + lanes - 1) / lanes) {
    const auto channels = static_cast<std::size_t>(size.sample.channels());
    info_ = {.spec = spec,
             .sample = size.sample,
             .count = split == Split::train ? size.train_count : size.test_count,
             .classes = size.classes,
             .dtype = Dtype::u8,
             .scale = 1.0f / 255.0f,
             .mean = std::vector<float>(channels, 0.0f),
             .deviation = std::vector<float>(channels, 1.0f),
             .splits_coincide = false,
             .any_size = size.any_size};
    for (std::size_t wave = 0; wave < waves; ++wave) {
      for (std::size_t y = 0; y < height_; ++y) down_[y][wave] = wave_at(wave, y, height_);
      for (std::size_t x = 0; x < width_; ++x)
        across_[x / lanes][wave][x % lanes] = wave_at(wave, x, width_);
    }
  }

  void read(std::span<const std::int64_t> indices, std::byte* samples,
            std::int32_t* labels) const override {
    for (const std::int64_t index : indices) {
      require_index(index);
      const auto label = static_cast<std::int32_t>(index % info_.classes);
      draw(static_cast<std::uint64_t>(index), static_cast<std::uint64_t>(label),
           reinterpret_cast<std::uint8_t*>(samples));
      samples += info_.sample.elements();
      *labels++ = label;
    }
  }

 private:
  void draw(std::uint64_t index, std::uint64_t label, std::uint8_t* pixels) const {
    const std::uint64_t own_seed = random_bits(seed_, stream_, index);
    const auto between = [&](std::uint64_t what, float low, float high) {
      return low + (high - low) * random_uniform(own_seed, stream_, what);
    };
    const float shift_down = between(0, -farthest_shift, farthest_shift);
    const float shift_across = between(1, -farthest_shift, farthest_shift);
    const float contrast = between(2, 0.5f, 1.2f);
    const float brightness = between(3, 107.0f, 148.0f);
    const auto channels = static_cast<std::uint64_t>(info_.sample.channels());
    for (std::uint64_t channel = 0; channel < channels; ++channel) {
      Pattern pattern{};
      add_pattern(pattern, contrast * pattern_levels, seed_, class_stream_,
                  label * channels + channel);
      shift(pattern, shift_down, shift_across);
      add_pattern(pattern, contrast * distraction_levels, own_seed, stream_, 4 + channel);
      pattern[0][0] += brightness;
      draw_channel(pattern, random_bits(own_seed, stream_, ~channel), pixels);
      pixels += height_ * width_;
    }
  }

  // Sixteen bits an operand: half a nanosecond a pixel matters when an image has 150 thousand.
  void draw_channel(const Pattern& pattern, std::uint64_t noise, std::uint8_t* pixels) const {
    std::array<Lanes, waves> rows{};
    for (std::size_t down = 0; down < waves; ++down)
      for (std::size_t across = 0; across < waves; ++across)
        rows[down][across] = static_cast<std::int16_t>(
            std::clamp<float>(pattern[down][across], -largest_coefficient, largest_coefficient));
    for (std::size_t y = 0; y < height_; ++y) {
      Lanes line{};  // the pattern's coefficients across this line
      for (std::size_t wave = 0; wave < waves; ++wave) line += rows[wave] * down_[y][wave] >> 7;
      line = clamp(line, -largest_coefficient, largest_coefficient);
      for (std::size_t x = 0; x < width_; x += lanes) {
        Lanes level{};  // in eighths
        for (std::size_t wave = 0; wave < waves; ++wave)
          level += across_[x / lanes][wave] * line[wave] >> 4;
        // Marsaglia's xorshift: three shifts for eight bytes of noise, which need no better.
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        Bytes bytes;
        std::memcpy(&bytes, &noise, sizeof bytes);
        level += (__builtin_convertvector(bytes, Lanes) - 128) * noise_eighths;
        bytes = __builtin_convertvector(clamp(level >> 3, 0, 255), Bytes);
        std::memcpy(pixels + x, &bytes, std::min(lanes, width_ - x));
      }
      pixels += width_;
    }
  }

  std::uint64_t seed_;
  std::uint64_t stream_;        // of this split's samples
  std::uint64_t class_stream_;  // the same for both splits
  std::size_t height_, width_;
  std::vector<std::array<std::int16_t, waves>> down_;  // by line
  std::vector<std::array<Lanes, waves>> across_;       // by eight pixels
};

}  // namespace

SyntheticSize parse_synthetic(const std::string& text) {
  const auto fail = [&](const std::string& what) {
    throw InputError("synth:" + text + ": " + what + "; write synth:CxHxW/CLASSES@COUNT, such as " +
                     "synth:3x32x32/10@50000");
  };
  const std::size_t slash = text.find('/');
  const std::size_t at = text.find('@');
  if (slash == std::string::npos || at == std::string::npos || at < slash)
    fail("its form is not understood");
  const auto number = [&](std::size_t begin, std::size_t end, std::int64_t least, std::int64_t most,
                          const std::string& what) {
    std::int64_t value = 0;
    const auto [stop, code] = std::from_chars(text.data() + begin, text.data() + end, value);
    if (code != std::errc{} || stop != text.data() + end || value < least || value > most)
      fail("'" + text.substr(begin, end - begin) + "' is no number of " + what + " (" +
           std::to_string(least) + " to " + std::to_string(most) + ")");
    return value;
  };
  SyntheticSize size;
  try {
    size.sample = Shape::parse(text.substr(0, slash));
  } catch (const InputError& error) {
    fail(error.what());
  }
  if (size.sample.rank() != 3) fail("a sample has three extents");
  const std::int64_t plane = size.sample.height() * size.sample.width();
  if (plane > most_elements || size.sample.channels() > most_elements / plane)
    fail("a sample has at most " + std::to_string(most_elements) + " values");
  size.classes = static_cast<int>(number(slash + 1, at, 2, most_classes, "classes"));
  size.train_count = number(at + 1, text.size(), 1, most_samples, "samples");
  size.test_count = std::max<std::int64_t>(size.train_count / 5, 1);
  return size;
}

std::shared_ptr<const Dataset> synthetic_dataset(const std::string& spec, const SyntheticSize& size,
                                                 Split split, std::uint64_t seed) {
  return std::make_shared<SyntheticDataset>(spec, size, split, seed);
}

}  // namespace regatta
