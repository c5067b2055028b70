// Clocks of ranks that differ, and long texts between ranks.
#include "transport/clocks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "transport/collectives.h"
#include "transport/in_process.h"

namespace regatta {
namespace {

TEST(Clocks, AnOffsetIsFoundWithinItsStatedError) {
  const auto ranks = in_process_ranks(3);
  constexpr std::int64_t second = 1'000'000'000;
  const auto shifted = [](std::int64_t by) { return [by] { return steady_nanoseconds() + by; }; };
  std::thread ahead([&] { measure_clocks(*ranks[1], shifted(5 * second)); });
  std::thread behind([&] { measure_clocks(*ranks[2], shifted(-3 * second)); });
  const std::vector<ClockOffset> found = measure_clocks(*ranks[0]);
  ahead.join();
  behind.join();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].offset, 0);
  EXPECT_EQ(found[0].error, 0);
  EXPECT_LE(std::abs(found[1].offset - 5 * second), found[1].error);
  EXPECT_LE(std::abs(found[2].offset + 3 * second), found[2].error);
  EXPECT_LT(found[1].error, second);
}

TEST(Collectives, TextsOfAllRanksComeToTheFirst) {
  const auto ranks = in_process_ranks(3);
  const std::string empty, long_one(std::size_t{65} << 20, 'x');
  std::thread second([&] { EXPECT_TRUE(texts_on_first(*ranks[1], empty).empty()); });
  std::thread third([&] { EXPECT_TRUE(texts_on_first(*ranks[2], long_one).empty()); });
  const std::vector<std::string> found = texts_on_first(*ranks[0], "own");
  second.join();
  third.join();
  EXPECT_EQ(found, (std::vector<std::string>{"own", empty, long_one}));
}

TEST(Collectives, TheFirstRankGoesOnWithoutOneThatIsLost) {
  const auto ranks = in_process_ranks(3);
  const Lost lost = [](int rank) { return rank == 2; };
  const std::vector<std::string> expected{"one", "two", ""};
  std::thread second([&] {
    EXPECT_EQ(gather_texts(*ranks[1], "two"), expected);
    measure_clocks(*ranks[1]);
  });
  EXPECT_EQ(gather_texts(*ranks[0], "one", lost), expected);
  EXPECT_EQ(measure_clocks(*ranks[0], steady_nanoseconds, lost).size(), 3u);
  second.join();
}

}  // namespace
}  // namespace regatta
