// Shares with which unequal participants finish together.
#include "plan/shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>

#include "base/error.h"
#include "support/error_text.h"

namespace regatta {
namespace {

using testing::HasSubstr;
using Shares = std::vector<std::int64_t>;

Participant with_limits(Participant participant, std::int64_t least, std::int64_t most) {
  participant.least = least;
  participant.most = most;
  return participant;
}

TEST(Shares, FollowTheSpeeds) {
  EXPECT_EQ(shares_by_speed(std::vector<double>{1, 3}, 64), (Shares{16, 48}));
  EXPECT_EQ(shares_by_speed(std::vector<double>{2, 1}, 300), (Shares{200, 100}));
  EXPECT_EQ(shares_by_speed(std::vector<double>{1, 1000}, 64), (Shares{1, 63})) << "one at least";
}

TEST(Shares, OfEqualsTheFirstGetWhatIsLeftOver) {
  EXPECT_EQ(shares_by_speed(std::vector<double>{1, 1, 1}, 11), (Shares{4, 4, 3}));
}

TEST(Shares, MakeUpForFixedCosts) {
  // 10 + 40 = 0 + 50.
  const std::vector<Participant> two{linear(Seconds(10), Seconds(1)),
                                     linear(Seconds(0), Seconds(1))};
  EXPECT_EQ(balanced_shares(two, 90), (Shares{40, 50}));
}

TEST(Shares, WhoeverWouldOnlyHoldTheOthersUpGetsNoneIfThatIsAllowed) {
  std::vector<Participant> two{linear(Seconds(100), Seconds(1)), linear(Seconds(0), Seconds(1))};
  EXPECT_EQ(balanced_shares(two, 50), (Shares{1, 49}));
  two[0].least = 0;
  EXPECT_EQ(balanced_shares(two, 50), (Shares{0, 50}));
  EXPECT_EQ(balanced_shares(two, 300), (Shares{100, 200})) << "a large batch is worth it";
}

TEST(Shares, StayWithinMemory) {
  const std::vector<Participant> three{with_limits(linear(Seconds(0), Seconds(0.1)), 1, 10),
                                       linear(Seconds(0), Seconds(1)),
                                       linear(Seconds(0), Seconds(2))};
  EXPECT_EQ(balanced_shares(three, 40), (Shares{10, 20, 10}));
}

TEST(Shares, AreWholeGroups) {
  const std::vector<Participant> two{linear(Seconds(0), Seconds(1)),
                                     linear(Seconds(0), Seconds(3))};
  EXPECT_EQ(balanced_shares(two, 32, 8), (Shares{24, 8}));
  const std::vector<Participant> tight{with_limits(two[0], 1, 15), two[1]};
  EXPECT_EQ(balanced_shares(tight, 32, 8), (Shares{8, 24})) << "15 samples are one whole group";
  EXPECT_EQ(balanced_shares(two, 30, 8), (Shares{24, 6})) << "the batch's last group is short";
  EXPECT_EQ(shares_by_speed(std::vector<double>{1, 1}, 24, 16), (Shares{16, 8}));
}

TEST(Shares, ThatDoNotExistAreRefused) {
  const auto refused = [](std::vector<Participant> all, std::int64_t batch, std::int64_t granule) {
    return error_text([&] { balanced_shares(all, batch, granule); });
  };
  const Participant any = linear(Seconds(0), Seconds(1));
  EXPECT_THAT(
      refused({with_limits(any, 1, 10), with_limits(any, 1, 5)}, 16, 1),
      HasSubstr("a batch of 16 samples cannot be shared out among 2: their memory holds 15"));
  EXPECT_THAT(refused({any, any, any}, 2, 1), HasSubstr("they need 3 or more"));
  EXPECT_THAT(refused({any, with_limits(any, 1, 0)}, 8, 1),
              HasSubstr("one has room for 0 and needs 1 or more"));
  EXPECT_THAT(refused({any, any, any}, 8, 4), HasSubstr("a group of 4 at least each"));
  EXPECT_THAT(refused({}, 1, 1), HasSubstr("holds 0"));
}

TEST(Shares, TwoTimingsTellWhatIsFixed) {
  const Participant line = linear_through({10, Seconds(3)}, {30, Seconds(5)});
  EXPECT_NEAR(line.finish(1).count(), 2.1, 1e-9);
  EXPECT_NEAR(line.finish(50).count(), 7, 1e-9);
  // Too near each other, or nonsense: as long a sample as in the latest.
  for (const TimedShare earlier : {TimedShare{30, Seconds(4)}, TimedShare{28, Seconds(4.99)},
                                   TimedShare{10, Seconds(6)}, TimedShare{10, Seconds(0)}})
    EXPECT_NEAR(linear_through(earlier, {30, Seconds(5)}).finish(60).count(), 10, 1e-9);
}

// Any curve that does not fall, jumps and flat stretches included.
Participant any_participant(std::mt19937& random, std::int64_t batch) {
  std::vector<Seconds> at(static_cast<std::size_t>(batch) + 1, Seconds(0));
  Seconds now(random() % 3 == 0 ? random() % 8 : 0);
  for (std::size_t n = 1; n < at.size(); ++n) at[n] = now += Seconds(random() % 4);
  const auto below = [&](std::int64_t end) { return static_cast<std::int64_t>(random()) % end; };
  return {.finish = [at](std::int64_t n) { return at.at(static_cast<std::size_t>(n)); },
          .least = below(2),
          .most = below(3) == 0 ? below(batch + 1) : batch + 7};
}

Seconds last_to_finish(const std::vector<Participant>& all, const Shares& shares) {
  Seconds last(0);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (shares[i] > 0) last = std::max(last, all[i].finish(shares[i]));
  return last;
}

// The best of all ways to share out the rest among participants `i` and after.
std::optional<Seconds> best_of_all(const std::vector<Participant>& all, std::size_t i,
                                   std::int64_t left, std::int64_t granule) {
  if (i == all.size()) return left == 0 ? std::optional(Seconds(0)) : std::nullopt;
  std::optional<Seconds> best;
  for (std::int64_t share = 0; share <= std::min(left, all[i].most); share += granule) {
    if (share < all[i].least) continue;
    const auto rest = best_of_all(all, i + 1, left - share, granule);
    if (!rest) continue;
    const Seconds last = share > 0 ? std::max(*rest, all[i].finish(share)) : *rest;
    if (!best || last < *best) best = last;
  }
  return best;
}

TEST(Shares, AreAsGoodAsTheBestOfAll) {
  std::mt19937 random(22);
  int possible = 0, impossible = 0;
  for (int round = 0; round < 5000; ++round) {
    const std::int64_t granule = 1 + static_cast<std::int64_t>(random() % 3);
    const std::int64_t batch = granule * (1 + static_cast<std::int64_t>(random() % 9));
    std::vector<Participant> all;
    for (std::size_t i = 1 + random() % 4; i > 0; --i)
      all.push_back(any_participant(random, batch));
    const auto best = best_of_all(all, 0, batch, granule);
    if (!best) {
      ++impossible;
      EXPECT_THROW(balanced_shares(all, batch, granule), InputError) << round;
      continue;
    }
    ++possible;
    const Shares shares = balanced_shares(all, batch, granule);
    ASSERT_EQ(std::accumulate(shares.begin(), shares.end(), std::int64_t{0}), batch) << round;
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_GE(shares[i], all[i].least) << round;
      EXPECT_LE(shares[i], all[i].most) << round;
      EXPECT_EQ(shares[i] % granule, 0) << round;
    }
    ASSERT_EQ(last_to_finish(all, shares).count(), best->count()) << round;
    EXPECT_EQ(shares, balanced_shares(all, batch, granule)) << round;
  }
  EXPECT_GT(possible, 2000);
  EXPECT_GT(impossible, 500);
}

// Among a thousand nobody may be left with what all others were rounded by.
TEST(Shares, OfAThousandNodesAreFair) {
  std::vector<double> speeds;
  for (int i = 0; i < 1000; ++i) speeds.push_back(1 + i % 7);
  const Shares shares = shares_by_speed(speeds, 100'000);
  EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), std::int64_t{0}), 100'000);
  double first = 1e9, last = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    // With one sample more, nobody would be done before the last is now.
    first = std::min(first, static_cast<double>(shares[i] + 1) / speeds[i]);
    last = std::max(last, static_cast<double>(shares[i]) / speeds[i]);
  }
  EXPECT_LE(last, first);
}

}  // namespace
}  // namespace regatta
