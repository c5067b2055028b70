#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace regatta {
namespace {

constexpr std::uint64_t many = 100'000;

TEST(Random, IsAFunctionOfItsThreeCoordinates) {
  EXPECT_EQ(random_bits(1, 2, 3), random_bits(1, 2, 3));
  const std::set<std::uint64_t> different{random_bits(1, 2, 3), random_bits(2, 1, 3),
                                          random_bits(3, 2, 1), random_bits(1, 3, 2),
                                          random_bits(0, 0, 0)};
  EXPECT_EQ(different.size(), 5u);
}

// Checkpoints and reports rely on the same numbers tomorrow.
TEST(Random, KeepsItsValuesForever) {
  EXPECT_EQ(random_bits(0, 0, 0), 0x238275bc38fcbe91u);
  EXPECT_EQ(random_bits(1, 2, 3), 0xd0734750fde362b3u);
  EXPECT_EQ(stream_of("shuffle"), 0x477c62bf680bf6aeu);
}

TEST(Random, NeighboursShareHalfTheirBits) {
  double flipped = 0;
  for (std::uint64_t i = 0; i < 1000; ++i)
    flipped += __builtin_popcountll(random_bits(7, 7, i) ^ random_bits(7, 7, i + 1));
  EXPECT_NEAR(flipped / 1000, 32.0, 1.0);
}

TEST(Random, UniformFillsZeroToOne) {
  double sum = 0, squares = 0;
  for (std::uint64_t i = 0; i < many; ++i) {
    const double value = random_uniform(1, 2, i);
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / many, 0.5, 0.005);
  EXPECT_NEAR(squares / many, 1.0 / 3.0, 0.005);
}

TEST(Random, NormalHasMeanZeroAndDeviationOne) {
  double sum = 0, squares = 0, beyond_two = 0;
  for (std::uint64_t i = 0; i < many; ++i) {
    const double value = random_normal(1, 2, i);
    ASSERT_TRUE(std::isfinite(value));
    sum += value;
    squares += value * value;
    beyond_two += std::abs(value) > 2.0;
  }
  EXPECT_NEAR(sum / many, 0.0, 0.01);
  EXPECT_NEAR(squares / many, 1.0, 0.02);
  EXPECT_NEAR(beyond_two / many, 0.0455, 0.003);
}

TEST(Random, StreamsOfDifferentNamesDiffer) {
  EXPECT_NE(stream_of("conv1.weight"), stream_of("conv2.weight"));
  EXPECT_NE(stream_of(""), stream_of("a"));
}

}  // namespace
}  // namespace regatta
