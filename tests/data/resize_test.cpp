#include "data/resize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "data/augment_sample.h"
#include "data/window.h"

namespace regatta {
namespace {

using ::testing::ElementsAreArray;
using Bytes = std::vector<std::uint8_t>;

// Two bright and two dark squares: the picture that Pillow's own tests of resizing use.
Bytes squares(int side, std::uint8_t bright) {
  Bytes pixels;
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x)
      pixels.push_back((y < side / 2) == (x < side / 2) ? bright
                                                        : static_cast<std::uint8_t>(255 - bright));
  return pixels;
}

Bytes resized(const Bytes& source, int side, int target, int pixel_bytes = 1) {
  const ResizeAxis axis{0, static_cast<double>(side), target, 0, target};
  const ResizeWeights weights(axis, side);
  Bytes result(static_cast<std::size_t>(target * target * pixel_bytes));
  resize({source.data(), 0, 0, pixel_bytes, side * pixel_bytes}, weights, weights, result.data());
  return result;
}

// What Pillow asserts of its BILINEAR: 8x8 -> 4x4 and 2x2 -> 4x4.
TEST(Resize, ShrinksAsPillowDoes) {
  EXPECT_THAT(resized(squares(8, 0xe1), 8, 4),
              ElementsAreArray(Bytes{0xe1, 0xc9, 0x36, 0x1e, 0xc9, 0xb7, 0x48, 0x36,  //
                                     0x36, 0x48, 0xb7, 0xc9, 0x1e, 0x36, 0xc9, 0xe1}));
}

TEST(Resize, EnlargesAsPillowDoes) {
  EXPECT_THAT(resized(squares(2, 0xe1), 2, 4),
              ElementsAreArray(Bytes{0xe1, 0xb0, 0x4f, 0x1e, 0xb0, 0x98, 0x67, 0x4f,  //
                                     0x4f, 0x67, 0x98, 0xb0, 0x1e, 0x4f, 0xb0, 0xe1}));
}

Bytes noise(std::size_t count) {
  Bytes bytes(count);
  std::uint32_t state = 1;
  for (std::uint8_t& byte : bytes)
    byte = static_cast<std::uint8_t>((state = state * 1664525u + 1013904223u) >> 24);
  return bytes;
}

TEST(Resize, FourBytePixelsAreFourImagesAtOnce) {
  const Bytes source = noise(std::size_t{61 * 61 * 4});
  const Bytes together = resized(source, 61, 23, 4);
  for (std::size_t channel = 0; channel < 4; ++channel) {
    Bytes plane, expected;
    for (std::size_t i = channel; i < source.size(); i += 4) plane.push_back(source[i]);
    for (std::size_t i = channel; i < together.size(); i += 4) expected.push_back(together[i]);
    EXPECT_EQ(resized(plane, 61, 23), expected);
  }
}

TEST(Resize, TheSameSizeChangesNothing) {
  const Bytes source = noise(37 * 37);
  EXPECT_EQ(resized(source, 37, 37), source);
}

TEST(Resize, APartIsThatPartOfTheWhole) {
  const Bytes source = noise(50 * 50);
  const Bytes whole = resized(source, 50, 30);
  const ResizeAxis rows{0, 50, 30, 4, 7}, columns{0, 50, 30, 11, 5};
  const ResizeWeights row_weights(rows, 50), column_weights(columns, 50);
  EXPECT_GT(row_weights.first_source(), 4);
  EXPECT_LT(row_weights.end_source(), 22);
  // Only what is needed is in the view.
  const int top = row_weights.first_source(), left = column_weights.first_source();
  const PixelView view{source.data() + top * 50 + left, top, left, 1, 50};
  Bytes part(7 * 5);
  resize(view, row_weights, column_weights, part.data());
  for (std::size_t y = 0; y < 7; ++y)
    for (std::size_t x = 0; x < 5; ++x) EXPECT_EQ(part[y * 5 + x], whole[(y + 4) * 30 + x + 11]);
}

TEST(EvaluationFraming, IsTorchvisionsResizeAndCentreCrop) {
  const Framing wide = evaluation_framing({375, 500}, {224, 224});
  EXPECT_EQ(wide.resized, (PixelSize{256, 341}));  // int(256 * 500 / 375)
  EXPECT_EQ(wide.window_top, 16);
  EXPECT_EQ(wide.window_left, 58);  // round(58.5), to the even side
  const Framing tall = evaluation_framing({500, 333}, {224, 224});
  EXPECT_EQ(tall.resized, (PixelSize{384, 256}));
  EXPECT_EQ(tall.window_top, 80);
  EXPECT_EQ(evaluation_framing({600, 600}, {299, 299}).resized, (PixelSize{342, 342}));
}

TEST(EvaluationFraming, AnImageOfTheRightSizeIsLeftAlone) {
  const Framing framing = evaluation_framing({32, 32}, {32, 32});
  EXPECT_TRUE(framing.plain());
  EXPECT_EQ(framing.window_top, 0);
}

TEST(EvaluationFraming, TwoStepsCutWhatOneDoes) {
  // To 256x256 first, 224x224 from there: how shards serve evaluation.
  for (int width = 256; width < 700; width += 3) {
    const Framing once = evaluation_framing({256, width}, {224, 224});
    const Framing first = evaluation_framing({256, width}, {256, 256}, 256);
    const Framing second = evaluation_framing({256, 256}, {224, 224});
    EXPECT_EQ(first.resized, once.resized);
    EXPECT_TRUE(second.plain());
    EXPECT_EQ(first.window_left + second.window_left, once.window_left);
    EXPECT_EQ(first.window_top + second.window_top, once.window_top);
  }
}

TEST(EvaluationFraming, ATargetThatIsNotSquareIsCovered) {
  for (const PixelSize image : {PixelSize{100, 300}, {300, 100}, {77, 78}}) {
    const Framing framing = evaluation_framing(image, {112, 224});
    EXPECT_GE(framing.resized.height, 128 - 1);
    EXPECT_GE(framing.resized.width, 256 - 1);
    EXPECT_TRUE(framing.resized.height == 128 || framing.resized.width == 256);
    EXPECT_LE(framing.window_left + 224, framing.resized.width);
    EXPECT_LE(framing.window_top + 112, framing.resized.height);
  }
}

TEST(ResizedCropFraming, StaysInsideAndKeepsAreaAndShape) {
  const Augmentation::ResizedCrop crop{.height = 224, .width = 224};
  double smallest = 1;
  for (std::uint64_t draw = 0; draw < 2000; ++draw) {
    const Framing framing = resized_crop_framing({375, 500}, crop, draw * 0x9e3779b97f4a7c15u);
    ASSERT_GE(framing.top, 0);
    ASSERT_GE(framing.left, 0);
    ASSERT_LE(framing.top + framing.box.height, 375);
    ASSERT_LE(framing.left + framing.box.width, 500);
    const double area = double(framing.box.height) * framing.box.width / (375.0 * 500.0);
    smallest = std::min(smallest, area);
    ASSERT_GT(area, 0.078);
    const double ratio = double(framing.box.width) / framing.box.height;
    ASSERT_GT(ratio, 0.74);
    ASSERT_LT(ratio, 1.35);
  }
  EXPECT_LT(smallest, 0.1);
}

TEST(ResizedCropFraming, AStripGivesItsMiddle) {
  const Augmentation::ResizedCrop crop{.height = 8, .width = 8};
  const Framing framing = resized_crop_framing({10, 1000}, crop, 1);
  EXPECT_EQ(framing.box, (PixelSize{10, 13}));  // round(10 * 4/3)
  EXPECT_EQ(framing.left, (1000 - 13) / 2);
}

TEST(FrameSample, NothingOutsideTheBoxShinesIn) {
  // A white box in black: enlarged, it stays white to its edge.
  const Shape stored{1, 6, 6};
  std::vector<std::byte> source(36, std::byte{0});
  for (int y = 2; y < 4; ++y)
    for (int x = 2; x < 4; ++x) source[static_cast<std::size_t>(y * 6 + x)] = std::byte{255};
  Framing framing;
  framing.top = framing.left = 2;
  framing.box = {2, 2};
  framing.resized = framing.window = {5, 5};
  std::vector<std::byte> target(25);
  frame_sample(stored, source.data(), framing, target.data());
  EXPECT_THAT(target, ::testing::Each(std::byte{255}));
}

}  // namespace
}  // namespace regatta
