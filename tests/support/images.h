// Small images in the forms that data sets meet.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace regatta {

// Height x width x channels, without gaps.
struct Picture {
  int height = 0, width = 0, channels = 3;
  std::vector<std::uint8_t> pixels;

  std::uint8_t at(int y, int x, int c) const {
    return pixels[static_cast<std::size_t>((y * width + x) * channels + c)];
  }
};

// Smooth waves with an edge, different for each seed: something a JPEG can hold.
Picture picture(int height, int width, int channels, unsigned seed);

struct JpegForm {
  int quality = 90;
  int subsampling = 2;  // colour at so many times fewer pixels, each way: 1 or 2
  bool progressive = false;
  bool cmyk = false;  // the picture's four channels are stored as Adobe does, inverted
};
std::string encode_jpeg(const Picture& picture, const JpegForm& form = {});

struct PngForm {
  int bits = 8;          // 16: each byte is doubled
  bool alpha = false;    // a channel of opacity that changes from pixel to pixel
  bool palette = false;  // of grey levels
  bool interlaced = false;
};
std::string encode_png(const Picture& picture, const PngForm& form = {});

// FOLDER/SPLIT/CLASS/NNN.jpg for splits train and test: `count` images of each of `classes`.
void write_image_folder(const std::filesystem::path& folder, int classes, int count, int height,
                        int width, unsigned seed = 1);

}  // namespace regatta
