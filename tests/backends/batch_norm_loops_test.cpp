// Batch norm's passes against plain sums in double, for all ways in which channels lie.
#include "backends/cpu/batch_norm_loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace regatta::cpu {
namespace {

struct Case {
  const char* name;
  std::int64_t samples, channels, pixels, lanes;
  bool channels_last;  // not padded: the last block may have fewer lanes
};

std::string name_of(const testing::TestParamInfo<Case>& info) { return info.param.name; }

ChannelBlocks blocks_of(const Case& c) {
  const std::int64_t blocks = (c.channels + c.lanes - 1) / c.lanes;
  if (c.channels_last)
    return {c.samples,
            blocks,
            c.pixels,
            c.lanes,
            c.channels - c.lanes * (blocks - 1),
            c.channels * c.pixels,
            c.lanes,
            c.channels};
  return {c.samples,          blocks, c.pixels, c.lanes, c.lanes, blocks * c.pixels * c.lanes,
          c.pixels * c.lanes, c.lanes};
}

// Values of one channel, in the order of samples and pixels.
template <class Visit>
void for_each_value(const ChannelBlocks& at, std::int64_t channel, const Visit& visit) {
  for (std::int64_t n = 0; n < at.samples; ++n)
    for (std::int64_t p = 0; p < at.pixels; ++p)
      visit(static_cast<std::size_t>(n * at.sample_stride + channel / at.lanes * at.block_stride +
                                     p * at.pixel_stride + channel % at.lanes));
}

class BatchNormLoops : public testing::TestWithParam<Case> {
 protected:
  BatchNormLoops()
      : at_(blocks_of(GetParam())),
        size_(static_cast<std::size_t>(at_.samples * at_.sample_stride)),
        row_(static_cast<std::size_t>(at_.blocks * 16)) {}

  std::vector<float> values(std::uint64_t stream, double mean = 0) const {
    std::vector<float> made(size_);
    for (std::size_t i = 0; i < size_; ++i)
      made[i] = static_cast<float>(mean + random_uniform(7, stream, i) - 0.5);
    return made;
  }
  // Values that differ between channels, so that blocks are told apart.
  std::vector<float> row(double first, double slope) const {
    std::vector<float> made(row_);
    for (std::size_t c = 0; c < row_; ++c)
      made[c] = static_cast<float>(first + slope * static_cast<double>(c));
    return made;
  }

  ChannelBlocks at_;
  std::size_t size_, row_;
};

TEST_P(BatchNormLoops, SumsKeepTheDeviationsOfValuesFarFromZero) {
  for (const double mean : {0.0, 3.0, 1000.0}) {
    const std::vector<float> x = values(1, mean);
    std::vector<double> sums(row_), squares(row_);
    add_sums(at_, x.data(), sums.data(), squares.data());
    for (std::int64_t c = 0; c < GetParam().channels; ++c) {
      double sum = 0, deviations = 0, count = 0;
      for_each_value(at_, c, [&](std::size_t i) { sum += x[i], ++count; });
      for_each_value(at_, c, [&](std::size_t i) { deviations += std::pow(x[i] - sum / count, 2); });
      const auto i = static_cast<std::size_t>(c);
      EXPECT_NEAR(sums[i], sum, 2e-7 * (std::abs(mean) + 1) * count);
      EXPECT_NEAR(squares[i] - sums[i] * sums[i] / count, deviations, 1e-5 * deviations + 1e-9)
          << "mean " << mean << ", channel " << c;
    }
  }
}

TEST_P(BatchNormLoops, SumsOfSamplesAddUpToThoseOfAll) {
  const std::vector<float> x = values(1);
  std::vector<double> whole(2 * row_), pieces(2 * row_);
  add_sums(at_, x.data(), whole.data(), whole.data() + row_);
  ChannelBlocks one = at_;
  one.samples = 1;
  for (std::int64_t n = 0; n < at_.samples; ++n)
    add_sums(one, x.data() + n * at_.sample_stride, pieces.data(), pieces.data() + row_);
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(pieces[i], whole[i], 1e-5);
}

TEST_P(BatchNormLoops, NormaliseScalesShiftsAddsAndRectifies) {
  const std::vector<float> x = values(1), residual = values(2), scale = row(0.5, 0.1),
                           shift = row(0.1, -0.01), mean = row(0, 0);
  for (const bool relu : {false, true})
    for (const bool adds : {false, true}) {
      std::vector<float> y(size_);
      normalise(at_, x.data(), adds ? residual.data() : nullptr, y.data(),
                {scale.data(), shift.data(), mean.data()}, relu);
      for (std::int64_t c = 0; c < GetParam().channels; ++c)
        for_each_value(at_, c, [&](std::size_t i) {
          const auto k = static_cast<std::size_t>(c);
          const double z =
              double(x[i]) * double(scale[k]) + double(shift[k]) + (adds ? double(residual[i]) : 0);
          ASSERT_NEAR(y[i], relu ? std::max(0.0, z) : z, 1e-6);
        });
    }
}

TEST_P(BatchNormLoops, TheInputTellsWhatTheReluLetThroughAsTheOutputDoes) {
  const std::vector<float> x = values(1), dy = values(2), scale = row(0.5, 0.1),
                           shift = row(0.1, -0.01), mean = row(0.2, 0.001), slope = row(0.3, 0.02);
  const NormScale by{scale.data(), shift.data(), mean.data()};
  std::vector<float> y(size_);
  normalise(at_, x.data(), nullptr, y.data(), by, true);
  std::vector<std::vector<double>> sums;
  std::vector<std::vector<float>> gradients;
  for (const ReluMask mask : {ReluMask::output, ReluMask::input}) {
    const NormGradient from{x.data(), y.data(), dy.data(), mask};
    sums.emplace_back(2 * row_);
    add_gradient_sums(at_, from, by, sums.back().data(), sums.back().data() + row_);
    gradients.emplace_back(size_);
    apply_gradient(at_, from, by, {shift.data(), slope.data()}, gradients.back().data(),
                   GradientMode::write, nullptr, GradientMode::none);
  }
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_EQ(gradients[0], gradients[1]);
}

TEST_P(BatchNormLoops, GradientsAreThoseOfPlainSums) {
  const std::vector<float> x = values(1), y = values(3), dy = values(2), scale = row(0.5, 0.1),
                           shift = row(0, 0), mean = row(0.2, 0.001), offset = row(0.1, 0.002),
                           slope = row(0.3, 0.02);
  const NormScale by{scale.data(), shift.data(), mean.data()};
  const NormGradient from{x.data(), y.data(), dy.data(), ReluMask::output};
  std::vector<double> sums(2 * row_);
  add_gradient_sums(at_, from, by, sums.data(), sums.data() + row_);
  std::vector<float> dx(size_, 1.0f), dr(size_);
  apply_gradient(at_, from, by, {offset.data(), slope.data()}, dx.data(), GradientMode::add,
                 dr.data(), GradientMode::write);
  for (std::int64_t c = 0; c < GetParam().channels; ++c) {
    const auto k = static_cast<std::size_t>(c);
    double sum = 0, product = 0, count = 0;
    for_each_value(at_, c, [&](std::size_t i) {
      const double dz = y[i] <= 0 ? 0.0 : double(dy[i]), centred = double(x[i]) - double(mean[k]);
      sum += dz, product += dz * centred, ++count;
      ASSERT_EQ(dr[i], static_cast<float>(dz));
      ASSERT_NEAR(dx[i], 1 + double(scale[k]) * dz - double(offset[k]) - centred * double(slope[k]),
                  2e-6);
    });
    EXPECT_NEAR(sums[k], sum, 1e-7 * count);
    EXPECT_NEAR(sums[row_ + k], product, 1e-7 * count);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, BatchNormLoops,
                         testing::Values(Case{"Blocked16", 3, 32, 197, 16, false},
                                         Case{"Blocked8", 3, 24, 67, 8, false},
                                         Case{"OnePixel", 2, 16, 1, 16, false},
                                         Case{"ChannelsLast", 2, 21, 70, 16, true},
                                         Case{"Vectors", 130, 37, 1, 16, true}),
                         name_of);

}  // namespace
}  // namespace regatta::cpu
