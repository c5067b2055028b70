#include "support/images.h"

// clang-format off
#include <cstdio>  // jpeglib.h leans on it
#include <jpeglib.h>
#include <png.h>
// clang-format on

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace regatta {

Picture picture(int height, int width, int channels, unsigned seed) {
  Picture result{height, width, channels, {}};
  const double phase = seed * 0.7;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c) {
        double value =
            128 + 60 * std::sin(phase + x * 0.19 + c) + 50 * std::cos(phase * c + y * 0.13);
        if (x > width / 2 && y > height / 3) value = 255 - value;
        result.pixels.push_back(static_cast<std::uint8_t>(std::min(std::max(value, 0.0), 255.0)));
      }
  return result;
}

std::string encode_jpeg(const Picture& picture, const JpegForm& form) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_height = static_cast<JDIMENSION>(picture.height);
  info.image_width = static_cast<JDIMENSION>(picture.width);
  info.input_components = picture.channels;
  info.in_color_space = picture.channels == 1 ? JCS_GRAYSCALE : form.cmyk ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&info);
  if (form.cmyk) jpeg_set_colorspace(&info, JCS_YCCK);
  jpeg_set_quality(&info, form.quality, TRUE);
  if (picture.channels == 3)
    info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = form.subsampling;
  if (form.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(picture.width * picture.channels));
  for (int y = 0; y < picture.height; ++y) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = picture.pixels[static_cast<std::size_t>(y) * row.size() + i];
      if (form.cmyk) row[i] = static_cast<std::uint8_t>(255 - row[i]);
    }
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&info, &rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string result(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  return result;
}

std::string encode_png(const Picture& picture, const PngForm& form) {
  std::string bytes;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &bytes,
      [](png_structp to, png_bytep data, std::size_t count) {
        static_cast<std::string*>(png_get_io_ptr(to))->append(reinterpret_cast<char*>(data), count);
      },
      [](png_structp) {});
  const bool colour = picture.channels == 3;
  int type = colour ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY;
  if (form.alpha) type |= PNG_COLOR_MASK_ALPHA;
  if (form.palette) type = PNG_COLOR_TYPE_PALETTE;
  png_set_IHDR(png, info, static_cast<png_uint_32>(picture.width),
               static_cast<png_uint_32>(picture.height), form.bits, type,
               form.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_BASE, PNG_FILTER_TYPE_BASE);
  if (form.palette) {
    png_color levels[256];
    for (int i = 0; i < 256; ++i) levels[i].red = levels[i].green = levels[i].blue = png_byte(i);
    png_set_PLTE(png, info, levels, 256);
  }
  png_write_info(png, info);
  std::vector<std::vector<png_byte>> rows(static_cast<std::size_t>(picture.height));
  std::vector<png_bytep> starts;
  for (int y = 0; y < picture.height; ++y) {
    std::vector<png_byte>& row = rows[static_cast<std::size_t>(y)];
    for (int x = 0; x < picture.width; ++x) {
      for (int c = 0; c < picture.channels; ++c)
        row.insert(row.end(), form.bits == 16 ? 2 : 1, picture.at(y, x, c));
      if (form.alpha) row.insert(row.end(), form.bits == 16 ? 2 : 1, png_byte(x * 7 + y));
    }
    starts.push_back(row.data());
  }
  png_write_image(png, starts.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

void write_image_folder(const std::filesystem::path& folder, int classes, int count, int height,
                        int width, unsigned seed) {
  for (const char* split : {"train", "test"})
    for (int label = 0; label < classes; ++label) {
      const std::filesystem::path place = folder / split / ("class" + std::to_string(label));
      std::filesystem::create_directories(place);
      for (int i = 0; i < count; ++i) {
        const std::string name = std::to_string(1000 + i) + ".jpg";
        std::ofstream(place / name, std::ios::binary)
            << encode_jpeg(picture(height, width, 3, seed++));
      }
    }
}

}  // namespace regatta
