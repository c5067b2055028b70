#include "data/augment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "base/random.h"
#include "data/augment_sample.h"
#include "data/colour.h"
#include "data/dataset.h"
#include "support/error_text.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<std::uint8_t>;

TEST(Augmentation, ReadsItsText) {
  const Augmentation all = parse_augmentation("crop:4,flip,jitter:0.4");
  EXPECT_EQ(all.crop_padding, 4);
  EXPECT_TRUE(all.flip);
  EXPECT_EQ(all.brightness, 0.4);
  EXPECT_EQ(all.contrast, 0.4);
  EXPECT_EQ(all.saturation, 0.4);
  EXPECT_EQ(all.hue, 0);
  const Augmentation crop = parse_augmentation("resize-crop:96x128/0.25,jitter:0.1/0.2/0.3/0.05");
  EXPECT_EQ(crop.resized_crop->height, 96);
  EXPECT_EQ(crop.resized_crop->width, 128);
  EXPECT_EQ(crop.resized_crop->least_area, 0.25);
  EXPECT_EQ(crop.hue, 0.05);
  EXPECT_FALSE(parse_augmentation("none").any());
  EXPECT_FALSE(parse_augmentation("").any());
}

TEST(Augmentation, TextAndJsonComeBackTheSame) {
  for (const char* text : {"none", "crop:4,flip", "resize-crop:224", "resize-crop:64x32/0.3,flip",
                           "jitter:0.4/0.3/0.2/0.1"}) {
    const Augmentation augmentation = parse_augmentation(text);
    EXPECT_EQ(parse_augmentation(augmentation_text(augmentation)), augmentation) << text;
    EXPECT_EQ(augmentation_from_json(to_json(augmentation)), augmentation) << text;
  }
}

TEST(Augmentation, WhatMakesNoSenseIsQuoted) {
  const auto complaint = [](const char* text) {
    return error_text([&] { parse_augmentation(text); });
  };
  EXPECT_THAT(complaint("crop"), HasSubstr("augmentation 'crop': use crop:PADDING"));
  EXPECT_THAT(complaint("flip,flop"), HasSubstr("'flop'"));
  EXPECT_THAT(complaint("flip,flip"), HasSubstr("twice"));
  EXPECT_THAT(complaint("crop:-1"), HasSubstr("'-1' is not a number of pixels"));
  EXPECT_THAT(complaint("crop:4,resize-crop:224"), HasSubstr("exclude each other"));
  EXPECT_THAT(complaint("jitter:1/2"), HasSubstr("BRIGHTNESS/CONTRAST/SATURATION/HUE"));
  EXPECT_THAT(complaint("jitter:0/0/0/0.7"), HasSubstr("'0.7' is not a number from 0 to 0.5"));
  EXPECT_THAT(complaint("jitter:nan"), HasSubstr("'nan'"));
  EXPECT_THAT(complaint("resize-crop:0"), HasSubstr("'0' is not a number of pixels"));
  EXPECT_THAT(error_text([] { augmentation_from_json(Json::object()); }),
              HasSubstr("does not read"));
}

Bytes counting(std::int64_t count) {
  Bytes bytes(static_cast<std::size_t>(count));
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
  return bytes;
}

Bytes changed(const Augmentation& augmentation, std::uint64_t draw, const Shape& sample) {
  Bytes pixels = counting(sample.elements());
  augment_sample(augmentation, draw, sample, Dtype::u8,
                 reinterpret_cast<std::byte*>(pixels.data()));
  return pixels;
}

TEST(RandomCrop, IsAWindowOfThePaddedImage) {
  const Shape sample{2, 5, 6};
  const Bytes original = counting(60);
  const auto padded = [&](std::int64_t c, std::int64_t y, std::int64_t x) -> int {
    if (y < 0 || y >= 5 || x < 0 || x >= 6) return 0;
    return original[static_cast<std::size_t>((c * 5 + y) * 6 + x)];
  };
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  for (std::uint64_t draw = 0; draw < 500; ++draw) {
    const Bytes crop = changed({.crop_padding = 2}, draw, sample);
    int matches = 0;
    for (std::int64_t top = -2; top <= 2; ++top)
      for (std::int64_t left = -2; left <= 2; ++left) {
        bool same = true;
        for (std::int64_t c = 0; c < 2; ++c)
          for (std::int64_t y = 0; y < 5; ++y)
            for (std::int64_t x = 0; x < 6; ++x)
              same = same && crop[static_cast<std::size_t>((c * 5 + y) * 6 + x)] ==
                                 padded(c, y + top, x + left);
        if (same) ++matches, seen.emplace(top, left);
      }
    ASSERT_EQ(matches, 1);
  }
  EXPECT_EQ(seen.size(), 25u);
}

TEST(RandomCrop, PaddingWiderThanTheImageMayLeaveItBlack) {
  const Shape sample{1, 2, 2};
  bool black = false;
  for (std::uint64_t draw = 0; draw < 200; ++draw)
    black = black || changed({.crop_padding = 5}, draw, sample) == Bytes(4, 0);
  EXPECT_TRUE(black);
}

TEST(Flip, MirrorsHalfOfTheSamples) {
  int flipped = 0;
  for (std::uint64_t draw = 0; draw < 1000; ++draw) {
    const Bytes pixels = changed({.flip = true}, random_bits(1, 2, draw), {1, 2, 3});
    const bool mirrored = pixels == Bytes{3, 2, 1, 6, 5, 4};
    EXPECT_TRUE(mirrored || pixels == (Bytes{1, 2, 3, 4, 5, 6}));
    flipped += mirrored;
  }
  EXPECT_NEAR(flipped, 500, 60);
}

TEST(Flip, TakesFloats) {
  std::vector<float> pixels{1, 2, 3, 4};
  std::uint64_t draw = 0;
  while (changed({.flip = true}, draw, {1, 1, 2}) == (Bytes{1, 2})) ++draw;
  augment_sample({.flip = true}, draw, {1, 2, 2}, Dtype::f32,
                 reinterpret_cast<std::byte*>(pixels.data()));
  EXPECT_EQ(pixels, (std::vector<float>{2, 1, 4, 3}));
}

// torchvision's formulas by hand, on one pixel or two.
TEST(Colour, BrightnessMultipliesAndSaturates) {
  Bytes pixels{10, 100, 200};
  adjust_brightness({3, 1, 1}, 1.5, pixels.data());
  EXPECT_EQ(pixels, (Bytes{15, 150, 255}));
}

TEST(Colour, ContrastMovesFromTheMeanOfGrey) {
  // Greys 100 and 200 (0.2989 + 0.587 + 0.114 = 0.9999, cut to 99 and 199): mean 149.
  Bytes pixels{100, 200, 100, 200, 100, 200};
  adjust_contrast({3, 1, 2}, 0.5, pixels.data());
  EXPECT_EQ(pixels, (Bytes{124, 174, 124, 174, 124, 174}));
}

TEST(Colour, SaturationMovesFromGrey) {
  Bytes pixels{200, 100, 50};
  // Grey: 59.78 + 58.7 + 5.7 = 124.18, cut to 124.
  adjust_saturation({3, 1, 1}, 0.5, pixels.data());
  EXPECT_EQ(pixels, (Bytes{162, 112, 87}));
  Bytes one{7};
  adjust_saturation({1, 1, 1}, 0.0, one.data());
  EXPECT_EQ(one, Bytes{7});
}

TEST(Colour, AThirdOfTheCircleTurnsRedToGreen) {
  Bytes pixels{255, 0, 0};
  adjust_hue({3, 1, 1}, 1.0 / 3, pixels.data());
  EXPECT_LE(pixels[0], 1);
  EXPECT_EQ(pixels[1], 255);
  EXPECT_LE(pixels[2], 1);
  for (int r = 0; r < 256; r += 15)
    for (int g = 0; g < 256; g += 15) {
      Bytes same{static_cast<std::uint8_t>(r), static_cast<std::uint8_t>(g), 77};
      const Bytes before = same;
      adjust_hue({3, 1, 1}, 0, same.data());
      for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(same[c], before[c], 1);
    }
}

TEST(Jitter, DependsOnTheDrawAndStaysInRange) {
  const Augmentation jitter = parse_augmentation("jitter:0.4/0.4/0.4/0.1");
  std::set<Bytes> seen;
  for (std::uint64_t draw = 0; draw < 50; ++draw) {
    const Bytes once = changed(jitter, random_bits(3, 4, draw), {3, 2, 2});
    EXPECT_EQ(once, changed(jitter, random_bits(3, 4, draw), {3, 2, 2}));
    seen.insert(once);
  }
  EXPECT_GT(seen.size(), 40u);
}

// --- a whole data set

std::vector<std::byte> read_cut(const Dataset& data, const std::vector<Visit>& visits,
                                std::size_t chunk) {
  const std::size_t bytes = sample_bytes(data.info());
  std::vector<std::byte> samples(visits.size() * bytes);
  std::vector<std::int32_t> labels(visits.size());
  for (std::size_t first = 0; first < visits.size(); first += chunk)
    data.read(std::span(visits).subspan(first, std::min(chunk, visits.size() - first)),
              samples.data() + first * bytes, labels.data() + first);
  return samples;
}

TEST(AugmentedDataset, TheCutOfABatchHasNoSay) {
  for (const char* text : {"crop:4,flip,jitter:0.4/0.4/0.4/0.1", "resize-crop:24,flip"}) {
    const auto data =
        open_dataset("synth:3x32x32/10@100",
                     DatasetOptions{.seed = 1, .augmentation = parse_augmentation(text)});
    std::vector<Visit> visits;
    for (std::uint64_t i = 0; i < 32; ++i)
      visits.push_back({static_cast<std::int64_t>(i * 3), random_bits(1, 2, i)});
    const auto whole = read_cut(*data, visits, 32);
    EXPECT_EQ(whole, read_cut(*data, visits, 5)) << text;
    EXPECT_EQ(whole, read_cut(*data, visits, 1)) << text;
    for (Visit& visit : visits) ++visit.draw;
    EXPECT_NE(whole, read_cut(*data, visits, 32)) << text;
  }
}

TEST(AugmentedDataset, PlainReadingIsNotAugmented) {
  const auto plain = open_dataset("synth:3x16x16/10@20", Split::train, 1);
  const auto data = augmented(plain, parse_augmentation("crop:2,flip"));
  const std::vector<std::int64_t> indices{3, 1, 4};
  std::vector<std::byte> expected(3 * sample_bytes(plain->info())), found(expected.size());
  std::vector<std::int32_t> labels(3);
  plain->read(indices, expected.data(), labels.data());
  data->read(indices, found.data(), labels.data());
  EXPECT_EQ(found, expected);
}

TEST(AugmentedDataset, AResizedCropSetsTheSizeOfBothReads) {
  const auto data =
      open_dataset("synth:3x32x32/10@20",
                   DatasetOptions{.seed = 1, .augmentation = parse_augmentation("resize-crop:28")});
  EXPECT_EQ(data->info().sample, (Shape{3, 28, 28}));
  // 28 * 256/224 = 32: evaluation cuts the middle out of the stored sample.
  const auto plain = open_dataset("synth:3x32x32/10@20", Split::train, 1);
  const std::vector<std::int64_t> indices{7};
  std::vector<std::byte> whole(3 * 32 * 32), middle(3 * 28 * 28);
  std::int32_t label = 0;
  plain->read(indices, whole.data(), &label);
  data->read(indices, middle.data(), &label);
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t y = 0; y < 28; ++y)
      for (std::size_t x = 0; x < 28; ++x)
        ASSERT_EQ(middle[(c * 28 + y) * 28 + x], whole[(c * 32 + y + 2) * 32 + x + 2]);
}

}  // namespace
}  // namespace regatta
