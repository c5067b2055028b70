// The settings of layers that slide a window over an image.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace regatta {

struct Extent {
  std::int64_t height = 0;
  std::int64_t width = 0;

  constexpr Extent(std::int64_t both) : height(both), width(both) {}  // so that .kernel = 3 reads
  constexpr Extent(std::int64_t rows, std::int64_t columns) : height(rows), width(columns) {}
  constexpr std::int64_t area() const { return height * width; }
  std::string text() const { return std::to_string(height) + "x" + std::to_string(width); }
};

struct ConvSettings {
  std::int64_t channels = 0;  // of the output
  Extent kernel = 1;
  Extent stride = 1;
  Extent padding = 0;
  bool bias = true;
  bool init_normal_fan_out = false;  // He's normal initialisation, as residual networks use
};

struct PoolSettings {
  Extent kernel = 2;
  std::optional<Extent> stride = {};  // default: the kernel, so that windows tile the image
  Extent padding = 0;
};

}  // namespace regatta
