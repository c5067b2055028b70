#include "data/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "data/array_dataset.h"
#include "support/error_text.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PixelStatistics, AreMeanAndDeviationOfEachChannel) {
  NpyArray labels{Dtype::u8, {2}, std::string(2, '\0')};
  NpyArray images{Dtype::u8, {2, 2, 1, 2}, std::string("\x00\x02\x64\x64\x04\x06\x64\x64", 8)};
  const auto data = array_dataset({}, {"x", images}, {"y", labels});
  const PixelStatistics found = pixel_statistics(*data, 1000);
  EXPECT_EQ(found.samples, 2);
  EXPECT_NEAR(found.mean[0], 3.0 / 255, 1e-7);
  EXPECT_NEAR(found.deviation[0], std::sqrt(5.0) / 255, 1e-7);
  EXPECT_NEAR(found.mean[1], 100.0 / 255, 1e-7);
  EXPECT_NEAR(found.deviation[1], 0, 1e-7);
  EXPECT_NEAR(pixel_statistics(*data, 1).mean[0], 1.0 / 255, 1e-7);
}

TEST(Normalisation, IsReadFromText) {
  const Normalisation own = parse_normalisation("0.5,0.25:2,4", 2, 1.0f);
  EXPECT_THAT(own.mean, ElementsAre(0.5f, 0.25f));
  EXPECT_THAT(own.deviation, ElementsAre(2.0f, 4.0f));
  EXPECT_FLOAT_EQ(parse_normalisation("imagenet", 3, 1.0f).mean[0], 0.485f);
  EXPECT_THAT(parse_normalisation("none", 1, 1.0f).deviation, ElementsAre(1.0f));
  for (const char* text : {"", "0.5", "0.5:0", "0.5,:1,1", "1,2:1", "imagenet", "nan:1", "a:b"})
    EXPECT_THAT(error_text([&] { parse_normalisation(text, 1, 1.0f); }),
                HasSubstr("normalisation '" + std::string(text) + "'"))
        << text;
}

}  // namespace
}  // namespace regatta
