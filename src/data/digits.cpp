#include "data/digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace regatta {
namespace {

constexpr std::int64_t train_count = 60'000;
constexpr std::int64_t test_count = 10'000;
constexpr int classes = 10;
constexpr int side = 28;

// The pen's path for each digit: pairs x, y on a grid 6 wide and 8 high.
constexpr std::array<std::string_view, classes> pen_paths{
    "20 40 51 63 65 57 48 28 17 05 03 11 20",
    "12 30 38",
    "02 11 20 40 51 62 54 36 08 68",
    "01 20 40 62 44 24 44 66 48 28 07",
    "48 40 05 65",
    "60 10 04 33 54 66 48 28 07",
    "50 21 04 06 28 48 66 54 34 06",
    "00 60 28",
    "34 13 11 30 51 53 34 05 07 28 48 67 65 34",
    "62 44 24 02 20 40 62 65 48 18",
};
constexpr float middle_x = 3.0f, middle_y = 4.0f;

// How far each point around a digit is from the pen's path, tabulated once: drawing a sample is
// then one look-up a pixel however many strokes there are.
class DistanceTable {
 public:
  static constexpr int cells = 96;   // along each axis
  static constexpr int middle = 48;  // the digit's middle lies here
  static constexpr float cells_per_unit = 8.0f;
  static constexpr int steps = 256;
  static constexpr float steps_per_unit = 32.0f;

  DistanceTable() {
    for (std::size_t digit = 0; digit < classes; ++digit)
      for (int row = 0; row < cells; ++row)
        for (int column = 0; column < cells; ++column) {
          const float x = (static_cast<float>(column - middle) + 0.5f) / cells_per_unit;
          const float y = (static_cast<float>(row - middle) + 0.5f) / cells_per_unit;
          const float distance = distance_to_path(pen_paths[digit], x + middle_x, y + middle_y);
          table_[digit][index(column, row)] =
              static_cast<std::uint8_t>(std::min(distance * steps_per_unit, steps - 1.0f));
        }
  }

  // In steps. Points outside take the value at the border, which is far from any pen.
  std::size_t at(std::size_t digit, int column, int row) const {
    return table_[digit][index(std::clamp(column, 0, cells - 1), std::clamp(row, 0, cells - 1))];
  }

 private:
  static std::size_t index(int column, int row) {
    return static_cast<std::size_t>(row) * cells + static_cast<std::size_t>(column);
  }

  static float distance_to_path(std::string_view path, float x, float y) {
    const auto point = [&](std::size_t at) {
      return std::pair{static_cast<float>(path[at] - '0'), static_cast<float>(path[at + 1] - '0')};
    };
    float nearest = std::numeric_limits<float>::max();
    for (std::size_t at = 0; at + 3 < path.size(); at += 3) {
      const auto [ax, ay] = point(at);
      const auto [bx, by] = point(at + 3);
      const float dx = bx - ax, dy = by - ay;
      const float along =
          std::clamp(((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy), 0.0f, 1.0f);
      nearest = std::min(nearest, std::hypot(x - ax - along * dx, y - ay - along * dy));
    }
    return nearest;
  }

  std::array<std::array<std::uint8_t, cells * cells>, classes> table_;
};

class DigitsDataset final : public Dataset {
 public:
  DigitsDataset(const std::string& spec, Split split, std::uint64_t seed)
      : seed_(seed), stream_(stream_of(split == Split::train ? "digits-train" : "digits-test")) {
    info_ = {.spec = spec,
             .sample = {1, side, side},
             .count = split == Split::train ? train_count : test_count,
             .classes = classes,
             .dtype = Dtype::u8,
             .scale = 1.0f / 255.0f,
             .mean = {0.0f},
             .deviation = {1.0f},
             .splits_coincide = false,
             .class_names = digit_names()};
  }

  void read(std::span<const std::int64_t> indices, std::byte* samples,
            std::int32_t* labels) const override {
    for (const std::int64_t index : indices) {
      require_index(index);
      *labels = static_cast<std::int32_t>(index % classes);
      draw(static_cast<std::uint64_t>(index), static_cast<std::size_t>(*labels++),
           reinterpret_cast<std::uint8_t*>(samples));
      samples += side * side;
    }
  }

 private:
  void draw(std::uint64_t index, std::size_t digit, std::uint8_t* pixels) const {
    static const DistanceTable distances;
    const std::uint64_t own_seed = random_bits(seed_, stream_, index);
    std::uint64_t draws = 0;
    const auto between = [&](float low, float high) {
      return low + (high - low) * random_uniform(own_seed, stream_, draws++);
    };
    const float center_x = 13.5f + between(-3.5f, 3.5f), center_y = 13.5f + between(-3.5f, 3.5f);
    const float width = between(1.4f, 2.8f), height = between(1.7f, 2.7f);  // pixels a grid unit
    const float angle = between(-0.35f, 0.35f), slant = between(-0.3f, 0.3f);
    const float bend = between(0.0f, 0.7f), phase = between(0.0f, 2.0f * std::numbers::pi_v<float>);
    const float pen = between(0.7f, 1.8f);  // half its width in pixels
    const float ink = between(150.0f, 255.0f);
    const int grain = static_cast<int>(between(13.0f, 64.0f));  // 256ths of a noise byte

    // A pixel half covered by the pen is half black.
    std::array<std::uint8_t, DistanceTable::steps> shade;
    for (std::size_t step = 0; step < shade.size(); ++step) {
      const float pixels_away = static_cast<float>(step) / DistanceTable::steps_per_unit * height;
      shade[step] =
          static_cast<std::uint8_t>(ink * std::clamp(pen + 0.5f - pixels_away, 0.0f, 1.0f));
    }

    // From a step in pixels to one in table cells: turn back, then undo size and slant.
    const float cosine = std::cos(angle), sine = std::sin(angle);
    const float y_per_column = -sine / height, y_per_row = cosine / height;
    const float x_per_column = cosine / width + slant * y_per_column;
    const float x_per_row = sine / width + slant * y_per_row;
    const auto fixed = [](float units) {  // 16 bits for fractions of a cell
      return static_cast<int>(units * DistanceTable::cells_per_unit * 65536.0f);
    };
    const int x_step = fixed(x_per_column), y_step = fixed(y_per_column);
    std::uint64_t noise = random_bits(own_seed, stream_, draws);
    for (int row = 0; row < side; ++row) {
      const float dy = static_cast<float>(row) - center_y;
      const float bent = bend * std::sin(dy * 0.4f + phase);
      int x =
          (DistanceTable::middle << 16) + fixed(x_per_row * dy - x_per_column * center_x + bent);
      int y = (DistanceTable::middle << 16) + fixed(y_per_row * dy - y_per_column * center_x);
      for (int column = 0; column < side; ++column) {
        // Knuth's congruential generator; its high bits are good enough for grain.
        noise = noise * 6364136223846793005u + 1442695040888963407u;
        const int level = shade[distances.at(digit, x >> 16, y >> 16)] +
                          (static_cast<int>(noise >> 56) * grain >> 8);
        *pixels++ = static_cast<std::uint8_t>(std::min(level, 255));
        x += x_step;
        y += y_step;
      }
    }
  }

  std::uint64_t seed_;
  std::uint64_t stream_;
};

}  // namespace

std::vector<std::string> digit_names() {
  std::vector<std::string> names;
  for (int digit = 0; digit < classes; ++digit) names.push_back(std::to_string(digit));
  return names;
}

std::shared_ptr<const Dataset> digits_dataset(const std::string& spec, Split split,
                                              std::uint64_t seed) {
  return std::make_shared<DigitsDataset>(spec, split, seed);
}

}  // namespace regatta
