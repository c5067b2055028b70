#include "backends/cpu/bfloat16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/batch_norm_loops.h"
#include "backends/cpu/optimizer.h"

namespace regatta::cpu {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

float rounded(float value) { return to_float(from_float<Bfloat16>(value)); }

TEST(Bfloat16, RoundsToTheNearestAndTiesToTheEven) {
  EXPECT_EQ(rounded(1.0f), 1.0f);
  EXPECT_EQ(rounded(-3.5f), -3.5f);
  EXPECT_EQ(rounded(1.0f + 0x1p-9f), 1.0f);              // nearer to 1
  EXPECT_EQ(rounded(1.0f + 0x1p-8f), 1.0f);              // a tie: 1 is even
  EXPECT_EQ(rounded(1.0f + 0x1.8p-7f), 1.0f + 0x1p-6f);  // a tie: up to the even one
  EXPECT_EQ(rounded(1.0f + 0x1.01p-8f), 1.0f + 0x1p-7f);
}

TEST(Bfloat16, KeepsWhatIsNoNumber) {
  EXPECT_EQ(rounded(infinity), infinity);
  EXPECT_EQ(rounded(std::numeric_limits<float>::max()), infinity);
  EXPECT_TRUE(std::isnan(rounded(std::nanf(""))));
  // All digits of this one are in the half that goes.
  EXPECT_TRUE(std::isnan(rounded(std::bit_cast<float>(0x7f800001u))));
}

TEST(Bfloat16, IsWidenedAndNarrowedInLongLoopsToo) {
  std::vector<float> values, back(1003);
  for (int i = 0; i < 1003; ++i) values.push_back(std::sin(static_cast<float>(i)) * 1e3f);
  values[7] = std::nanf("");
  std::vector<Bfloat16> narrowed(values.size());
  narrow(values.data(), narrowed.data(), values.size());
  widen(narrowed.data(), back.data(), back.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i == 7)
      EXPECT_TRUE(std::isnan(back[i]));
    else
      EXPECT_EQ(back[i], rounded(values[i]));
  }
}

TEST(Bfloat16, ShowsWhetherValuesAreFinite) {
  std::vector<Bfloat16> values(100, from_float<Bfloat16>(3e38f));
  EXPECT_TRUE(all_finite(values.data(), values.size()));
  values[63] = from_float<Bfloat16>(infinity);
  EXPECT_FALSE(all_finite(values.data(), values.size()));
  values[63] = from_float<Bfloat16>(std::nanf(""));
  EXPECT_FALSE(all_finite(values.data(), values.size()));
}

// Whole blocks and the few channels of a last one: every vector is rounded as a lone value is.
TEST(Bfloat16, IsNormalisedAsFloatsAreAndThenRounded) {
  for (const std::int64_t channels : {16, 21}) {
    const std::int64_t blocks = (channels + 15) / 16, pixels = 5;
    const ChannelBlocks at{.samples = 1,
                           .blocks = blocks,
                           .pixels = pixels,
                           .lanes = 16,
                           .last_lanes = channels - 16 * (blocks - 1),
                           .sample_stride = channels * pixels,
                           .block_stride = 16,
                           .pixel_stride = channels};
    const auto count = static_cast<std::size_t>(channels * pixels);
    std::vector<Bfloat16> input(count), output(count);
    std::vector<float> exact_input(count), exact_output(count);
    for (std::size_t i = 0; i < count; ++i) {
      input[i] = from_float<Bfloat16>(std::sin(static_cast<float>(i)));
      exact_input[i] = to_float(input[i]);
    }
    std::vector<float> scale(32), shift(32), mean(32);
    for (std::size_t c = 0; c < 32; ++c) {
      scale[c] = 0.3f + static_cast<float>(c);
      shift[c] = 0.1f * static_cast<float>(c) - 1;
    }
    const NormScale by{scale.data(), shift.data(), mean.data()};
    normalise(at, input.data(), nullptr, output.data(), by, true);
    normalise(at, exact_input.data(), nullptr, exact_output.data(), by, true);
    for (std::size_t i = 0; i < count; ++i)
      EXPECT_EQ(to_float(output[i]), rounded(exact_output[i])) << i;
    std::vector<double> sums(32), squares(32), exact_sums(32), exact_squares(32);
    add_sums(at, input.data(), sums.data(), squares.data());
    add_sums(at, exact_input.data(), exact_sums.data(), exact_squares.data());
    EXPECT_EQ(sums, exact_sums);
    EXPECT_EQ(squares, exact_squares);
  }
}

}  // namespace
}  // namespace regatta::cpu
