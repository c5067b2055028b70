#include "train/mixup.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace regatta {
namespace {

TEST(Mixup, PartnersAreAPermutationThatChangesFromBatchToBatch) {
  const Mixing first = mixing_of(0.2, 1, 0, 50), second = mixing_of(0.2, 1, 1, 50);
  EXPECT_NE(first.partners, second.partners);
  EXPECT_NE(first.share, second.share);
  std::vector<std::int64_t> sorted = first.partners, all(50);
  std::ranges::sort(sorted);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted, all);
  EXPECT_EQ(mixing_of(0.2, 1, 0, 50).partners, first.partners);
}

// Beta(a, a) has mean 1/2 and variance 1 / (4 (2a + 1)).
TEST(Mixup, SharesAreDrawnFromBeta) {
  for (const double alpha : {0.2, 1.0, 4.0}) {
    constexpr int draws = 20000;
    double sum = 0, squares = 0;
    for (std::uint64_t i = 0; i < draws; ++i) {
      const double share = mixing_of(alpha, 7, i, 1).share;
      ASSERT_GE(share, 0);
      ASSERT_LE(share, 1);
      sum += share;
      squares += (share - 0.5) * (share - 0.5);
    }
    EXPECT_NEAR(sum / draws, 0.5, 0.01) << alpha;
    EXPECT_NEAR(squares / draws, 1 / (4 * (2 * alpha + 1)), 0.01) << alpha;
  }
}

TEST(Mixup, ATinyAlphaStillGivesANumber) {
  for (std::uint64_t i = 0; i < 100; ++i)
    EXPECT_TRUE(std::isfinite(mixing_of(1e-6, 1, i, 1).share));
}

}  // namespace
}  // namespace regatta
