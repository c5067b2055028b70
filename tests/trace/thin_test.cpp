#include "trace/thin.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace regatta::trace {
namespace {

using Bits = std::vector<bool>;
using Places = std::vector<std::int64_t>;
using Values = std::vector<double>;

TEST(Thin, KeepsTheExtremesOfEachStretchAndTheLastPoint) {
  EXPECT_EQ(extremes_of_stretches({}, {}, 3), Bits{});
  EXPECT_EQ(extremes_of_stretches(Places{1, 2}, Values{3, 1}, 2), Bits(2, true));
  EXPECT_EQ(
      extremes_of_stretches(Places{1, 2, 3, 4, 5, 6, 7, 8}, Values{3, 1, 2, 9, 4, 5, 0, 1}, 5),
      (Bits{false, true, false, true, false, true, true, true}));
  // Many points at the beginning, few at the end: the stretches are as long.
  EXPECT_EQ(extremes_of_stretches(Places{1, 2, 3, 4, 60, 100}, Values{1, 5, 3, 2, 7, 8}, 5),
            (Bits{true, true, false, false, true, true}));
}

TEST(Thin, LosesNoExtremeAndNoPartOfTheRunHoweverOften) {
  constexpr std::size_t most = 100;
  Places places;
  Values values;
  for (std::int64_t i = 1; i <= 20'000; ++i) {
    places.push_back(i);
    values.push_back(static_cast<double>((i * 7919) % 1009) + (i == 777 ? 5000 : 0));
    if (places.size() < 2 * most) continue;
    const Bits stays = extremes_of_stretches(places, values, most);
    Places kept_places;
    Values kept_values;
    for (std::size_t k = 0; k < places.size(); ++k)
      if (stays[k]) {
        kept_places.push_back(places[k]);
        kept_values.push_back(values[k]);
      }
    ASSERT_LE(kept_places.size(), most);
    places = kept_places;
    values = kept_values;
  }
  EXPECT_EQ(std::ranges::count(places, 777), 1);
  EXPECT_EQ(places.back(), 20'000);
  EXPECT_GT(std::ranges::count_if(places, [](std::int64_t each) { return each < 10'000; }), 20);
}

}  // namespace
}  // namespace regatta::trace
