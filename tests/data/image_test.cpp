#include "data/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/error_text.h"
#include "support/images.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

DecodedImage decoded(const std::string& bytes, int channels, int eighths = 8,
                     const PixelBox& box = {}) {
  DecodedImage image;
  decode_image(bytes_of(bytes), channels, eighths, box, image);
  return image;
}

int pixel(const DecodedImage& image, int y, int x, int c) {
  const auto row = static_cast<std::size_t>(y - image.box.top);
  const auto columns = static_cast<std::size_t>(image.box.right - image.box.left);
  const auto column = static_cast<std::size_t>(x - image.box.left);
  return image.pixels[(row * columns + column) * static_cast<std::size_t>(image.pixel_bytes) +
                      static_cast<std::size_t>(c)];
}

double mean_error(const DecodedImage& image, const Picture& original) {
  double sum = 0;
  for (int y = 0; y < original.height; ++y)
    for (int x = 0; x < original.width; ++x)
      for (int c = 0; c < original.channels; ++c)
        sum += std::abs(pixel(image, y, x, c) - original.at(y, x, c));
  return sum / static_cast<double>(original.pixels.size());
}

TEST(ImageHeader, TellsKindAndSize) {
  const ImageHeader jpeg = image_header(bytes_of(encode_jpeg(picture(30, 40, 3, 1))));
  EXPECT_EQ(jpeg.kind, ImageKind::jpeg);
  EXPECT_EQ(jpeg.size, (PixelSize{30, 40}));
  const ImageHeader png = image_header(bytes_of(encode_png(picture(5, 7, 3, 1))));
  EXPECT_EQ(png.kind, ImageKind::png);
  EXPECT_EQ(png.size, (PixelSize{5, 7}));
}

TEST(DecodeImage, JpegsOfEveryKindAreRead) {
  const Picture colour = picture(61, 83, 3, 2), grey = picture(61, 83, 1, 2);
  for (const bool progressive : {false, true})
    for (const int subsampling : {1, 2}) {
      const JpegForm form{.quality = 95, .subsampling = subsampling, .progressive = progressive};
      EXPECT_LT(mean_error(decoded(encode_jpeg(colour, form), 3), colour), 6);
    }
  const DecodedImage spread = decoded(encode_jpeg(grey), 3);
  for (int c = 0; c < 3; ++c) EXPECT_NEAR(pixel(spread, 20, 20, c), grey.at(20, 20, 0), 8);
  EXPECT_LT(mean_error(decoded(encode_jpeg(grey), 1), grey), 3);
}

TEST(DecodeImage, ColourBecomesGreyByItsBrightness) {
  const Picture colour = picture(16, 16, 3, 5);
  for (const std::string& bytes :
       {encode_jpeg(colour, {.quality = 98, .subsampling = 1}), encode_png(colour)}) {
    const DecodedImage image = decoded(bytes, 1);
    EXPECT_EQ(image.pixel_bytes, 1);
    for (const auto& [y, x] : {std::pair{1, 2}, {9, 14}, {13, 3}}) {
      const double grey =
          0.299 * colour.at(y, x, 0) + 0.587 * colour.at(y, x, 1) + 0.114 * colour.at(y, x, 2);
      EXPECT_NEAR(pixel(image, y, x, 0), grey, 6);
    }
  }
}

TEST(DecodeImage, CmykIsWhatAdobeMeans) {
  // No ink but 60% of cyan and 20% of black.
  Picture ink{16, 16, 4, {}};
  for (int i = 0; i < 256; ++i) ink.pixels.insert(ink.pixels.end(), {153, 0, 0, 51});
  const DecodedImage image = decoded(encode_jpeg(ink, {.quality = 98, .cmyk = true}), 3);
  EXPECT_NEAR(pixel(image, 8, 8, 0), 102 * 204 / 255, 3);
  EXPECT_NEAR(pixel(image, 8, 8, 1), 204, 3);
  EXPECT_NEAR(pixel(image, 8, 8, 2), 204, 3);
  EXPECT_EQ(decoded(encode_jpeg(ink, {.cmyk = true}), 1).pixel_bytes, 1);
}

TEST(DecodeImage, PngsOfEveryKindAreExact) {
  const Picture colour = picture(19, 23, 3, 3), grey = picture(19, 23, 1, 3);
  for (const PngForm& form :
       {PngForm{}, PngForm{.bits = 16}, PngForm{.alpha = true}, PngForm{.interlaced = true}}) {
    EXPECT_EQ(mean_error(decoded(encode_png(colour, form), 3), colour), 0);
    EXPECT_EQ(mean_error(decoded(encode_png(grey, form), 1), grey), 0);
  }
  EXPECT_EQ(mean_error(decoded(encode_png(grey, {.palette = true}), 1), grey), 0);
  EXPECT_EQ(pixel(decoded(encode_png(grey, {.palette = true}), 3), 4, 4, 2), grey.at(4, 4, 0));
}

// The part is exactly what the whole would be there, at every scale and sampling of colour.
TEST(DecodeImage, APartOfAJpegIsThatPartOfTheWhole) {
  for (const int subsampling : {1, 2})
    for (const bool progressive : {false, true})
      for (const int eighths : {1, 2, 4, 8}) {
        const std::string bytes = encode_jpeg(
            picture(301, 403, 3, 7), {.subsampling = subsampling, .progressive = progressive});
        const DecodedImage whole = decoded(bytes, 3, eighths);
        EXPECT_EQ(whole.size, (PixelSize{(301 * eighths + 7) / 8, (403 * eighths + 7) / 8}));
        for (const auto& [top, left] : {std::pair{0, 0}, {1, 3}, {13, 17}, {30, 40}}) {
          const PixelBox box{top * eighths, left * eighths, (top + 5) * eighths,
                             (left + 7) * eighths};
          const DecodedImage part = decoded(bytes, 3, eighths, box);
          ASSERT_LE(part.box.top, box.top);
          ASSERT_LE(part.box.left, box.left);
          ASSERT_GE(part.box.bottom, std::min(box.bottom, whole.size.height));
          ASSERT_GE(part.box.right, std::min(box.right, whole.size.width));
          for (int y = box.top; y < std::min(box.bottom, whole.size.height); ++y)
            for (int x = box.left; x < std::min(box.right, whole.size.width); ++x)
              for (int c = 0; c < 3; ++c)
                ASSERT_EQ(pixel(part, y, x, c), pixel(whole, y, x, c))
                    << subsampling << progressive << eighths << " at " << y << "," << x;
        }
      }
}

std::vector<std::uint8_t> sample_of(const std::string& bytes, const Framing& framing) {
  std::vector<std::uint8_t> sample(static_cast<std::size_t>(3 * framing.window.height) *
                                   static_cast<std::size_t>(framing.window.width));
  decode_sample(bytes_of(bytes), image_header(bytes_of(bytes)), 3, framing, sample.data());
  return sample;
}

TEST(DecodeSample, WithoutResizingIsTheImageItself) {
  const Picture original = picture(32, 32, 3, 4);
  const std::string bytes = encode_png(original);
  const std::vector<std::uint8_t> sample = sample_of(bytes, evaluation_framing({32, 32}, {32, 32}));
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < 32; ++y)
      for (int x = 0; x < 32; ++x)
        ASSERT_EQ(sample[static_cast<std::size_t>((c * 32 + y) * 32 + x)], original.at(y, x, c));
}

// A slope stays where it is: scale, box and window are all of one geometry.
TEST(DecodeSample, AReducedScaleMovesNothing) {
  Picture slope{600, 800, 3, {}};
  for (int y = 0; y < 600; ++y)
    for (int x = 0; x < 800; ++x)
      for (const int value : {x * 255 / 800, y * 255 / 600, 128})
        slope.pixels.push_back(static_cast<std::uint8_t>(value));
  const std::string bytes = encode_jpeg(slope, {.quality = 97, .subsampling = 1});
  for (const int side : {64, 100, 200, 256}) {
    const Framing framing = evaluation_framing({600, 800}, {side, side});
    const std::vector<std::uint8_t> sample = sample_of(bytes, framing);
    const double scale = 600.0 / framing.resized.height;
    double across = 0, down = 0;  // how far values are from the slope, on average
    for (int y = 0; y < side; ++y)
      for (int x = 0; x < side; ++x) {
        const auto at = [&](int c) {
          return sample[static_cast<std::size_t>((c * side + y) * side + x)];
        };
        const double red = (framing.window_left + x + 0.5) * scale * 255 / 800 - 0.5;
        const double green = (framing.window_top + y + 0.5) * scale * 255 / 600 - 0.5;
        ASSERT_NEAR(at(0), red, 4);
        ASSERT_NEAR(at(1), green, 4);
        across += at(0) - red;
        down += at(1) - green;
      }
    EXPECT_NEAR(across / (side * side), 0, 0.5) << side;
    EXPECT_NEAR(down / (side * side), 0, 0.5) << side;
  }
}

TEST(DecodeSample, EveryBoxOfEveryImageFits) {
  const Augmentation::ResizedCrop crop{.height = 40, .width = 40};
  for (const auto& [height, width] : {std::pair{1, 1}, {3, 200}, {97, 45}, {333, 250}}) {
    const std::string bytes = encode_jpeg(picture(height, width, 3, 9));
    for (std::uint64_t draw = 0; draw < 40; ++draw)
      sample_of(bytes, resized_crop_framing({height, width}, crop, draw));
    sample_of(bytes, evaluation_framing({height, width}, {40, 40}));
  }
}

TEST(DecodeImage, DamageIsSaid) {
  const auto complaint = [](const std::string& bytes) {
    return error_text([&] { decoded(bytes, 3); });
  };
  const std::string jpeg = encode_jpeg(picture(64, 64, 3, 1)),
                    png = encode_png(picture(64, 64, 3, 1));
  EXPECT_THAT(complaint(""), HasSubstr("empty"));
  EXPECT_THAT(complaint("GIF89a"), HasSubstr("neither a JPEG nor a PNG"));
  EXPECT_THAT(complaint(jpeg.substr(0, jpeg.size() / 2)), HasSubstr("cut off"));
  EXPECT_THAT(complaint(jpeg.substr(0, 30)), HasSubstr(""));
  EXPECT_THAT(complaint(png.substr(0, png.size() / 2)), HasSubstr("cut off"));
  std::string flipped = png;
  flipped[flipped.size() / 2] ^= 0x40;
  EXPECT_THAT(complaint(flipped), HasSubstr("damaged PNG"));
}

TEST(ImageHeader, AClaimThatItsBytesCannotHoldIsRefused) {
  std::string jpeg = encode_jpeg(picture(16, 16, 3, 1));
  const std::size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  for (std::size_t i = 5; i < 9; ++i) jpeg[frame + i] = '\x7f';  // height and width
  EXPECT_THAT(error_text([&] { image_header(bytes_of(jpeg)); }), HasSubstr("32639x32639 pixels"));
  for (std::size_t i = 5; i < 9; ++i) jpeg[frame + i] = '\x20';
  EXPECT_THAT(error_text([&] { image_header(bytes_of(jpeg)); }), HasSubstr("bytes cannot hold"));
}

}  // namespace
}  // namespace regatta
