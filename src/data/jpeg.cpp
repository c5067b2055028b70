// clang-format off
#include <cstdio>  // jpeglib.h leans on it, and jerror.h on jpeglib.h
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>

#include "base/error.h"
#include "data/image_codecs.h"

namespace regatta {
namespace {

// More scans than any program writes: each costs a pass over the whole image.
constexpr int most_scans = 200;

// libjpeg's state, and its errors as jumps: it is C, and nothing may be thrown through it.
class JpegReader {
 public:
  explicit JpegReader(std::span<const std::byte> bytes) : bytes_(bytes) {
    info_.err = jpeg_std_error(&errors_);
    info_.client_data = this;
    errors_.error_exit = [](j_common_ptr info) { self(info).fail_by_jump(); };
    errors_.emit_message = [](j_common_ptr info, int level) {
      if (level < 0) self(info).warned(info->err->msg_code);
    };
    progress_.progress_monitor = [](j_common_ptr info) {
      JpegReader& reader = self(info);
      if (reader.info_.input_scan_number > most_scans) reader.fail_by_jump("it has too many scans");
    };
  }
  ~JpegReader() { jpeg_destroy_decompress(&info_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  // Runs `steps`, which keep nothing that needs destroying; throws what libjpeg complained of.
  template <class Steps>
  void run(Steps steps) {
    if (setjmp(jump_) == 0) {
      steps();
      return;
    }
    throw InputError(message_.data());
  }

  void open() {
    jpeg_create_decompress(&info_);
    info_.progress = &progress_;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(bytes_.data()),
                 static_cast<unsigned long>(bytes_.size()));
    jpeg_read_header(&info_, TRUE);
  }

  jpeg_decompress_struct& info() { return info_; }

 private:
  static JpegReader& self(j_common_ptr info) {
    return *static_cast<JpegReader*>(info->client_data);
  }

  [[noreturn]] void fail_by_jump(const char* text = nullptr) {
    if (text) {
      std::strncpy(message_.data(), text, message_.size() - 1);
    } else {
      std::array<char, JMSG_LENGTH_MAX> said{};
      errors_.format_message(reinterpret_cast<j_common_ptr>(&info_), said.data());
      std::snprintf(message_.data(), message_.size(), "it is a damaged JPEG image: %s",
                    said.data());
    }
    std::longjmp(jump_, 1);
  }

  // libjpeg goes on with grey where data are missing; what it warns of otherwise does no harm.
  void warned(int code) {
    switch (code) {
      case JWRN_JPEG_EOF:
        fail_by_jump("it is cut off");
      case JWRN_HIT_MARKER:
      case JWRN_HUFF_BAD_CODE:
      case JWRN_MUST_RESYNC:
      case JWRN_BOGUS_PROGRESSION:
      case JWRN_ARITH_BAD_CODE:
        fail_by_jump();
      default:
        return;
    }
  }

  std::span<const std::byte> bytes_;
  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf jump_{};
  std::array<char, JMSG_LENGTH_MAX + 64> message_{};
};

// Inverted, as Adobe stores it: what is left of the light is colour times black.
void from_cmyk(std::uint8_t* pixels, std::size_t count, int channels, std::uint8_t* target) {
  for (std::size_t i = 0; i < count; ++i, pixels += 4) {
    const auto light = [&](int c) {
      const int product = pixels[c] * pixels[3] + 128;
      return (product + (product >> 8)) >> 8;
    };
    const int red = light(0), green = light(1), blue = light(2);
    if (channels == 1) {
      *target++ = grey_of(red, green, blue);
    } else {
      target[0] = static_cast<std::uint8_t>(red);
      target[1] = static_cast<std::uint8_t>(green);
      target[2] = static_cast<std::uint8_t>(blue);
      target += 4;
    }
  }
}

J_COLOR_SPACE target_space(const jpeg_decompress_struct& info, int channels) {
  if (info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK) return JCS_CMYK;
  return channels == 1 ? JCS_GRAYSCALE : JCS_EXT_RGBX;
}

}  // namespace

PixelSize jpeg_size(std::span<const std::byte> bytes) {
  JpegReader reader(bytes);
  reader.run([&] { reader.open(); });
  return {static_cast<int>(reader.info().image_height),
          static_cast<int>(reader.info().image_width)};
}

void decode_jpeg(std::span<const std::byte> bytes, int channels, int eighths,
                 const PixelBox& wanted, DecodedImage& image) {
  // Upsampling of colour looks at neighbours: so many pixels more on each side, and the part is
  // what the whole would be there.
  constexpr int margin = 16;
  JpegReader reader(bytes);
  jpeg_decompress_struct& info = reader.info();
  reader.run([&] {
    reader.open();
    info.scale_num = static_cast<unsigned>(eighths);
    info.scale_denom = 8;
    info.out_color_space = target_space(info, channels);
    // jpeg_start_decompress would take whatever components there are for grey.
    if (channels == 1 && info.out_color_space == JCS_GRAYSCALE &&
        info.jpeg_color_space != JCS_GRAYSCALE && info.jpeg_color_space != JCS_YCbCr)
      info.out_color_space = JCS_EXT_RGBX;
    jpeg_start_decompress(&info);
  });

  const int height = static_cast<int>(info.output_height),
            width = static_cast<int>(info.output_width);
  image.size = {height, width};
  image.pixel_bytes = channels == 1 ? 1 : 4;
  const bool all = wanted.bottom <= wanted.top || wanted.right <= wanted.left;
  image.box = all ? PixelBox{0, 0, height, width}
                  : PixelBox{std::clamp(wanted.top - margin, 0, height),
                             std::clamp(wanted.left - margin, 0, width),
                             std::clamp(wanted.bottom, 0, height),
                             std::clamp(wanted.right + margin, 0, width)};
  reader.run([&] {
    if (image.box.right - image.box.left < width) {
      auto left = static_cast<JDIMENSION>(image.box.left);
      auto columns = static_cast<JDIMENSION>(image.box.right - image.box.left);
      jpeg_crop_scanline(&info, &left, &columns);  // moves `left` to where a block begins
      image.box.left = static_cast<int>(left);
      image.box.right = static_cast<int>(left + columns);
    }
    if (image.box.top > 0) jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(image.box.top));
  });

  const auto rows = static_cast<std::size_t>(image.box.bottom - image.box.top);
  const auto columns = static_cast<std::size_t>(image.box.right - image.box.left);
  const std::size_t row_bytes = columns * static_cast<std::size_t>(image.pixel_bytes);
  image.pixels.resize(rows * row_bytes);
  // A row in libjpeg's form, where that is not ours.
  const bool cmyk = info.out_color_space == JCS_CMYK;
  const bool grey_from_colour = channels == 1 && info.out_color_space == JCS_EXT_RGBX;
  thread_local std::vector<std::uint8_t> row;
  if (cmyk || grey_from_colour) row.resize(columns * 4);
  reader.run([&] {
    for (std::size_t y = 0; y < rows; ++y) {
      std::uint8_t* target = image.pixels.data() + y * row_bytes;
      JSAMPROW into = cmyk || grey_from_colour ? row.data() : target;
      jpeg_read_scanlines(&info, &into, 1);
      if (cmyk) from_cmyk(row.data(), columns, channels, target);
      if (grey_from_colour)
        for (std::size_t x = 0; x < columns; ++x)
          target[x] = grey_of(row[x * 4], row[x * 4 + 1], row[x * 4 + 2]);
    }
    jpeg_abort_decompress(&info);  // the rest is not needed
  });
}

}  // namespace regatta
