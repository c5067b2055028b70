#include <png.h>

#include <array>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "data/image_codecs.h"

namespace regatta {
namespace {

constexpr int largest_side = 1 << 20;
constexpr png_alloc_size_t largest_chunk = 64u << 20;

// libpng's state, and its errors as jumps: it is C, and nothing may be thrown through it.
class PngReader {
 public:
  explicit PngReader(std::span<const std::byte> bytes) : left_(bytes) {
    png_ = png_create_read_struct(
        PNG_LIBPNG_VER_STRING, this,
        [](png_structp png, png_const_charp text) {
          auto& self = *static_cast<PngReader*>(png_get_error_ptr(png));
          std::snprintf(self.message_.data(), self.message_.size(), "it is a damaged PNG image: %s",
                        text);
          png_longjmp(png, 1);
        },
        [](png_structp, png_const_charp) {});
    info_ = png_ ? png_create_info_struct(png_) : nullptr;
    if (!info_) throw std::bad_alloc();
    png_set_user_limits(png_, largest_side, largest_side);
    png_set_chunk_malloc_max(png_, largest_chunk);
    png_set_chunk_cache_max(png_, 64);
    png_set_read_fn(png_, this, [](png_structp png, png_bytep target, std::size_t count) {
      auto& self = *static_cast<PngReader*>(png_get_io_ptr(png));
      if (count > self.left_.size()) png_error(png, "it is cut off");
      std::memcpy(target, self.left_.data(), count);
      self.left_ = self.left_.subspan(count);
    });
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  // Runs `steps`, which keep nothing that needs destroying; throws what libpng complained of.
  template <class Steps>
  void run(Steps steps) {
    if (setjmp(png_jmpbuf(png_)) == 0) {
      steps(png_, info_);
      return;
    }
    throw InputError(message_.data());
  }

 private:
  std::span<const std::byte> left_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::array<char, 256> message_{};
};

// Whatever it is, it comes out as 8-bit grey or red, green, blue and a byte that says nothing.
void ask_for(png_structp png, png_infop info, bool colour) {
  png_set_expand(png);
  png_set_scale_16(png);
  png_set_strip_alpha(png);
  if (colour) {
    png_set_gray_to_rgb(png);
    png_set_filler(png, 0xff, PNG_FILLER_AFTER);
  }
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
}

}  // namespace

PixelSize png_size(std::span<const std::byte> bytes) {
  PngReader reader(bytes);
  PixelSize size;
  reader.run([&](png_structp png, png_infop info) {
    png_read_info(png, info);
    size = {static_cast<int>(png_get_image_height(png, info)),
            static_cast<int>(png_get_image_width(png, info))};
  });
  return size;
}

void decode_png(std::span<const std::byte> bytes, int channels, DecodedImage& image) {
  PngReader reader(bytes);
  bool colour = channels == 3;
  reader.run([&](png_structp png, png_infop info) {
    png_read_info(png, info);
    image.size = {static_cast<int>(png_get_image_height(png, info)),
                  static_cast<int>(png_get_image_width(png, info))};
    colour = colour || (png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR) != 0;
    ask_for(png, info, colour);
  });
  image.box = {0, 0, image.size.height, image.size.width};
  image.pixel_bytes = colour ? 4 : 1;
  const auto rows = static_cast<std::size_t>(image.size.height);
  const auto row_bytes =
      static_cast<std::size_t>(image.size.width) * static_cast<std::size_t>(image.pixel_bytes);
  image.pixels.resize(rows * row_bytes);
  std::vector<png_bytep> row_starts(rows);
  for (std::size_t y = 0; y < rows; ++y) row_starts[y] = image.pixels.data() + y * row_bytes;
  reader.run([&](png_structp png, png_infop info) {
    if (png_get_rowbytes(png, info) != row_bytes) png_error(png, "its rows have another length");
    png_read_image(png, row_starts.data());
    png_read_end(png, nullptr);  // checks the last data's checksum
  });
  if (channels == 1 && colour) {
    const std::size_t count = image.pixels.size() / 4;
    for (std::size_t i = 0; i < count; ++i)
      image.pixels[i] =
          grey_of(image.pixels[i * 4], image.pixels[i * 4 + 1], image.pixels[i * 4 + 2]);
    image.pixels.resize(count);
    image.pixel_bytes = 1;
  }
}

std::string png_of(const std::uint8_t* sample, int channels, PixelSize size) {
  const auto pixels = static_cast<std::size_t>(size.height) * static_cast<std::size_t>(size.width);
  std::vector<std::uint8_t> interleaved(pixels * static_cast<std::size_t>(channels));
  for (std::size_t i = 0; i < interleaved.size(); ++i)
    interleaved[i] = sample[i % static_cast<std::size_t>(channels) * pixels +
                            i / static_cast<std::size_t>(channels)];
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(size.width);
  image.height = static_cast<png_uint_32>(size.height);
  image.format = channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  std::string file;
  png_alloc_size_t bytes = 0;
  const auto write = [&](void* target) {
    if (png_image_write_to_memory(&image, target, &bytes, 0, interleaved.data(), 0, nullptr) == 0)
      throw Error("libpng: " + std::string(image.message));
  };
  write(nullptr);  // tells how many bytes it takes
  file.resize(bytes);
  write(file.data());
  return file;
}

}  // namespace regatta
