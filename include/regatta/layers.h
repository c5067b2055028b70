// The settings of layers.
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

// What is laid around an image before a window slides over it.
struct Padding {
  std::int64_t top = 0, left = 0, bottom = 0, right = 0;

  constexpr Padding(std::int64_t all) : top(all), left(all), bottom(all), right(all) {}
  constexpr Padding(Extent both) : Padding(both.height, both.width) {}
  constexpr Padding(std::int64_t rows, std::int64_t columns)
      : top(rows), left(columns), bottom(rows), right(columns) {}
  constexpr Padding(std::int64_t above, std::int64_t before, std::int64_t below, std::int64_t after)
      : top(above), left(before), bottom(below), right(after) {}
};

// How the weights of a convolution or dense layer start out. Fans are counted as PyTorch does.
struct WeightStart {
  enum class Kind {
    usual,          // PyTorch's default: uniform within 1 / sqrt(fan in)
    he_normal_out,  // He's, with a deviation of sqrt(2 / fan out), as residual networks use
    he_normal_in,   // the same by the fan in
    he_uniform_in,  // uniform within sqrt(6 / fan in)
    normal,         // with `deviation`
  };
  Kind kind = Kind::usual;
  double deviation = 0.01;
  bool zero_bias = false;  // biases start at zero rather than as usual
};

struct ConvSettings {
  std::int64_t channels = 0;  // of the output
  Extent kernel = 1;
  Extent stride = 1;
  Padding padding = 0;
  Extent dilation = 1;
  std::int64_t groups = 1;  // the input's channels: depthwise
  bool bias = true;
  WeightStart start = {};
};

struct DenseSettings {
  bool bias = true;
  WeightStart start = {};
};

struct PoolSettings {
  Extent kernel = 2;
  std::optional<Extent> stride = {};  // default: the kernel, so that windows tile the image
  Padding padding = 0;
  Extent dilation = 1;        // of max pooling
  bool ceil = false;          // a last window that is partly outside counts too
  bool count_padding = true;  // average pooling: zeros of the padding count as values
};

struct BatchNormSettings {
  double epsilon = 1e-5;  // added to the variance
  double momentum = 0.1;  // what a batch moves the running statistics by
};

// Divides by (k + alpha * the mean square of `size` neighbouring channels) ^ beta.
struct LocalResponseNormSettings {
  std::int64_t size = 5;
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 1;
};

}  // namespace regatta
