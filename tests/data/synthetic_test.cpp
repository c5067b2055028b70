#include "data/synthetic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "support/error_text.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

struct Samples {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
};

Samples read_range(const Dataset& set, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), first);
  Samples samples;
  samples.pixels.resize(indices.size() * static_cast<std::size_t>(set.info().sample.elements()));
  samples.labels.resize(indices.size());
  set.read(indices, reinterpret_cast<std::byte*>(samples.pixels.data()), samples.labels.data());
  return samples;
}

std::shared_ptr<const Dataset> open(const std::string& spec, Split split, std::uint64_t seed = 1) {
  return open_dataset(spec, split, seed);
}

// The share of test samples whose class has the nearest mean image: what a linear classifier sees.
double nearest_mean_accuracy(const std::string& spec) {
  const auto train = open(spec, Split::train);
  const auto test = open(spec, Split::test);
  const auto elements = static_cast<std::size_t>(train->info().sample.elements());
  const auto classes = static_cast<std::size_t>(train->info().classes);
  std::vector<double> means(classes * elements);
  const Samples seen = read_range(*train, 0, 2000);
  for (std::size_t i = 0; i < seen.labels.size(); ++i)
    for (std::size_t k = 0; k < elements; ++k)
      means[static_cast<std::size_t>(seen.labels[i]) * elements + k] +=
          static_cast<double>(classes) * seen.pixels[i * elements + k] / 2000.0;
  const Samples unseen = read_range(*test, 0, 500);
  int correct = 0;
  for (std::size_t i = 0; i < unseen.labels.size(); ++i) {
    std::vector<double> distances(classes);
    for (std::size_t c = 0; c < classes; ++c)
      for (std::size_t k = 0; k < elements; ++k) {
        const double difference = unseen.pixels[i * elements + k] - means[c * elements + k];
        distances[c] += difference * difference;
      }
    correct += std::ranges::min_element(distances) - distances.begin() == unseen.labels[i];
  }
  return correct / 500.0;
}

TEST(Synthetic, ASampleIsTheSameWhereverAndWheneverItIsRead) {
  for (const char* spec : {"synth:3x20x19/7@1000", "digits-synth"}) {
    const auto set = open(spec, Split::train);
    const Samples together = read_range(*set, 5, 3);
    const Samples alone = read_range(*open(spec, Split::train), 6, 1);
    const std::size_t elements = alone.pixels.size();
    EXPECT_TRUE(std::equal(alone.pixels.begin(), alone.pixels.end(),
                           together.pixels.begin() + static_cast<std::ptrdiff_t>(elements)))
        << spec;
    EXPECT_EQ(alone.labels[0], together.labels[1]);
  }
}

TEST(Synthetic, SeedsSplitsAndIndicesGiveDifferentSamples) {
  for (const char* spec : {"synth:1x16x16/4@1000", "digits-synth"}) {
    const auto first = read_range(*open(spec, Split::train), 0, 1).pixels;
    EXPECT_NE(first, read_range(*open(spec, Split::train), 40, 1).pixels) << spec;
    EXPECT_NE(first, read_range(*open(spec, Split::test), 0, 1).pixels) << spec;
    EXPECT_NE(first, read_range(*open(spec, Split::train, 2), 0, 1).pixels) << spec;
  }
}

TEST(Synthetic, ClassesTakeTurns) {
  const Samples samples = read_range(*open("synth:1x4x4/3@100", Split::train), 0, 6);
  EXPECT_EQ(samples.labels, (std::vector<std::int32_t>{0, 1, 2, 0, 1, 2}));
}

TEST(Synthetic, PixelsUseTheirWholeRangeWithoutSaturating) {
  const Samples samples = read_range(*open("synth:3x32x32/10@1000", Split::train), 0, 100);
  const auto n = static_cast<double>(samples.pixels.size());
  const double mean = std::accumulate(samples.pixels.begin(), samples.pixels.end(), 0.0) / n;
  EXPECT_NEAR(mean, 127.0, 15.0);
  EXPECT_LT(static_cast<double>(std::ranges::count(samples.pixels, 0)) / n, 0.05);
  EXPECT_LT(static_cast<double>(std::ranges::count(samples.pixels, 255)) / n, 0.05);
  EXPECT_EQ(*std::ranges::min_element(samples.pixels), 0);
  EXPECT_EQ(*std::ranges::max_element(samples.pixels), 255);
}

TEST(Synthetic, ClassesCanBeToldApartButNotByTheirMeansAlone) {
  const double patterns = nearest_mean_accuracy("synth:3x12x12/10@5000");
  EXPECT_GT(patterns, 0.3) << "chance is 0.1";
  EXPECT_LT(patterns, 0.95);
  const double digits = nearest_mean_accuracy("digits-synth");
  EXPECT_GT(digits, 0.3) << "chance is 0.1";
  EXPECT_LT(digits, 0.95);
}

TEST(Synthetic, WritesNothingBeyondOddWidths) {
  const auto set = open("synth:1x3x5/2@10", Split::train);
  std::vector<std::uint8_t> pixels(15 + 1, 77);
  std::int32_t label = 0;
  const std::int64_t index = 3;
  set->read({&index, 1}, reinterpret_cast<std::byte*>(pixels.data()), &label);
  EXPECT_EQ(pixels.back(), 77);
}

TEST(Synthetic, AnIndexOutsideIsAMistakeOfOurs) {
  EXPECT_THROW(read_range(*open("synth:1x4x4/2@10", Split::train), 10, 1), Error);
  EXPECT_THROW(read_range(*open("digits-synth", Split::test), 10'000, 1), Error);
}

TEST(Synthetic, TheSpecGivesShapeClassesAndCount) {
  const SyntheticSize size = parse_synthetic("3x32x48/7@100");
  EXPECT_EQ(size.sample, (Shape{3, 32, 48}));
  EXPECT_EQ(size.classes, 7);
  EXPECT_EQ(size.train_count, 100);
  EXPECT_EQ(size.test_count, 20);
}

TEST(Synthetic, ABadSpecIsQuotedWithAnExample) {
  for (const char* text :
       {"", "3x32x32", "3x32x32/10", "3x32x32@10", "3x32x32@10/10", "3x32x32/1@10", "3x32x32/10@0",
        "3x32x32/10@-5", "3x32x32/ten@10", "3x32x32/10@1e6", "3x32/10@100", "3x32x32x1/10@100",
        "16000000x16000000x16000000/10@100", "3x32x32/9999999999@10",
        "3x32x32/10@99999999999999999999"}) {
    const std::string error = error_text([&] { parse_synthetic(text); });
    EXPECT_THAT(error, HasSubstr("synth:" + std::string(text) + ": ")) << text;
    EXPECT_THAT(error, HasSubstr("synth:3x32x32/10@50000")) << text;
  }
  EXPECT_THAT(error_text([] { parse_synthetic("3xx32/10@5"); }), HasSubstr("shape '3xx32'"));
}

}  // namespace
}  // namespace regatta
